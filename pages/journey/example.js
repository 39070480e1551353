// The tiny example of the dispatcher, one number at a time: three items, two experts, vectors of two numbers. The same numbers stand
// in text.md, and tests/test_journey.py computes them anew.
const ITEMS = [['Chess 1', [1, 0]], ['Chess 2', [0.8, 0.2]], ['Golf 1', [0, 1]]], EXPERTS = [['A', [2, 0]], ['B', [0, 2]]]
const VOTES = [0.6, 0.4], PAUSE = 1400
const dot = (a, b) => a[0] * b[0] + a[1] * b[1], plus = (a, b) => [a[0] + b[0], a[1] + b[1]], times = (s, a) => [s * a[0], s * a[1]]
const softmax = values => {
  const powers = values.map(Math.exp), all = powers.reduce((a, b) => a + b)
  return powers.map(each => each / all)
}
const short = x => Math.abs(x) < 0.1 && x ? x.toFixed(3) : x.toFixed(2), vector = a => `(${a.map(short).join(', ')})`
const part = x => `${Math.round(100 * x)}%`, fill = (text, values) => text.replace(/\{(\w+)\}/g, (all, name) => values[name] ?? all)

// Every step: the sentence, the cell that it fills, and what stands there.
function steps(slots, says) {
  const list = [], fits = EXPERTS.map(([, e]) => ITEMS.map(([, i]) => dot(e, i)))
  const step = (name, cell, value, values) => list.push({ told: fill(says[name], { value, ...values }), cell, value })
  EXPERTS.forEach(([expert, e], at) => ITEMS.forEach(([item, i], to) => step('fit', `${at}.${to}`, fits[at][to].toFixed(1),
    { item, expert, sum: `${i[0]} × ${e[0]} + ${i[1]} × ${e[1]} = ${fits[at][to].toFixed(1)}` })))
  const last = ITEMS.length - 1
  let shares, held, said
  if (!slots) {
    shares = fits.map(softmax)
    EXPERTS.forEach(([expert], at) => ITEMS.forEach(([item], to) => step('share_of_expert', `${at}.${to}`, part(shares[at][to]), { item, expert })))
    held = shares.map(row => row.reduce((sum, share, to) => plus(sum, times(share, ITEMS[to][1])), [0, 0]))
    EXPERTS.forEach(([expert], at) => step('slot_average', `slot.${at}`, vector(held[at]), { expert }))
    said = EXPERTS.map(([, e]) => e)
  } else {
    const columns = ITEMS.map((_, to) => softmax(fits.map(row => row[to])))
    shares = EXPERTS.map((_, at) => columns.map(column => column[at]))
    ITEMS.forEach(([item], to) => EXPERTS.forEach(([expert], at) => step('share_of_item', `${at}.${to}`, part(shares[at][to]), { item, expert })))
    held = EXPERTS.map(() => [0, 0])
    ITEMS.forEach(([item, i], to) => EXPERTS.forEach(([expert], at) => {
      held[at] = plus(times(1 - shares[at][to], held[at]), times(shares[at][to], i))
      step('slot_step', `slot.${at}`, vector(held[at]), { item, expert, share: part(shares[at][to]), kept: part(1 - shares[at][to]) })
    }))
    said = EXPERTS.map(([, e], at) => plus(held[at], times(VOTES[at], e)))
    EXPERTS.forEach(([expert], at) => step('says', `slot.${at}`, vector(said[at]), { expert, votes: part(VOTES[at]) }))
  }
  const back = softmax(said.map(one => dot(one, ITEMS[last][1])))
  EXPERTS.forEach(([expert], at) => step('back_share', `slot.${at}`, part(back[at]), { expert }))
  let scores
  if (!slots) {
    const mix = held.reduce((sum, one, at) => plus(sum, times(back[at], one)), [0, 0])
    step('mix', 'mix', vector(mix), {})
    scores = ITEMS.map(([, i]) => dot(i, mix))
  } else {
    const each = said.map(one => softmax(ITEMS.map(([, i]) => dot(i, one))))
    scores = ITEMS.map((_, to) => each.reduce((sum, row, at) => sum + back[at] * row[to], 0))
  }
  ITEMS.forEach(([item], to) => step(slots ? 'score_mixed' : 'score', `score.${to}`, scores[to].toFixed(2), { item }))
  list.push({ told: says.end })
  return list
}

export default function({ data, parentElement }) {
  const { slots, says } = data
  let root = parentElement.querySelector('div.example')
  if (root) return
  root = document.createElement('div')
  root.className = 'example'
  parentElement.appendChild(root)
  const all = steps(slots, says)
  let at = 0, timer = 0
  const make = (tag, to, text, name) => {
    const made = document.createElement(tag)
    if (text) made.textContent = text
    if (name) made.className = name
    to.append(made)
    return made
  }
  const drive = make('div', root, '', 'drive')
  const [back, play, next] = ['back', 'play', 'next'].map(name => make('button', drive, says[name], name === 'next' ? 'primary' : ''))
  const told = make('div', root, '', 'told')
  told.setAttribute('aria-live', 'polite')
  const table = make('table', make('div', root, '', 'frame'))
  table.setAttribute('aria-label', says.alt)
  function show() {
    const cells = {}
    all.slice(0, at).forEach((one, i) => { if (one.cell) (cells[one.cell] ??= []).push([one.value, i === at - 1]) })
    table.replaceChildren()
    const row = (head, names) => {
      const line = make('tr', table)
      make('th', line, head).scope = 'row'
      for (const name of names) {
        const cell = make('td', line)
        for (const [value, fresh] of (cells[name] ?? []).slice(-3)) make('span', cell, value, fresh ? 'new' : '')
      }
    }
    const head = make('tr', table)
    for (const text of ['', ...ITEMS.map(([item, i]) => `${item} ${vector(i)}`), says.slot]) make('th', head, text).scope = 'col'
    EXPERTS.forEach(([expert, e], e_at) => row(`${expert} ${vector(e)}`, [...ITEMS.map((_, to) => `${e_at}.${to}`), `slot.${e_at}`]))
    row(says.scores, [...ITEMS.map((_, to) => `score.${to}`), 'mix'])
    told.textContent = at ? `${at} / ${all.length}: ${all[at - 1].told}` : says.rest
    back.disabled = !at
    next.disabled = at === all.length
    play.textContent = timer ? says.stop : says.play
  }
  const stop = () => { clearInterval(timer); timer = 0 }
  const go = by => { at = Math.min(Math.max(at + by, 0), all.length) }
  back.onclick = () => { stop(); go(-1); show() }
  next.onclick = () => { stop(); go(1); show() }
  play.onclick = () => {
    if (timer) stop()
    else {
      if (at === all.length) at = 0
      timer = setInterval(() => { go(1); if (at === all.length || !root.isConnected) stop(); show() }, PAUSE)
      go(1)
    }
    show()
  }
  show()
}
