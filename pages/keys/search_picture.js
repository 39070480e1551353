// The moving picture of picture.py. `data` holds numbers, our colours and our words alone. A step is a set of places; moving to
// another step moves everything there. Only the 4 × 4 is searched here, while its sliders move; all else comes as it was found.
const NS = 'http://www.w3.org/2000/svg', PLAY = 5000, WORD = 220, MOVE = 900, QUICK = 160, WAIT = 120

// --- the search -------------------------------------------------------------------------------------------------------

const arrow = degrees => [Math.cos(degrees * Math.PI / 180), Math.sin(degrees * Math.PI / 180)].map(x => Math.round(x * 100) / 100)
const dot = (a, b) => a.reduce((sum, x, i) => sum + x * b[i], 0)

function counts(side, width, k) {
  let pairs = 0
  for (let i = 1; i <= Math.min(k, side); i++) pairs += Math.min(Math.floor(k / i), side)
  return { short: 2 * side, multiplications: side * width, pairs, long: side * side, long_multiplications: side * side * width }
}

function searched(toy, angles, k) {
  const query = angles.map(arrow), side = toy.keys[0].length
  const scores = query.map((q, half) => toy.keys[half].map(key => dot(q, key)))
  const order = scores.map(half => half.map((score, at) => [score, at]).sort((a, b) => b[0] - a[0] || a[1] - b[1]).slice(0, k).map(x => x[1]))
  const pairs = order[0].flatMap((row, i) => order[1].map((column, j) => (
    { i: i + 1, j: j + 1, row, column, sum: scores[0][row] + scores[1][column], can: (i + 1) * (j + 1) <= k, place: 0 })))
  const best = pairs.filter(p => p.can).sort((a, b) => b.sum - a.sum || a.i - b.i).slice(0, k)
  best.forEach((pair, at) => { pair.place = at + 1 })
  const powers = best.map(p => Math.exp(p.sum - best[0].sum)), all = powers.reduce((a, b) => a + b, 0)
  const winners = best.map((p, at) => ({ expert: p.row * side + p.column, row: p.row, column: p.column, score: p.sum, share: powers[at] / all }))
  return { side, width: 2 * toy.keys[0][0].length, k, query, scores, order, pairs, winners,
    vectors: winners.map(w => toy.values[w.expert]), counts: counts(side, 2 * toy.keys[0][0].length, k) }
}

// All K experts, one by one: what product keys spare and must equal. For the 4 × 4 with whole keys, else with all sums.
function bruteForce(found, toy) {
  const { side, scores, query, k } = found, whole = query.flat(), best = []
  for (let row = 0; row < side; row++) for (let column = 0; column < side; column++) {
    const score = toy ? dot(whole, [...toy.keys[0][row], ...toy.keys[1][column]]) : scores[0][row] + scores[1][column]
    if (best.length === k && score <= best[k - 1]) continue
    let at = best.length
    while (at > 0 && best[at - 1] < score) at--
    best.splice(at, 0, score)
    if (best.length > k) best.pop()
  }
  return best
}
const agrees = (found, toy) => bruteForce(found, toy).every((s, at) => Math.abs(s - found.winners[at].score) <= 1e-5 * (1 + Math.abs(s)))

// --- words ------------------------------------------------------------------------------------------------------------

const figure = (x, digits = 2) => (x < 0 ? '−' : '') + Math.abs(x).toFixed(digits)
const score = x => figure(x, 3)
const total = ({ scores }, { row, column }) => score(+scores[0][row].toFixed(3) + +scores[1][column].toFixed(3))  // adds up as shown
const many = x => x.toLocaleString('en')
const fill = (words, given) => words.replace(/\{(\w+)\}/g, (_, name) => given[name] ?? '')
function write(place, words) {
  place.replaceChildren(...words.split('**').map((part, at) => {
    const node = document.createElement(at % 2 ? 'b' : 'span')
    node.textContent = part
    return node
  }))
}

// --- the picture ------------------------------------------------------------------------------------------------------

