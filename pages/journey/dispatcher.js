// Draws dispatcher.py: events, experts, the same events again, and beside them every event with every event.
const SVG = 'http://www.w3.org/2000/svg', TOP = 34
const sum = shares => shares.reduce((all, share) => all + share, 0)
const part = share => share >= 0.995 ? '100%' : share < 0.01 ? '<1%' : `${Math.round(100 * share)}%`

function add(to, tag, set, text) {
  const made = document.createElementNS(SVG, tag)
  for (const [name, value] of Object.entries(set)) made.setAttribute(name, value)
  if (text !== undefined) made.textContent = text
  to.append(made)
  return made
}

export default function({ data, parentElement }) {
  const { events, experts, held, older, back, says, colours } = data, n = events.length, k = experts.length
  let root = parentElement.querySelector('div.dispatcher')
  if (!root) {
    root = document.createElement('div')
    root.className = 'dispatcher'
    parentElement.appendChild(root)
  }
  root.replaceChildren()
  const HIGH = Math.max(18, Math.min(22, 520 / n))  // a row, so that a longer history still fits the window
  const wide = 640, high = TOP + Math.max(n * HIGH, k * HIGH) + 6, column = [150, 320, 490], letters = 17
  const told = document.createElement('div')  // above the pictures, which are taller than a window
  told.className = 'told'
  told.setAttribute('aria-live', 'polite')
  told.textContent = says.rest
  root.append(told)
  const svg = add(root, 'svg', { viewBox: `0 0 ${wide} ${high}`, role: 'group', 'aria-label': says.alt })
  const other = add(root, 'svg', { viewBox: `0 0 220 ${high}`, role: 'img', 'aria-label': says.pairs, class: 'pairs' })
  const at = i => TOP + (i + 0.5) * HIGH, middle = e => TOP + (e + 0.5) * (high - TOP - 6) / k
  const short = text => text.length > letters ? `${text.slice(0, letters - 1)}…` : text
  says.heads.forEach((head, i) => add(svg, 'text', { x: [0, column[1], wide][i], y: 14, class: 'head',
    'text-anchor': ['start', 'middle', 'end'][i] }, head))
  add(other, 'text', { x: 0, y: 14, class: 'head' }, says.pairs)
  const most = [Math.max(...held.flat(), 1e-9), Math.max(...back.flat(), 1e-9)]
  const lines = add(svg, 'g', { class: 'lines' })
  const link = (x1, y1, x2, y2, share, kind, event, expert) => add(lines, 'path', {
    d: `M${x1} ${y1}C${(x1 + x2) / 2} ${y1} ${(x1 + x2) / 2} ${y2} ${x2} ${y2}`, 'stroke-width': (0.4 + 3.6 * share).toFixed(2),
    'stroke-opacity': (0.12 + 0.6 * share).toFixed(2), class: kind, 'data-event': event, 'data-expert': expert,
  })
  for (let i = 0; i < n; i++) for (let e = 0; e < k; e++) {
    link(column[0], at(i), column[1] - 42, middle(e), held[e][i] / most[0], 'take', i, e)
    link(column[1] + 42, middle(e), column[2], at(i), back[i][e] / most[1], 'back', i, e)
  }
  const pairs = add(other, 'g', { class: 'lines' })
  for (let i = 0; i < n; i++) for (let j = 0; j < n; j++) add(pairs, 'path', { d: `M12 ${at(i)}L208 ${at(j)}`, 'stroke-width': 0.5,
    'stroke-opacity': 0.35 })
  for (let i = 0; i < n; i++) for (const x of [8, 212]) add(other, 'circle', { cx: x, cy: at(i), r: 4, fill: colours.muted })
  const thing = (name, x, y, text, anchor, sets) => {
    const of = add(svg, 'g', { class: `thing ${name}`, tabindex: -1, ...sets })
    if (name === 'expert') add(of, 'rect', { x: column[1] - 42, y: y - 9, width: 84, height: 18, rx: 4 })
    add(of, 'text', { x, y: y + 4, 'text-anchor': anchor }, short(text))
    add(of, 'title', {}, text)
    return of
  }
  const things = []
  for (let i = 0; i < n; i++) things.push(thing('event', column[0] - 4, at(i), events[i], 'end', { 'data-event': i, 'data-side': 'take' }))
  for (let e = 0; e < k; e++) things.push(thing('expert', column[1], middle(e), experts[e], 'middle', { 'data-expert': e }))
  for (let i = 0; i < n; i++) things.push(thing('event', column[2] + 4, at(i), events[i], 'start', { 'data-event': i, 'data-side': 'back' }))
  const numbers = add(svg, 'g', { class: 'numbers' })

  function rest() {
    svg.classList.remove('some')
    for (const each of svg.querySelectorAll('.on')) each.classList.remove('on')
    numbers.replaceChildren()
    told.textContent = says.rest
  }
  function light(of) {
    rest()
    svg.classList.add('some')
    of.classList.add('on')
    const { event, expert, side } = of.dataset
    const mine = event === undefined ? `[data-expert="${expert}"]` : `[data-event="${event}"]`
    for (const each of lines.querySelectorAll(mine)) each.classList.add('on')
    const tell = ([of, each], name, shares, names, most, rests) => {
      const said = shares.map((share, i) => [share, i]).filter(([share]) => share >= 0.01).sort((a, b) => b[0] - a[0]).slice(0, most)
        .map(([share, i]) => each.replace('{}', part(share)).replace('{}', () => names[i]))
      for (const [rest, share] of rests) if (share >= 0.01) said.push(rest.replace('{}', part(share)))
      const words = `${of.replace('{}', () => name)} ${said.join(', ') || says.nothing}.`
      return words[0].toUpperCase() + words.slice(1)
    }
    if (event === undefined) {
      told.textContent = tell(says.expert, experts[expert], held[expert], events, 5,
        [[says.older, older[expert]], [says.empty, 1 - older[expert] - sum(held[expert])]])
      return
    }
    const gives = tell(says.event, events[event], held.map(row => row[event]), experts, k, [])
    const gets = tell(says.back, events[event], back[event], experts, k, [[says.nobody, 1 - sum(back[event])]])
    told.textContent = side === 'take' ? `${gives} ${gets}` : `${gets} ${gives}`
  }
  let here = 0
  things.forEach((of, i) => {
    of.onpointerenter = () => light(of)
    of.onfocus = () => { here = i; light(of) }
  })
  things[0].setAttribute('tabindex', 0)
  svg.onpointerleave = rest
  svg.onfocusout = event => { if (!svg.contains(event.relatedTarget)) rest() }
  svg.onkeydown = event => {
    const step = { ArrowUp: -1, ArrowDown: 1 }[event.key] ?? { ArrowLeft: here < n + k ? -here : -(k + n), ArrowRight: here < n
      ? n - here : n + k - here }[event.key]
    if (step === undefined) return
    event.preventDefault()
    const to = things[Math.min(Math.max(here + step, 0), things.length - 1)]
    things[here].setAttribute('tabindex', -1)
    to.setAttribute('tabindex', 0)
    to.focus()
  }
}
