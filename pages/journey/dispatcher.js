// Draws the dispatcher of reasons.py: events, experts, the same events again, and beside them every event with every event. Play
// draws one event's lines after another and counts them; what is pressed stays lit, and its sentence stands above the pictures.
const SVG = 'http://www.w3.org/2000/svg', TOP = 24
const FRAME = 100, PAUSE = 2600  // milliseconds: until the next event's lines are drawn, and at the end of a step
let arrived = 0  // of how many times that a visit was led here
const STEPS = ['aggregate', 'dispatch', 'compare']

function add(to, tag, set, text) {
  const made = document.createElementNS(SVG, tag)
  for (const [name, value] of Object.entries(set)) made.setAttribute(name, value)
  if (text !== undefined) made.textContent = text
  to.append(made)
  return made
}

// Sets a sentence in which **these words** are bold.
function tell(to, sentence) {
  to.replaceChildren(...sentence.split('**').map((words, at) => {
    if (at % 2 === 0) return words
    const bold = document.createElement('b')
    bold.textContent = words
    return bold
  }))
}

export default function drawDispatcher({ data, setStateValue, parentElement }) {
  const { events, experts, held, back, fills, returns, slots, says } = data, n = events.length, k = experts.length
  let root = parentElement.querySelector('div.dispatcher')
  if (!root) {
    root = document.createElement('div')
    root.className = 'dispatcher'
    parentElement.appendChild(root)
  }
  const narrow = root.clientWidth < 560, drawn = JSON.stringify([data, narrow]), of = JSON.stringify([events, experts])
  if (root.drawn === drawn) return  // the page ran again, which interrupts no play
  clearInterval(root.timer)
  if (root.of !== of) Object.assign(root, { step: null, chosen: null })
  Object.assign(root, { of, drawn, timer: 0 })
  root.replaceChildren()
  const make = (tag, name, to, text) => {
    const made = document.createElement(tag)
    if (name) made.className = name
    if (text !== undefined) made.textContent = text
    to.append(made)
    return made
  }
  const drive = make('div', 'drive', root)
  const steps = says.steps.map((words, at) => {
    const button = make('button', '', drive, words)
    button.type = 'button'
    button.onclick = () => { stop(); explored(); showStep(at, n) }
    return button
  })
  const play = make('button', 'primary', drive, `▶ ${says.play}`)
  play.type = 'button'
  const told = make('div', 'told', root)  // above the pictures, which are taller than a window
  told.setAttribute('aria-live', 'polite')
  const pictures = make('div', 'pictures', root)
  pictures.classList.toggle('narrow', narrow)
  const wide = narrow ? 400 : 640, column = narrow ? [106, 200, 294] : [150, 320, 490], half = narrow ? 46 : 66
  const letters = narrow ? [14, 12] : [19, 19], high = narrow ? 22 : Math.max(16, Math.min(22, 470 / n))  // a row
  const tall = TOP + Math.max(n, k) * high + 6
  const svg = add(pictures, 'svg', { viewBox: `0 0 ${wide} ${tall}`, role: 'group', 'aria-label': says.alt })
  const other = add(pictures, 'svg', { viewBox: `0 0 220 ${tall}`, role: 'img', 'aria-label': says.pairs.replace('{}', n * n), class: 'pairs' })
  const at = i => TOP + (i + 0.5) * high, middle = e => TOP + (e + 0.5) * (tall - TOP - 6) / k
  const short = (text, most) => text.length > most ? `${text.slice(0, most - 1)}…` : text
  const heads = [[0, 'start'], [column[1], 'middle'], [wide, 'end']].map(([x, anchor], i) =>
    add(svg, 'text', { x, y: 12, class: 'head', 'text-anchor': anchor }, says.heads[i]))
  const otherHead = add(other, 'text', { x: 0, y: 12, class: 'head' })
  const most = [Math.max(...held.flat(), 1e-9), Math.max(...back.flat(), 1e-9)]
  const lines = add(svg, 'g', { class: 'lines' })
  const link = (x1, y1, x2, y2, share, kind, event, expert) => add(lines, 'path', {
    d: `M${x1} ${y1}C${(x1 + x2) / 2} ${y1} ${(x1 + x2) / 2} ${y2} ${x2} ${y2}`, 'stroke-width': (0.4 + 3.6 * share).toFixed(2),
    'stroke-opacity': (0.12 + 0.6 * share).toFixed(2), class: kind, 'data-event': event, 'data-expert': expert,
  })
  for (let i = 0; i < n; i++) for (let e = 0; e < k; e++) {
    link(column[0], at(i), column[1] - half, middle(e), held[e][i] / most[0], 'take', i, e)
    link(column[1] + half, middle(e), column[2], at(i), back[i][e] / most[1], 'back', i, e)
  }
  const pairs = add(other, 'g', { class: 'lines' })
  for (let i = 0; i < n; i++) for (let j = 0; j < n; j++) add(pairs, 'path', { d: `M12 ${at(i)}L208 ${at(j)}`, 'stroke-width': 0.5,
    'stroke-opacity': 0.35, 'data-event': i })
  for (let i = 0; i < n; i++) for (const x of [8, 212]) add(other, 'circle', { cx: x, cy: at(i), r: 3.5 })
  const things = []
  const thing = (name, x, y, text, anchor, sets) => {
    const made = add(svg, 'g', { class: `thing ${name}`, tabindex: -1, role: 'button', 'aria-label': text, ...sets })
    if (name === 'expert') add(made, 'rect', { class: 'box', x: column[1] - half, y: y - 9, width: 2 * half, height: 18, rx: 4 })
    const left = anchor === 'end' ? 0 : anchor === 'start' ? x : column[1] - half
    add(made, 'rect', { class: 'area', x: left, y: y - high / 2, width: anchor === 'middle' ? 2 * half : column[0], height: high })
    add(made, 'text', { x, y: y + 4, 'text-anchor': anchor }, short(text, letters[name === 'expert' ? 1 : 0]))
    add(made, 'title', {}, text)
    things.push(made)
  }
  for (let i = 0; i < n; i++) thing('event', column[0] - 4, at(i), events[i], 'end', { 'data-event': i, 'data-side': 'take' })
  for (let e = 0; e < k; e++) thing('expert', column[1], middle(e), experts[e], 'middle', { 'data-expert': e })
  for (let i = 0; i < n; i++) thing('event', column[2] + 4, at(i), events[i], 'start', { 'data-event': i, 'data-side': 'back' })

  // --- what is lit ---
  const explored = () => { if (!root.explored) { root.explored = true; setStateValue('explored', true) } }
  const count = (take, back, all) => {
    heads[1].textContent = (narrow ? says.lines : says.through).replace('{}', ((take + back) * k).toLocaleString('en'))
    otherHead.textContent = says.pairs.replace('{}', (all * n).toLocaleString('en'))
  }
  function clear() {
    svg.classList.remove('some')
    for (const each of root.querySelectorAll('.on, .off')) each.classList.remove('on', 'off')
    for (const each of steps) each.removeAttribute('aria-current')
    count(n, n, n)
  }
  // `soft`: all other lines stay as they are
  function light(index, soft) {
    clear()
    svg.classList.toggle('some', !soft)
    const made = things[index], { event, expert, side } = made.dataset
    made.classList.add('on')
    const mine = event === undefined ? `[data-expert="${expert}"]` : `.${side}[data-event="${event}"]`
    for (const each of lines.querySelectorAll(mine)) each.classList.add('on')
    told.textContent = event === undefined ? slots[expert] : (side === 'take' ? fills : returns)[event]
  }
  // A step with the lines of its first `upto` events: those of earlier steps stay, those of later ones are not there yet.
  function showStep(step, upto) {
    clear()
    Object.assign(root, { step, chosen: null })
    steps[step].setAttribute('aria-current', 'step')
    const shown = STEPS.map((_, each) => each < step ? n : each === step ? upto : 0)
    for (const [group, each] of [['.take', shown[0]], ['.back', shown[1]]])
      for (const line of lines.querySelectorAll(group)) line.classList.toggle('off', Number(line.dataset.event) >= each)
    for (const line of pairs.children) line.classList.toggle('off', Number(line.dataset.event) >= shown[2])
    if (upto < n && step < 2) for (const line of lines.querySelectorAll(`.${['take', 'back'][step]}[data-event="${upto - 1}"]`))
      line.classList.add('on')
    count(...shown)
    tell(told, says[STEPS[step]])
  }
  // What stands there when nothing is pointed at. At first that is what the newest event gets back.
  function rest() {
    if (root.timer) return
    if (root.step !== null) showStep(root.step, n)
    else if (root.chosen !== null) light(root.chosen, false)
    else {
      light(things.length - 1, true)
      told.append(` ${says.rest}`)
    }
  }
  function stop() {
    clearInterval(root.timer)
    root.timer = 0
    play.textContent = `▶ ${says.play}`
  }
  play.onclick = () => {
    if (root.timer) { stop(); rest(); return }
    explored()
    const calm = matchMedia('(prefers-reduced-motion: reduce)').matches
    const frames = STEPS.flatMap((_, step) => Array.from({ length: n }, (_, i) => [step, i + 1]).slice(calm ? -1 : 0))
    let frame = 0, wait = 0
    const next = () => {
      if (!root.isConnected) { clearInterval(root.timer); return }
      if (wait-- > 0) return
      if (frame === frames.length) { stop(); return }
      const [step, upto] = frames[frame++]
      showStep(step, upto)
      if (upto === n) wait = Math.round(PAUSE / FRAME)
    }
    root.timer = setInterval(next, FRAME)
    play.textContent = `❚❚ ${says.pause}`
    next()
  }

  // --- pointing, pressing, walking ---
  let here = things.length - 1
  function choose(index) {
    stop()
    explored()
    Object.assign(root, { step: null, chosen: root.chosen === index ? null : index })
    rest()
  }
  things.forEach((made, index) => {
    made.onpointerenter = event => { if (event.pointerType === 'mouse' && !root.timer) light(index, false) }
    made.onfocus = () => { here = index; if (made.matches(':focus-visible')) { stop(); light(index, false) } }
    made.onclick = () => choose(index)
  })
  things[here].setAttribute('tabindex', 0)
  svg.onpointerleave = event => { if (event.pointerType === 'mouse') rest() }
  svg.onfocusout = event => { if (!svg.contains(event.relatedTarget)) rest() }
  svg.onkeydown = event => {
    if (event.key === 'Enter' || event.key === ' ') { event.preventDefault(); choose(here); return }
    const step = { ArrowUp: -1, ArrowDown: 1 }[event.key] ?? { ArrowLeft: here < n + k ? -here : -(k + n), ArrowRight: here < n
      ? n - here : n + k - here }[event.key]
    if (step === undefined) return
    event.preventDefault()
    const to = things[Math.min(Math.max(here + step, 0), things.length - 1)]
    things[here].setAttribute('tabindex', -1)
    to.setAttribute('tabindex', 0)
    to.focus()
  }
  rest()
  if (data.arrivals > arrived) {  // Streamlit first scrolls to the top of a page that opens
    arrived = data.arrivals
    setTimeout(() => root.scrollIntoView({ block: 'center' }), 600)
  }
  root.watch?.disconnect()
  root.watch = new ResizeObserver(() => drawDispatcher({ data, setStateValue, parentElement }))
  root.watch.observe(root)
}