function set(node, given) {
  for (const [name, value] of Object.entries(given)) node.setAttribute(name, value)
  return node
}
const svg = (tag, parent, given = {}) => parent.appendChild(set(document.createElementNS(NS, tag), given))
// A rectangle with two lines of text that moves as one: x, y, w, h and o (opacity).
function box(parent) {
  const g = svg('g', parent), rect = svg('rect', g, { rx: 1.5 }), upper = svg('text', g), lower = svg('text', g, { class: 'small' })
  return { g, rect, upper, lower, now: null, to: null }
}
function put(one, { x, y, w, h, o }) {
  one.g.setAttribute('transform', `translate(${x.toFixed(2)} ${y.toFixed(2)})`)
  one.g.setAttribute('opacity', o.toFixed(3))
  one.g.style.visibility = o < 0.01 ? 'hidden' : ''
  one.rect.setAttribute('width', Math.max(w, 0).toFixed(2))
  one.rect.setAttribute('height', Math.max(h, 0).toFixed(2))
  const two = one.lower.textContent !== ''
  for (const [text, down] of [[one.upper, two ? 0.36 : 0.53], [one.lower, 0.74]]) {
    text.setAttribute('x', w / 2)
    text.setAttribute('y', h * down)
    if (one.turned && text === one.upper) text.setAttribute('transform', `rotate(-90 ${w / 2} ${h / 2})`)
    else text.removeAttribute('transform')
  }
}
function look(one, fill, stroke, ink, upper = '', size = 11, lower = '', dash = '') {
  one.rect.setAttribute('fill', fill)
  one.rect.setAttribute('stroke', stroke)
  one.rect.setAttribute('stroke-dasharray', dash)
  one.upper.textContent = upper
  one.lower.textContent = lower
  one.upper.setAttribute('font-size', size)
  for (const text of [one.upper, one.lower]) text.setAttribute('fill', ink)
}

function mix(low, high, part) {
  const of = colour => [1, 3, 5].map(i => parseInt(colour.slice(i, i + 2), 16))
  const [a, b] = [of(low), of(high)]
  return '#' + a.map((x, i) => Math.round(x + (b[i] - x) * part).toString(16).padStart(2, '0')).join('')
}
const light = colour => [1, 3, 5].reduce((sum, i, at) => sum + [0.2126, 0.7152, 0.0722][at] * (parseInt(colour.slice(i, i + 2), 16) / 255) ** 2.2, 0)
const inkOn = colour => light(colour) > 0.18 ? '#000000' : '#ffffff'
const shade = (scores, at, ramp) => {
  const [low, high] = [Math.min(...scores), Math.max(...scores)]
  return mix(ramp[0], ramp[1], (scores[at] - low) / Math.max(high - low, 1e-9))
}

function build(me) {
  const { found, data } = me, large = found.side > data.largest
  me.svg.replaceChildren()
  const layer = () => svg('g', me.svg)
  const [lines, back, strips, ringLayer] = [layer(), layer(), layer(), layer()]
  me.parts = { lines, panel: layer() }
  me.large = large
  me.ground = large ? svg('rect', back, { class: 'ground' }) : null
  const squares = large ? found.pairs.map(p => [p.row, p.column])
    : Array.from({ length: found.side ** 2 }, (_, e) => [Math.floor(e / found.side), e % found.side])
  me.squares = new Map(squares.map(([row, column]) => {
    const one = box(back), expert = row * found.side + column
    Object.assign(one, { row, column, expert })
    one.title = svg('title', one.g)
    one.g.dataset.expert = expert
    return [expert, one]
  }))
  const drawn = half => large ? found.order[half] : found.scores[half].map((_, at) => at)
  me.strips = [0, 1].map(half => drawn(half).map(at => Object.assign(box(strips), { at, turned: false })))
  me.bins = large ? [0, 1].map(() => svg('g', strips)) : null
  me.threads = large ? [0, 1].map(half => found.order[half].map(() => svg('line', lines))) : null
  me.query = found.query.map(half => half.map(() => box(me.parts.panel)))
  me.labels = [0, 1, 2, 3].map(() => svg('text', me.parts.panel, { class: 'label' }))
  me.dials = data.toy ? [0, 1].map(() => svg('g', me.parts.panel, { class: 'dial' })) : null
  me.list = svg('g', me.parts.panel, { class: 'list' })
  me.vectors = found.winners.map(() => Object.assign(box(me.parts.panel), { cells: [] }))
  me.shares = found.winners.map(() => box(me.parts.panel))
  me.ring = svg('rect', ringLayer, { class: 'ring', fill: 'none', rx: 2 })
  me.cursor = svg('rect', ringLayer, { class: 'cursor', fill: 'none', rx: 2 })
  me.built = key(me)
}
const key = me => [me.data.name, me.found.side, me.found.k].join()

// Where everything is in a step.
function places(me) {
  const { found, data, step } = me, { side, k } = found, c = data.colours, late = me.order(step)
  const W = Math.max(280, Math.min(me.svg.parentElement.clientWidth, 720)), narrow = W < 500
  const rowW = narrow ? 66 : 84, colH = narrow ? 58 : 62, rank = 22
  const G = narrow ? Math.min(W - rowW - 2, 300) : Math.min(264, W - rowW - 240)
  const px = narrow ? 0 : rowW + G + 28, py = narrow ? colH + G + 16 : 0, pw = narrow ? W - 2 : Math.min(W - px - 2, 300)
  const own = found.winners.length
  const ph = narrow ? (late >= me.order('Win') || !data.toy ? Math.max(120, 24 + own * (data.toy && late >= me.order('Gather') ? 54 : 19)) : 212) : colH + G
  const H = narrow ? py + ph : colH + G + 4
  me.svg.setAttribute('viewBox', `0 0 ${W} ${H}`)
  me.svg.style.height = `${H}px`
  const cs = G / side, m = found.order[0].length, sorted = step === 'Pair', big = sorted ? Math.min(G / m, 68) : cs
  const gap = big > 12 ? 2 : 1, scored = late >= me.order('Score'), kept = late >= me.order('Keep'), won = late >= me.order('Win')
  const pairs = new Map(found.pairs.map(p => [p.row * side + p.column, p]))
  const spot = Math.max(cs, 6)
  me.cs = cs

  if (me.ground) {
    set(me.ground, { x: rowW, y: colH, width: G, height: G, fill: c.load[0], stroke: c.line, opacity: sorted ? 0 : 1 })
  }
  for (const one of me.squares.values()) {
    const p = pairs.get(one.expert)
    one.to = sorted && p ? { x: rowW + (p.j - 1) * big, y: colH + (p.i - 1) * big, w: big - gap, h: big - gap, o: 1 }
      : { x: rowW + (one.column + 0.5) * cs - spot / 2, y: colH + (one.row + 0.5) * cs - spot / 2, w: spot - gap, h: spot - gap, o: 1 }
    const inked = inkOn(c.load[3])
    if (won && p?.place) {
      one.to.o = 1
      if (cs < 22 && !me.large) { one.to.x -= 2; one.to.y -= 2; one.to.w += 4; one.to.h += 4; one.g.parentElement.appendChild(one.g) }
      look(one, c.load[3], c.ground, inked, me.large ? '' : `${p.place}`, cs > 40 ? 20 : Math.min(12, cs * 0.72), cs > 40 ? total(found, p) : '')
    } else if (won) {
      look(one, p?.can ? c.load[1] : c.load[0], c.line, c.text, '', 11, cs > 40 && p?.can ? total(found, p) : '')
      one.to.o = me.large ? (p.can ? 0.8 : 0) : p?.can ? 1 : 0.55
    } else if (sorted && p) {
      look(one, p.can ? c.load[1] : 'transparent', p.can ? c.muted : c.line, p.can ? c.text : c.muted, big > 20 ? `${p.i * p.j}` : '',
        big > 44 ? 18 : 11, big > 44 ? `${p.i}. × ${p.j}.` : '', p.can ? '' : '3 2')
    } else {
      look(one, kept && p ? c.load[1] : c.load[0], c.line, c.text)
      one.to.o = me.large || sorted ? 0 : kept && !p ? 0.35 : 1
    }
    one.title.textContent = told(me, one)
  }
  for (const half of [0, 1]) {
    const ramp = half ? c.cool : c.warm, ranks = new Map(found.order[half].map((at, place) => [at, place + 1]))
    for (const one of me.strips[half]) {
      const place = ranks.get(one.at), at = sorted && place ? (place - 1) * big : one.at * cs
      const size = sorted && place ? big - gap : Math.max(cs, me.large ? 3 : 0) - gap
      one.to = half ? { x: rowW + at, y: 0, w: size, h: colH - rank, o: 1 } : { x: 0, y: colH + at, w: rowW - rank, h: size, o: 1 }
      if (kept && !place) one.to.o = sorted ? 0 : 0.3
      if (me.large && !sorted) one.to.o = kept ? 1 : 0
      const colour = scored ? shade(found.scores[half], one.at, ramp) : c.ground
      one.turned = half === 1 && size < 34
      const shown = scored && size >= 12 ? score(found.scores[half][one.at]) : '', called = data.toy ? `${half ? data.words.column : data.words.row} ${one.at}` : ''
      look(one, colour, scored ? 'none' : ramp[1], inkOn(scored ? colour : c.ground), shown || called, Math.min(12, size * 0.8), shown ? called : '')
      one.mark ??= svg('text', one.g, { class: 'rank' })
      one.mark.textContent = kept && place && size >= 9 ? `${place}.` : ''
      const [x, y] = half ? [size / 2, colH - rank / 2] : [rowW - rank / 2, size / 2]
      set(one.mark, { fill: c.text, 'font-size': Math.min(12, Math.max(9, size * 0.8)), x, y })
    }
    if (me.bins) {
      const count = Math.floor(G / 2), group = me.bins[half]
      group.replaceChildren()
      group.setAttribute('opacity', sorted ? 0 : scored ? (kept ? 0.45 : 1) : 0.25)
      for (let bin = 0; bin < count; bin++) {
        const [from, to] = [Math.floor(bin * side / count), Math.floor((bin + 1) * side / count)]
        let top = from
        for (let at = from; at < to; at++) if (found.scores[half][at] > found.scores[half][top]) top = at
        const at = bin * G / count, thick = G / count
        svg('rect', group, { x: half ? rowW + at : 0, y: half ? 0 : colH + at, width: half ? thick : rowW - rank, height: half ? colH - rank : thick,
          fill: scored ? shade(found.scores[half], top, ramp) : c.line })
      }
      me.threads[half].forEach((line, place) => {
        const at = (found.order[half][place] + 0.5) * cs
        const ends = half ? { x1: rowW + at, x2: rowW + at, y1: colH - rank, y2: colH + G } : { x1: rowW - rank, x2: rowW + G, y1: colH + at, y2: colH + at }
        set(line, { ...ends, stroke: ramp[1], 'stroke-width': 1, opacity: kept && !sorted ? 0.7 : 0 })
        me.parts.lines.parentElement.appendChild(me.parts.lines)
      })
    }
  }
  panel(me, { px, py, pw, ph, rowW, colH, cs, narrow, scored, kept, won })
  const bet = me.squares.get(me.bet)
  for (const [ring, one] of [[me.ring, bet], [me.cursor, me.walking ? me.squares.get(me.at) : null]]) {
    ring.style.visibility = one && one.to.o > 0.2 ? '' : 'hidden'
    if (one) set(ring, { x: one.to.x - 2, y: one.to.y - 2, width: one.to.w + 4, height: one.to.h + 4 })
  }
}

// Beside the grid: the query, then the sums, then the vectors.
function panel(me, { px, py, pw, ph, rowW, colH, cs, narrow, scored, kept, won }) {
  const { found, data, step } = me, c = data.colours, w = data.words, half = found.query[0].length
  const asks = !won, gathered = step === 'Gather' || step === 'Weigh', split = me.joined ? 0 : 16
  const each = (pw - split) / (2 * half), tall = data.toy ? 28 : 34
  const most = Math.max(...found.query.flat().map(Math.abs), 1e-9)
  found.query.forEach((values, side) => values.forEach((value, at) => {
    const one = me.query[side][at], ramp = side ? c.cool : c.warm
    one.to = { x: px + side * (half * each + split) + at * each, y: py + 20, w: each - (each > 8 ? 2 : 0.5), h: tall, o: asks ? 1 : 0 }
    const colour = me.joined ? mix(c.load[0], c.muted, Math.abs(value) / most) : mix(c.load[0], ramp[1], Math.abs(value) / most)
    look(one, colour, c.line, inkOn(colour), each > 30 ? figure(value) : '', 12)
  }))
  const radius = Math.min(pw / 4 - 16, narrow ? 44 : 62), centre = [px + half * each / 2, px + half * each * 1.5 + split]
  me.labels.forEach((label, at) => {
    label.textContent = at > 1 ? (me.dials && !me.joined ? w.dials[at - 2] : '') : me.joined ? (at ? '' : w.query) : fill(w.half[at], {})
    label.setAttribute('x', me.joined || at > 1 ? px + pw / 2 : centre[at])
    label.setAttribute('y', at > 1 ? py + 52 + tall + 2 * radius + 16 * (at - 1) : py + 11)
    label.setAttribute('fill', me.joined || at > 1 ? c.text : at ? c.cool[1] : c.warm[1])
    label.setAttribute('opacity', asks ? 1 : 0)
  })
  if (me.dials) me.dials.forEach((dial, side) => {
    const R = radius, y = py + 20 + tall + 16 + R, ramp = side ? c.cool : c.warm
    dial.replaceChildren()
    dial.setAttribute('opacity', asks && !me.joined ? 1 : 0)
    svg('circle', dial, { cx: centre[side], cy: y, r: R, fill: 'none', stroke: c.line })
    const hand = ([x, up], long, given) => svg('line', dial, { x1: centre[side], y1: y, x2: centre[side] + x * long, y2: y - up * long, ...given })
    data.toy.keys[side].forEach((one, at) => {
      const stays = !kept || found.order[side].includes(at)
      hand(one, R, { stroke: ramp[1], 'stroke-width': 1.5, opacity: stays ? 0.9 : 0.25 })
      const name = svg('text', dial, { x: centre[side] + one[0] * (R + 9), y: y - one[1] * (R + 9), fill: ramp[1], 'font-size': 11, opacity: stays ? 1 : 0.35 })
      name.textContent = at
    })
    hand(found.query[side], R, { stroke: c.text, 'stroke-width': 4, 'stroke-linecap': 'round' })
  })
  // Lists of words: what stays (without dials), then the sums.
  const rows = []
  if (kept && asks && !data.toy) found.order[0].forEach((row, at) => rows.push([
    `${at + 1}. ${w.row} ${many(row)}: ${score(found.scores[0][row])}`, `${at + 1}. ${w.column} ${many(found.order[1][at])}: ${score(found.scores[1][found.order[1][at]])}`]))
  if (step === 'Win') found.winners.forEach((one, at) => rows.push([
    `${at + 1}. ${fill(w.square, { row: many(one.row), column: many(one.column) })}: ${added(found, one)}`]))
  const top = py + (asks ? 20 + tall + 20 : 10), room = Math.min(20, (ph - (top - py)) / Math.max(rows.length, 1))
  me.list.replaceChildren(...rows.flatMap((row, line) => row.map((words, column) => {
    const text = svg('text', me.list, { x: px + column * pw / 2, y: top + line * room, 'font-size': Math.min(12.5, room * 0.8), fill: asks ? (column ? c.cool[1] : c.warm[1]) : c.text })
    text.textContent = words
    return text
  })))
  // The winners' vectors fly out of their squares.
  const deep = Math.min(data.toy ? 54 : 30, (ph - 26) / Math.max(found.winners.length, 1)), names = data.toy ? 0 : 74, bar = 88
  const above = data.toy ? 18 : 0  // of the 4 × 4 the name stands above its numbers, which are multiplied by the share in view
  const wide = pw - names - bar, largest = Math.max(...found.vectors.flat().map(Math.abs), 1e-9)
  const full = Math.max(...found.winners.map(x => x.share), 1e-9)
  found.winners.forEach((one, at) => {
    const vector = me.vectors[at], values = found.vectors[at] || [], y = py + 22 + at * deep
    vector.to = gathered ? { x: px + names, y: y + above, w: wide, h: deep - 4 - above, o: 1 }
      : { x: rowW + one.column * cs, y: colH + one.row * cs, w: cs, h: cs, o: 0 }
    look(vector, 'none', 'none', c.text)
    while (vector.cells.length < values.length) vector.cells.push(svg('rect', vector.g))
    vector.numbers ??= data.toy ? values.map(() => svg('text', vector.g)) : []
    const share = me.shares[at], weighs = step === 'Weigh', strong = weighs ? Math.max(one.share / full, 0.06) : 1
    vector.cells.forEach((cell, i) => {
      const fill = mix(c.load[0], values[i] < 0 ? c.cool[1] : c.warm[1], Math.abs(values[i]) / largest * (data.toy ? strong : 1))
      set(cell, { fill, opacity: data.toy ? 1 : strong })
      if (data.toy) set(vector.numbers[i], { fill: inkOn(fill), 'font-size': 12 }).textContent = figure(values[i] * (weighs ? one.share : 1))
    })
    share.to = { x: px + names + wide + 8, y: y + above, w: weighs ? (bar - 48) * one.share / full + 1 : 1, h: deep - 4 - above, o: weighs ? 1 : 0 }
    look(share, c.load[3], 'none', c.text)
    share.text ??= svg('text', share.g, { class: 'end' })
    share.text.textContent = `× ${Math.round(one.share * 100)}%`
    share.text.setAttribute('fill', c.text)
    vector.name ??= svg('text', vector.g, { class: data.toy ? 'end' : 'before' })
    const spot = fill(w.square, { row: one.row, column: one.column })
    vector.name.textContent = data.toy ? `${w.expert} ${one.expert} (${spot})` : `${at + 1}. ${w.expert} ${many(one.expert)}`
    vector.name.setAttribute('fill', c.text)
  })
  me.labels[0].setAttribute('class', gathered ? 'label first' : 'label')
  me.labels[1].setAttribute('class', gathered ? 'label last' : 'label')
  if (gathered) {
    me.labels[0].textContent = w.vectors
    me.labels[0].setAttribute('x', px)
    me.labels[0].setAttribute('fill', c.text)
    me.labels[0].setAttribute('opacity', 1)
    if (step === 'Weigh') {
      me.labels[1].textContent = w.shares
      me.labels[1].setAttribute('x', px + pw - 6)
      me.labels[1].setAttribute('fill', c.text)
      me.labels[1].setAttribute('opacity', 1)
    }
  }
}

const added = (found, one) => `${score(found.scores[0][one.row])} + ${score(found.scores[1][one.column])} = ${total(found, one)}`

function told(me, { row, column, expert }) {
  const { found, data } = me, p = found.pairs.find(each => each.row === row && each.column === column), late = me.order(me.step)
  const where = fill(data.words.square, { row: many(row), column: many(column) })
  if (late < me.order('Win')) return me.step === 'Pair' && p ? `${where}: ${fill(data.words.at_least, { i: p.i, j: p.j, all: p.i * p.j })}` : where
  return p?.can ? `${where}: ${added(found, p)}` : where
}

function show(one) {
  put(one, one.now)
  const { w, h } = one.now
  if (one.cells) {
    const each = w / Math.max(one.cells.length, 1)
    one.cells.forEach((cell, at) => set(cell, { x: at * each, width: Math.max(each - (each > 8 ? 1 : 0.2), 0.2), height: h }))
    one.numbers.forEach((text, at) => set(text, { x: (at + 0.5) * each, y: h / 2 }))
    set(one.name, one.numbers.length ? { x: 0, y: -9 } : { x: -6, y: h / 2 })
  }
  if (one.text) set(one.text, { x: w + 4, y: h / 2 })
}

function move(me, ms) {
  places(me)
  const every = [...me.squares.values(), ...me.strips.flat(), ...me.query.flat(), ...me.vectors, ...me.shares]
  cancelAnimationFrame(me.frame)
  const still = ms === 0 || matchMedia('(prefers-reduced-motion: reduce)').matches
  for (const one of every) one.from = one.now && !still ? { ...one.now } : null
  const began = performance.now()
  const tick = now => {
    const part = still ? 1 : Math.min((now - began) / ms, 1), eased = part < 0.5 ? 4 * part ** 3 : 1 - (2 - 2 * part) ** 3 / 2
    for (const one of every) {
      one.now = one.from ? Object.fromEntries(Object.entries(one.to).map(([name, to]) => [name, one.from[name] + (to - one.from[name]) * eased])) : { ...one.to }
      show(one)
    }
    if (part < 1) me.frame = requestAnimationFrame(tick)
  }
  tick(began)
}

// --- around the picture -----------------------------------------------------------------------------------------------

function html(tag, parent, given = {}, words = '') {
  const node = set(document.createElement(tag), given)
  if (words) node.textContent = words
  parent.appendChild(node)
  return node
}

function frame(me, parent) {
  const w = me.data.words
  me.root = html('div', parent, { class: 'picture' })
  const top = html('div', me.root, { class: 'top' })
  me.bar = html('div', top, { class: 'steps', role: 'group', 'aria-label': w.steps })
  const drive = html('div', top, { class: 'drive' })
  me.back = html('button', drive, { type: 'button' }, `← ${w.back}`)
  me.play = html('button', drive, { type: 'button' })
  me.next = html('button', drive, { type: 'button', class: 'primary' }, `${w.next} →`)
  me.say = html('p', me.root, { class: 'say', 'aria-live': 'polite' })
  me.stage = html('div', me.root, { class: 'stage' })
  const left = html('div', me.stage, { class: 'drawn' })
  me.sliders = html('div', left, { class: 'sliders' })
  me.svg = svg('svg', left, { tabindex: 0, role: 'group' })
  me.calc = html('p', left, { class: 'calc' })
  const aside = html('div', me.stage, { class: 'aside' })
  const table = html('table', aside, { 'aria-label': w.counts })
  me.cells = [['', w.halves, w.each], [w.dots], [w.multiplications], [w.pairs]].map((row, line) => {
    const tr = html('tr', table)
    return [0, 1, 2].map(at => html(row[at] ? 'th' : 'td', tr, row[at] ? { scope: line ? 'row' : 'col' } : {}, row[at] || ''))
  })
  me.agree = html('p', aside, { class: 'agree' })
  me.note = html('p', aside, { class: 'note' })
  me.told = html('span', me.root, { class: 'told', 'aria-live': 'polite' })
  me.back.onclick = () => { stop(me); go(me, me.order(me.step) - 1) }
  me.next.onclick = () => { stop(me); go(me, me.order(me.step) + 1) }
  me.play.onclick = () => me.timer ? stop(me) : start(me)
  me.bar.onkeydown = event => {
    const by = { ArrowLeft: -1, ArrowRight: 1 }[event.key]
    if (!by) return
    event.preventDefault()
    stop(me)
    go(me, me.order(me.step) + by)
    me.bar.querySelector('[aria-current]')?.focus()
  }
  me.svg.onclick = event => { const on = event.target.closest('[data-expert]'); if (on) bet(me, Number(on.dataset.expert)) }
  me.svg.onkeydown = event => walk(me, event)
  me.svg.onblur = () => { me.walking = false; move(me, QUICK) }
  new ResizeObserver(() => {
    if (left.clientWidth === me.seen || !me.found) return
    me.seen = left.clientWidth
    move(me, 0)
  }).observe(left)
}

function walk(me, event) {
  const { side } = me.found, by = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -side, ArrowDown: side }[event.key]
  if (me.large) return
  if (event.key === 'Enter' || event.key === ' ') { event.preventDefault(); bet(me, me.at); return }
  if (!by) return
  event.preventDefault()
  const to = me.walking ? me.at + by : me.at, sideways = Math.abs(by) === 1
  if (to < 0 || to >= side * side || (sideways && me.walking && Math.floor(to / side) !== Math.floor(me.at / side))) return
  Object.assign(me, { at: to, walking: true })
  move(me, QUICK)
  me.told.textContent = told(me, me.squares.get(to))
}

function bet(me, expert) {
  if (!betting(me)) return
  me.bet = me.at = expert
  talk(me)
  move(me, QUICK)
}

function start(me) {
  if (me.order(me.step) === me.data.steps.length - 1) go(me, 0)
  const wait = () => Math.max(PLAY, WORD * me.say.textContent.split(/\s+/).length)  // until its words are read
  const next = () => {
    if (!me.root.isConnected) return
    go(me, me.order(me.step) + 1)
    if (me.order(me.step) === me.data.steps.length - 1) stop(me)
    else me.timer = setTimeout(next, wait())
  }
  me.timer = setTimeout(next, wait())
  talk(me)
}
function stop(me) {
  clearTimeout(me.timer)
  me.timer = 0
  talk(me)
  send(me)
}

function go(me, at) {
  const { steps, locked } = me.data
  if (at < 0 || at >= steps.length || locked.step) return
  me.step = steps[at]
  me.joined = false
  talk(me)
  move(me, MOVE)
  if (!me.timer || me.step === 'Win') send(me)  // the tour waits for the winners
}

// Tells Python what the address is to say: once things are calm, and never what it knows.
function send(me) {
  clearTimeout(me.waiting)
  me.waiting = setTimeout(() => {
    const said = { step: me.step, ...(me.data.toy ? { angles: me.angles, k: me.k } : {}) }, words = JSON.stringify(said)
    if (words === me.said || !me.root.isConnected) return
    me.said = words
    me.sent.push(words)
    me.tell('moved', said)
  }, WAIT)
}

function turn(me) {
  const { toy } = me.data
  if (toy) me.found = searched(toy, me.angles, me.k)
  me.tried += 1
  me.agreed += agrees(me.found, toy) ? 1 : 0
  me.root.dataset.found = JSON.stringify({ winners: me.found.winners, pairs: me.found.pairs, counts: me.found.counts, agreed: me.agreed, tried: me.tried })
}

function sliders(me) {
  const { toy, words: w, locked } = me.data
  me.sliders.hidden = !toy
  me.sliders.replaceChildren()
  if (!toy) return
  const given = [[w.sliders[0], 0, 355, 5, me.angles[0], '°'], [w.sliders[1], 0, 355, 5, me.angles[1], '°'], [w.sliders[2], 1, toy.most, 1, me.k, '']]
  given.forEach(([words, min, max, step, value, unit], at) => {
    const label = html('label', me.sliders), line = html('span', label, {}, `${words} `), read = html('output', line, {}, `${value}${unit}`)
    const range = html('input', label, { type: 'range', min, max, step, value, 'aria-label': words })
    range.disabled = locked.query
    range.oninput = () => {
      const now = Number(range.value)
      read.textContent = `${now}${unit}`
      if (at < 2) me.angles = me.angles.map((old, i) => i === at ? now : old)
      else me.k = now
      me.joined = false
      turn(me)
      if (me.built !== key(me)) build(me)
      talk(me)
      move(me, QUICK)
      send(me)
    }
  })
}

// Everything that is words.
function talk(me) {
  const { data, found, step } = me, w = data.words, late = me.order(step), { side, k, counts: n } = found
  const last = data.steps.length - 1
  if (me.bar.dataset.steps !== data.steps.join()) {  // else they stay, and with them the focus
    me.bar.dataset.steps = data.steps.join()
    me.bar.replaceChildren()
    data.steps.forEach((each, at) => { html('button', me.bar, { type: 'button' }, `${at + 1} ${each}`).onclick = () => { stop(me); go(me, at) } })
  }
  for (const [at, button] of [...me.bar.children].entries()) {
    button.tabIndex = at === late ? 0 : -1
    button.disabled = data.locked.step
    if (at === late) button.setAttribute('aria-current', 'step')
    else button.removeAttribute('aria-current')
  }
  me.back.disabled = late === 0 || data.locked.step
  me.next.disabled = late === last || data.locked.step
  me.play.disabled = data.locked.step
  me.play.textContent = me.timer ? `❚❚ ${w.pause}` : `▶ ${w.play}`
  const out = found.pairs.some(p => !p.can), first = found.winners[0]
  const given = { d: found.width, half: found.width / 2, side: many(side), short: many(n.short), m: found.order[0].length, k, all: many(side * side),
    pairs: n.pairs, row: many(first.row), column: many(first.column), expert: many(first.expert) }
  const which = step === 'Keep' && found.order[0].length === side ? 'Keep all' : step === 'Pair' && !out ? 'Pair one' : step
  write(me.say, `**${late + 1}. ${step}.** ${fill(data.says[which], given)}`)
  me.stage.hidden = step === 'Vote'
  const done = late >= me.order('Score'), added = late >= me.order('Pair'), won = late >= me.order('Win')
  const rows = [[done ? fill(w.short, { n: many(n.short) }) : '0', fill(w.long, { n: many(n.long) })],
    [done ? many(n.multiplications) : '0', many(n.long_multiplications)], [added ? many(n.pairs) : '0', many(n.long)]]
  rows.forEach((row, line) => row.forEach((words, at) => { me.cells[line + 1][at + 1].textContent = words }))
  const all = me.agreed === me.tried
  me.agree.classList.toggle('wrong', !all)
  write(me.agree, won ? `${all ? '✓' : '✗'} ${fill(all ? w.agree : w.wrong, { long: many(n.long), k })}` : '')
  me.note.textContent = won ? data.note : ''
  write(me.calc, calculation(me, won))
  me.svg.setAttribute('aria-label', fill(w.alt, { side: many(side), step, ...given }) + (won ? ` ${found.winners.map((one, at) => `${at + 1}. ${fill(w.square, { row: many(one.row), column: many(one.column) })}`).join(', ')}.` : ''))
}

// The bet, from the step on that shows the scores: before, it would be a guess.
function asked(me) {
  if (!betting(me)) return ''
  return me.bet === null ? me.data.words.bet : fill(me.data.words.betted, { square: betted(me) })
}

function betted(me) {
  const { side } = me.found
  return fill(me.data.words.square, { row: many(Math.floor(me.bet / side)), column: many(me.bet % side) })
}

function betting(me) {
  const late = me.order(me.step)
  return !me.large && late >= me.order('Score') && late < me.order('Win')
}

function calculation(me, won) {
  const { data, found, step } = me, w = data.words
  if (step === 'Score' && data.toy) {
    const row = found.scores[0].indexOf(Math.max(...found.scores[0])), [a, c] = found.query[0], [b, d] = data.toy.keys[0][row]
    const times = (x, y) => `${figure(x)} × ${y < 0 ? `(${figure(y)})` : figure(y)}`
    return `${fill(w.dot, { row, sum: `${times(a, b)} + ${times(c, d)} = **${score(found.scores[0][row])}**` })}. ${asked(me)}`
  }
  if (me.large) return ''
  if (!won) return asked(me)
  if (me.bet === null) return ''
  const square = betted(me)
  const place = found.winners.findIndex(one => one.expert === me.bet) + 1
  return `${fill(place ? w.placed : w.lost, { square, place, k: found.k })} ${w.rule}`
}

export default function({ data, setTriggerValue, parentElement }) {
  let me = parentElement.picture
  const fresh = !me || !me.root.isConnected
  if (fresh) {
    me = parentElement.picture = { data, sent: [], tried: 0, agreed: 0, bet: null, at: 0, timer: 0 }
    frame(me, parentElement)
  }
  const other = me.name !== data.name
  me.order = step => data.steps.includes(step) ? data.steps.indexOf(step) : 99
  me.tell = setTriggerValue
  me.root.style.setProperty('--ring', data.colours.gold)
  me.data = data
  const said = JSON.stringify({ step: data.step, ...(data.toy ? { angles: data.toy.angles, k: data.toy.k } : {}) })
  const echo = me.sent.indexOf(said)
  if (fresh || other || (echo < 0 && said !== me.heard)) {  // Python says something that was not said here
    if (fresh || other) Object.assign(me, { tried: 0, agreed: 0, bet: null, at: 0 })
    const moved = !fresh && me.step !== data.step
    Object.assign(me, { name: data.name, step: data.step, found: data.found, said, sent: [] })
    if (data.toy) Object.assign(me, { angles: data.toy.angles, k: data.toy.k })
    me.joined = fresh && data.step === 'Split' && !matchMedia('(prefers-reduced-motion: reduce)').matches
    turn(me)
    sliders(me)
    build(me)
    talk(me)
    move(me, moved && !other ? MOVE : 0)
    if (me.joined) setTimeout(() => { if (me.joined) { me.joined = false; move(me, MOVE) } }, 1100)
  } else {  // what moves goes on moving, and a slider stays in its hand
    if (echo >= 0) me.sent.splice(0, echo + 1)
    talk(me)
    if (JSON.stringify(data.colours) !== me.coloured) move(me, 0)
  }
  Object.assign(me, { heard: said, coloured: JSON.stringify(data.colours) })
}
