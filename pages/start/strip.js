// Draws the strip of strip.py: history, grid of experts, the most wanted, the list, and the lines between them. Every text of the
// data is set as text, never as markup; markup holds numbers and our colours alone.
const SVG = 'http://www.w3.org/2000/svg'
const SEEN = 0.08, CLEAR = 0.1  // a share below SEEN is not told; below CLEAR an expert has not kept an event
const CONFIRMED = 0.1, CREDITED = 0.15  // a removal that takes so much confirms a line; a share of so much draws a faint one
const SMALL = 0.05  // experts with a smaller part of the list are folded, but not the first, the one a button offers, or one with a bold line
const UNCHANGED = 0.005  // a removal that changes less changes nothing: no line leads there
const CROSS = 20  // pixels that the cross takes of a name
const BUILD = 2900, BEGAN = 'strip_began'  // milliseconds that the picture takes to build itself, and when it began in this visit
const part = share => share >= 0.995 ? '100%' : share < 0.01 ? '<1%' : `${Math.round(100 * share)}%`
const chance = times => times >= 2 ? `rises to ${times >= 10 ? Math.round(times) : times.toFixed(1)} times as much`
  : times > 1.02 ? `rises by ${part(times - 1)}` : times > 0.98 ? 'hardly changes' : `falls by ${part(1 - times)}`
const change = times => times > 0.995 && times < 1.005 ? '±0%' : times < 1 ? `−${part(1 - times)}` : times < 10
  ? `+${Math.round(100 * (times - 1))}%` : `×${Math.round(times)}`

function element(tag, name, text) {
  const made = document.createElement(tag)
  if (name) made.className = name
  if (text !== undefined) made.textContent = text
  return made
}

function column(name, heading, below) {
  const made = element('section', name)
  made.append(element('h3', '', heading))
  made.append(element('p', 'of', below))
  return made
}

function cover(of) {
  const made = element('span', 'cover', of.initials)
  made.setAttribute('aria-hidden', 'true')
  made.style.background = of.colour
  made.style.color = of.ink
  return made
}

// Milliseconds since the picture began to build itself in this browser's session; null once it stands.
function timeSinceBuild() {
  try {
    if (sessionStorage.getItem(BEGAN) === null) sessionStorage.setItem(BEGAN, String(Date.now()))
    const elapsed = Date.now() - Number(sessionStorage.getItem(BEGAN))
    return elapsed >= 0 && elapsed < BUILD ? elapsed : null
  } catch { return null }  // a browser that keeps nothing
}

// What each mark of the picture means: [kind of mark, sentence].
function legend(rows, colours) {
  const made = element('ul', 'legend')
  for (const [kind, text] of rows) {
    const line = element('li'), mark = element('span', `mark-${kind}`, { chosen: '1', other: 'Aa', strongest: '◆' }[kind] ?? '')
    mark.setAttribute('aria-hidden', 'true')
    if (kind === 'load') mark.style.background = `linear-gradient(90deg, ${colours.load.join(', ')})`
    if (kind === 'edges') mark.style.background = `linear-gradient(90deg, ${colours.warm[1]} 50%, ${colours.cool[1]} 50%)`
    line.append(mark, element('span', '', text))
    made.append(line)
  }
  return made
}

// Brings what the page opens below the picture into view, as soon as it is there.
function showDetails(calm) {
  let tries = 0
  const look = setInterval(() => {
    const panel = document.querySelector('.st-key-start_details')
    if (panel || tries++ > 100) clearInterval(look)
    if (panel) setTimeout(() => panel.scrollIntoView({ block: 'nearest', behavior: calm ? 'auto' : 'smooth' }), 250)
  }, 100)
}

// The squares as markup: numbers and our colours alone.
function squares({ side, drawn, load, ground, rows, columns, picked }, experts, colours) {
  const cell = (x, y, fill, more) => `<rect x="${x + 0.04}" y="${y + 0.04}" width="0.92" height="0.92" fill="${fill}" ${more}/>`
  const edge = -1 - side / 20
  let inside = ''
  for (let i = 0; i < side; i++) inside += cell(edge, i, rows[i], '') + cell(i, edge, columns[i], '')
  if (drawn.length < side * side) inside += `<rect width="${side}" height="${side}" fill="${ground}"/>`
  drawn.forEach((e, i) => { inside += cell(e % side, Math.floor(e / side), load[i], `data-e="${e}"`) })
  inside += '<g class="taken">'
  for (const { id, rank, quiet } of experts) {
    const x = id % side, y = Math.floor(id / side), wide = 'stroke-width="2" vector-effect="non-scaling-stroke"'
    const box = (x, y, fill) => `<rect x="${x + 0.06}" y="${y + 0.06}" width="0.88" height="0.88" fill="${fill}" ` +
      `stroke="${colours.lit}" ${wide} pointer-events="none"/>`
    inside += box(x, y, quiet ? 'none' : colours.lit) + box(edge, y, 'none') + box(x, edge, 'none')
    inside += `<text x="${x + 0.5}" y="${y + 0.5}" font-size="0.85" fill="${quiet ? colours.lit : colours.ground}">` +
      `${quiet ? '×' : rank}</text>`
  }
  inside += '</g>'
  if (picked !== null) inside += `<rect x="${picked % side - 0.06}" y="${Math.floor(picked / side) - 0.06}" width="1.12" ` +
    `height="1.12" fill="none" stroke="${colours.picked}" stroke-width="3" vector-effect="non-scaling-stroke" pointer-events="none"/>`
  return { inside, box: `${edge - 0.1} ${edge - 0.1} ${side - edge + 0.2} ${side - edge + 0.2}` }
}

export default function drawStrip({ data, setTriggerValue, parentElement }) {
  const { events, grid, experts, offered, list, left, locked, colours, says, opened } = data
  let root = parentElement.querySelector('div.strip')
  if (!root) {
    root = element('div', 'strip')
    parentElement.appendChild(root)
  }
  const before = root.memory && root.memory.who === data.who ? root.memory : null
  const focused = root.getRootNode().activeElement
  const held = root.contains(focused) && focused.dataset.kind ? { ...focused.dataset } : null
  const calm = matchMedia('(prefers-reduced-motion: reduce)').matches
  for (const [name, colour] of Object.entries(colours)) root.style.setProperty(`--${name}`, colour)

  // --- what stands there ---
  const flow = element('div', 'flow' + (experts.length ? grid ? '' : ' unlit' : ' plain'))
  const nodes = { event: [], expert: [], item: [] }
  const confirmed = at => list.some(of => of.without[at] !== null && of.without[at] <= 1 - CONFIRMED)
  const small = experts.map((_, at) => at).filter(at => at && experts[at].part !== null && experts[at].part < SMALL
    && !experts[at].quiet && experts[at].id !== offered && !confirmed(at))
  function node(kind, at, of, name) {
    const made = element('button', `node ${name}`)
    made.type = 'button'
    made.tabIndex = at ? -1 : 0
    made.dataset.kind = kind
    made.dataset.at = at
    nodes[kind][at] = made
    const number = { event: of.place, expert: of.id, item: of.item }[kind]
    if (opened === `${kind}-${number}`) {
      made.classList.add('opened')
      made.setAttribute('aria-expanded', 'true')
    }
    const line = element('li')
    line.style.setProperty('--i', at)
    line.append(made)
    return [line, made]
  }
  // A cross beside what can be taken away; where it is away already, an arrow that brings it back.
  function away(kind, at, of, gone) {
    const made = element('button', 'away', gone ? '↺' : '×')
    made.type = 'button'
    made.tabIndex = -1  // by keyboard: Delete on the thing itself
    made.title = made.ariaLabel = (gone ? says.back : says.away).replace('{}', () => of.name || `${says.expert} ${of.id}`)
    made.hidden = kind === 'event' ? locked.remove : locked.silence
    made.onclick = () => { takeAway(kind, at) }
    return made
  }
  const history = column('events', says.history[0], says.history[1]), earliest = element('ol')
  earliest.setAttribute('aria-label', says.history[2])
  events.forEach((of, at) => {
    const [line, made] = node('event', at, of, of.gone ? 'gone' : '')
    made.append(cover(of.cover), element('span', 'name', of.label), element('span', 'n'))
    made.setAttribute('aria-label', `${of.name}${of.gone ? says.gone : ''}`)
    line.append(away('event', at, of, of.gone))
    earliest.append(line)
  })
  history.append(earliest)
  flow.append(history)

  let svg = null
  if (experts.length) {
    if (grid) {
      const search = column('search', says.search[0], says.search[1]), { inside, box } = squares(grid, experts, colours)
      search.insertAdjacentHTML('beforeend', `<svg class="grid" viewBox="${box}" tabindex="0" role="group">${inside}` +
        '<g class="asked"></g></svg>')
      search.append(legend(says.legend, colours))
      svg = search.querySelector('svg.grid')
      svg.setAttribute('aria-label', says.grid)
      flow.append(search)
    }
    const most = column('experts', says.experts[0], says.experts[1]), chosen = element('ol')
    chosen.setAttribute('aria-label', says.experts[2])
    const folded = small.length > 1 && !root.unfolded ? small : []
    experts.forEach((of, at) => {
      if (folded.includes(at)) return
      const [line, made] = node('expert', at, of, of.quiet ? 'quiet' : '')
      if (of.part !== null) {
        line.style.flexGrow = Math.max(of.part, 0.001)
        line.style.setProperty('--part', of.part)
      }
      const title = element('span', of.fits === false ? 'name other' : 'name', (of.id === offered ? '◆ ' : '') + (of.name ? `${of.id} · ${of.name}` : `${says.Expert} ${of.id}`))
      made.append(element('span', 'rank', `${of.rank}.`), title, element('span', 'n'))
      if (of.part !== null) {
        const share = element('span', 'part', of.quiet ? '' : part(of.part))
        share.dataset.of = says.part_of
        made.append(share)
      }
      if (of.sub) made.append(element('span', 'sub', of.sub))
      made.setAttribute('aria-label', `${of.rank}. expert ${of.id}, ${of.name}. ${of.sub}${of.quiet ? says.quiet : ''}${of.id === offered ? ` ${says.legend_strongest}` : ''}`)
      line.append(away('expert', at, of, of.quiet))
      chosen.append(line)
    })
    if (small.length > 1) {
      const line = element('li'), fold = element('button', 'node fold'), parts = small.reduce((sum, at) => sum + experts[at].part, 0)
      fold.type = 'button'
      fold.tabIndex = -1
      fold.dataset.kind = 'fold'
      const label = (folded.length ? says.folded : says.fold).replace('{}', small.length)
        .replace('{}', small.map(at => experts[at].rank).join(', '))
      fold.ariaLabel = label
      fold.setAttribute('aria-expanded', String(!folded.length))
      fold.append(element('span', 'name', label),
        element('span', 'part', folded.length ? part(parts) : ''))
      fold.onclick = () => {
        root.unfolded = folded.length > 0
        drawStrip({ data, setTriggerValue, parentElement })
        root.querySelector('.fold').focus()
      }
      line.style.setProperty('--part', folded.length ? parts : 0)
      line.append(fold)
      chosen.append(line)
      for (const at of folded) nodes.expert[at] = fold
    }
    most.append(chosen)
    const nobody = experts.every(of => of.part !== null) ? 1 - experts.reduce((sum, of) => sum + of.part, 0) : 0
    if (nobody >= SMALL) most.append(element('p', 'nobody', says.unowned.replace('{}', part(nobody))))
    flow.append(most)
  }
  const next = column('list', says.list[0], says.list[1]), ten = element('ol')
  ten.setAttribute('aria-label', says.list[2])
  list.forEach((of, at) => {
    const [line, made] = node('item', at, of, of.gold ? 'gold' : '')
    made.append(element('span', 'rank', of.rank), cover(of.cover), element('span', 'name', (of.gold ? '★ ' : '') + of.label),
      element('span', 'n'), element('span', 'mark', of.mark))
    made.setAttribute('aria-label', `${of.rank}. ${of.name}${of.gold ? ', ' + says.gold : ''} ${of.mark}`)
    line.dataset.item = of.item
    ten.append(line)
  })
  next.append(ten)
  if (left.length) {
    const out = element('div', 'left', says.left + ' ')
    left.forEach((of, at) => out.append(at ? ', ' : '', element('s', '', of.name), ` (${of.mark})`))
    next.append(out)
  }
  flow.append(next)
  const lines = document.createElementNS(SVG, 'svg')
  lines.setAttribute('class', 'lines')
  lines.setAttribute('aria-hidden', 'true')
  lines.innerHTML = '<g class="rest"></g><g class="lit"></g>'
  flow.append(lines)
  const tip = element('div', 'tip')
  tip.setAttribute('aria-hidden', 'true')
  const told = element('div', 'told', says.rest)
  told.setAttribute('aria-live', 'polite')
  root.replaceChildren(flow, told)
  root.classList.toggle('locked', locked.remove && locked.silence)

  // --- where it stands ---
  let still = false
  const cut = new Set()  // rows whose name does not fit
  const square = e => svg && svg.querySelector(`rect[data-e="${e}"]`)
  let zero
  // By layout, not by what is seen: a row on its way to a new rank is drawn elsewhere.
  function corner(of) {
    if (of.ownerSVGElement || of === svg) {
      const box = of.getBoundingClientRect()
      return [box.left - zero.left, box.top - zero.top, box.width, box.height]
    }
    let [x, y] = [0, 0]
    for (let up = of; up && up !== flow; up = up.offsetParent) { x += up.offsetLeft; y += up.offsetTop }
    return [x, y, of.offsetWidth, of.offsetHeight]
  }
  function end(of, side) {
    const [x, y, wide, high] = corner(of), down = flow.clientWidth <= 600
    if (of.tagName === 'rect') return [x + wide / 2, y + high / 2]
    if (side === 'in') return down && of.dataset.kind !== 'item' ? [x + wide / 2, y] : [x, y + high / 2]
    return down ? [x + wide / 2, y + high] : [x + wide, y + high / 2]
  }
  function curve(a, b, share, name = '') {
    const [x1, y1] = end(a, 'out'), [x2, y2] = end(b, 'in'), down = flow.clientWidth <= 600
    const bend = down ? `C${x1} ${(y1 + y2) / 2} ${down && b.dataset.kind === 'item' ? 0 : x2} ${(y1 + y2) / 2} ${x2} ${y2}`
      : `C${(x1 + x2) / 2} ${y1} ${(x1 + x2) / 2} ${y2} ${x2} ${y2}`
    return `<path class="${name}"${name ? ' pathLength="1"' : ''} d="M${x1} ${y1}${bend}" stroke-width="${(0.8 + 3.2 * Math.min(share, 1)).toFixed(1)}"/>`
  }
  function draw(group, links) {
    zero = flow.getBoundingClientRect()
    lines.querySelector(group).innerHTML = links.filter(([a, b]) => a && b).map(link => curve(...link)).join('')
  }

  // --- what is linked with what: [from, to, share] ---
  const called = (name, links) => links.map(([a, b, share]) => [a, b, share, name])
  const place = new Map(experts.map((of, at) => [of.id, at]))
  const voteLinks = (at, all) => grid && events[at].votes ? events[at].votes.filter(([e]) => all || place.has(e))
    .map(([e, share]) => [nodes.event[at], square(e), share]) : []
  const wanted = at => grid && !experts[at].quiet ? [[square(experts[at].id), nodes.expert[at], 0.4]] : []
  const lost = times => Math.max(0, 1 - (times ?? 1)) < UNCHANGED ? 0 : 1 - times
  // A line to a suggestion: bold where it loses much without the expert, faint where the model only credits the expert with it.
  const suggestionShare = (item, at) => list[item].suggestion_share ? list[item].suggestion_share[at] : 0
  const suggestionLinks = (item, at) => {
    const fall = lost(list[item].without[at]), credited = list[item].suggestion_share
      ? suggestionShare(item, at) >= CREDITED : fall >= CONFIRMED / 3
    return fall >= CONFIRMED ? [[nodes.expert[at], nodes.item[item], 0.2 + fall, 'gives bold']]
      : credited ? [[nodes.expert[at], nodes.item[item], 0, 'gives faint']] : []
  }
  const eventShare = (at, event) => experts[at].event_share ? experts[at].event_share[event] : 0
  // Where events have no votes, all of them ask together: a line leads to the grid as a whole.
  const reads = (at, event) =>
    [nodes.event[event], grid ? anyVotes ? square(experts[at].id) : svg : nodes.expert[at], eventShare(at, event)]
  const anyVotes = events.some(of => of.votes)
  function read(at) {  // the events that an expert keeps; the three it reads most where it reads all alike
    const by = every(events).filter(event => eventShare(at, event)).sort((a, b) => eventShare(at, b) - eventShare(at, a))
    return by.filter((event, i) => eventShare(at, event) >= CLEAR || i < 3)
  }
  const every = of => of.map((_, at) => at)

  function rest() {
    root.classList.remove('some')
    for (const each of flow.querySelectorAll('.on')) each.classList.remove('on')
    for (const each of flow.querySelectorAll('.n')) each.textContent = ''
    if (svg) svg.querySelector('.asked').innerHTML = ''
    lines.querySelector('.lit').innerHTML = ''
    told.textContent = says.rest
    tip.classList.remove('there')
    root.lit = ''
    heads([])
  }
  // A name that is cut off is told in full above its row. `settle` finds out which are, so that pointing measures nothing.
  function showTip(kind, at) {
    const made = nodes[kind][at], of = { event: events, expert: experts, item: list }[kind][at]
    if (!cut.has(made)) return
    tip.textContent = of.about ?? made.querySelector('.name').textContent
    tip.classList.add('there')
    made.parentNode.append(tip)
  }
  // On a narrow screen a bar in each box says what its height says elsewhere.
  const atRest = (kind, rests) => kind === 'experts' && flow.clientWidth <= 600 ? says.narrow : rests[1]
  // Of what the numbers of a column are parts, as long as a path is lit.
  function heads(said, id) {
    for (const [i, [kind, rests]] of [['events', says.history], ['experts', says.experts], ['list', says.list]].entries()) {
      const head = flow.querySelector(`.${kind} .of`)
      if (head) head.textContent = said[i] ? said[i].replace('{}', () => id) : atRest(kind, rests)
    }
  }
  function on(kind, at, number) {
    const of = nodes[kind][at], place = of.querySelector('.n')
    of.classList.add('on')
    if (place) place.textContent = number
  }
  function asked(e, share) {
    const side = grid.side, x = e % side, y = Math.floor(e / side)
    svg.querySelector('.asked').insertAdjacentHTML('beforeend', `<rect x="${x - 0.1}" y="${y - 0.1}" width="1.2" height="1.2" ` +
      `fill="none" stroke="${colours.picked}" stroke-width="${1.5 + 2.5 * share}" vector-effect="non-scaling-stroke"/>`)
  }
  const deepest = (of, look) => of.reduce((best, _, at) => best < 0 || (look(at) ?? 1) < (look(best) ?? 1) ? at : best, -1)

  function lightEvent(at) {
    const it = events[at], links = [...voteLinks(at, true)]
    const holders = every(experts).filter(e => eventShare(e, at) >= CLEAR || (!anyVotes && eventShare(e, at)))
    on('event', at, '')
    if (it.gone) return says.goneLong.replace('{}', () => it.name)
    heads(says.ofEvent)
    for (const [e, share] of it.votes ?? []) if (grid && square(e)) asked(e, share)
    for (const e of every(experts)) {
      const vote = (it.votes ?? []).find(([id]) => id === experts[e].id)
      if (!vote && !holders.includes(e)) continue
      on('expert', e, holders.includes(e) ? part(eventShare(e, at)) : '')
      links.push(...wanted(e))
      if (!anyVotes) links.push(reads(e, at))
    }
    const shown = every(list).filter(item => (list[item].missing[at] ?? 1) < 1 - CLEAR)
    for (const item of shown) {
      on('item', item, list[item].missing[at] === null ? '' : change(list[item].missing[at]))
      if (experts.length) for (const e of holders) links.push(...suggestionLinks(item, e))
      else links.push([nodes.event[at], nodes.item[item], 1 - list[item].missing[at]])
    }
    draw('.lit', links)
    const whom = (it.votes ?? []).map(([e]) => e).join(', ')
    const held = holders.map(e => `${part(eventShare(e, at))} ${says.ofWhat} ${experts[e].id}`).join(', ')
    const most = deepest(list, item => shown.length && !shown.includes(item) ? 1 : list[item].missing[at])
    const without = most >= 0 && list[most].missing[at] !== null
      ? ` ${says.without} ${says.thisOne}, ${says.probability} ${list[most].name} ${chance(list[most].missing[at])}.` : ''
    const said = [whom && `${says.asksFor} ${whom}`, held && `${says.makes} ${held}`].filter(Boolean).join(` ${says.and} `)
    return said ? `${it.name} ${said}.${without}` : without.trim() || it.name
  }
  function lightExpert(at) {
    const it = experts[at], links = [...wanted(at)]
    heads(says.ofExpert, it.id)
    if (grid && square(it.id)) asked(it.id, 1)
    for (const event of read(at)) {
      on('event', event, part(eventShare(at, event)))
      links.push(reads(at, event))
    }
    on('expert', at, '')
    for (const item of every(list)) {
      const found = suggestionLinks(item, at)
      if (!found.length) continue
      on('item', item, change(list[item].without[at]))
      links.push(...found)
    }
    draw('.lit', links)
    if (it.quiet) return says.quietLong.replace('{}', () => it.id)
    const most = deepest(list, item => list[item].without[at])
    const times = list[most].without[at]
    return `${says.Expert} ${it.id}${it.name ? `: ${it.name}` : ''}. ${it.votes}` +
      (times === null ? '' : ` ${says.without} ${it.id}, ${says.probability} ${list[most].name} ${chance(times)}.`)
  }
  function lightItem(item) {
    const it = list[item], links = [], behind = every(experts).filter(at => suggestionLinks(item, at).length)
    on('item', item, '')
    const owner = it.suggestion_share
      ? every(experts).reduce((a, b) => suggestionShare(item, b) > suggestionShare(item, a) ? b : a, 0) : -1
    for (const at of behind) {
      on('expert', at, it.without[at] === null ? '' : change(it.without[at]))
      links.push(...suggestionLinks(item, at), ...wanted(at))
      if (grid && square(experts[at].id)) asked(experts[at].id, lost(it.without[at]))
    }
    every(events).forEach(event => {
      const missing = it.missing[event]
      if (missing === null || missing >= 1 - CLEAR || events[event].gone) return
      on('event', event, change(missing))
      for (const at of behind) if (eventShare(at, event) >= CLEAR) links.push(reads(at, event))
      if (!experts.length) links.push([nodes.event[event], nodes.item[item], 1 - missing])
    })
    const least = deepest(experts, at => it.without[at]), known = least >= 0 && it.without[least] !== null
    if (known && lost(it.without[least]) && !behind.includes(least)) {  // the sentence names it
      on('expert', least, change(it.without[least]))
      links.push([nodes.expert[least], nodes.item[item], 0, 'gives faint'], ...wanted(least))
    }
    draw('.lit', links)
    const measured = it.without.some(times => times !== null) || it.missing.some(times => times !== null)
    if (!measured) return `${it.name}: ${says.unmeasured}.`
    heads(says.ofItem)
    const sources = every(experts).filter(at => suggestionShare(item, at) >= SEEN)
    if (owner >= 0) {
      const shares = sources.sort((a, b) => suggestionShare(item, b) - suggestionShare(item, a))
        .map(at => `${part(it.suggestion_share[at])} ${says.from} ${says.expert} ${experts[at].id}`)
      const all = it.suggestion_share.reduce((sum, share) => sum + share, 0)
      const rest = all - sources.reduce((sum, at) => sum + it.suggestion_share[at], 0)
      for (const [share, from] of [[rest, says.others], [1 - all, says.alone]]) if (share >= 0.015) shares.push(`${part(share)} ${from}`)
      const removal = !known || it.without[owner] === null ? '' : ` ${says.without} ${experts[owner].id} ${says.its} ` +
        `${chance(it.without[owner])}. ${it.without[owner] > 0.98 ? `${says.takeOver} ` : ''}${least === owner ? says.agrees
          : says.differs.replace('{}', () => experts[least].id).replace('{}', () => chance(it.without[least]))}`
      return `${it.name}: ${shares.join(', ') || says.nobody}.${removal}`
    }
    if (known) return `${it.name}: ${says.mixed.replace('{}', () => experts[least].id).replace('{}', () => chance(it.without[least]))}`
    const event = deepest(events, at => it.missing[at])
    return event >= 0 && it.missing[event] !== null
      ? `${it.name}: ${says.without} ${events[event].name} ${says.its} ${chance(it.missing[event])}.` : it.name
  }
  function lightSquare(e) {
    if (place.has(e)) return light('expert', place.get(e))
    rest()
    root.lit = `square ${e}`
    root.classList.add('some')
    asked(e, 0)
    const links = []
    every(events).forEach(at => {
      const vote = (events[at].votes ?? []).find(([id]) => id === e)
      if (!vote) return
      on('event', at, '')
      links.push([nodes.event[at], square(e), vote[1]])
    })
    draw('.lit', links)
    const i = grid.drawn.indexOf(e), row = Math.floor(e / grid.side)
    told.textContent = says.square.replace('{}', () => e).replace('{}', () => row).replace('{}', () => e % grid.side)
      .replace('{}', () => grid.people[i].toLocaleString('en')) + (links.length ? ` ${says.fewer}` : '')
  }
  function light(kind, at) {
    if (still || root.lit === `${kind} ${at}`) return
    rest()
    root.lit = `${kind} ${at}`
    const taken = (kind === 'event' && events[at].gone) || (kind === 'expert' && experts[at].quiet)
    if (!taken) root.classList.add('some')  // what is taken away has no path
    showTip(kind, at)
    told.textContent = { event: lightEvent, expert: lightExpert, item: lightItem }[kind](at)
  }

  // --- pointing, walking, acting ---
  let touched = ''
  const isAway = (kind, at) => kind === 'event' ? events[at].gone : kind === 'expert' && experts[at].quiet
  function takeAway(kind, at) {
    if (kind === 'item' || (kind === 'event' ? locked.remove : locked.silence)) return
    setTriggerValue(...(kind === 'event' ? ['removed', events[at].place] : ['silenced', experts[at].id]))
    nodes[kind][at].classList.add('busy')
  }
  // What was taken away comes back; anything else opens below the picture.
  function act(kind, at) {
    if (isAway(kind, at)) takeAway(kind, at)
    else setTriggerValue('looked', `${kind} ${{ event: events, expert: experts, item: list }[kind][at][{ event: 'place', expert: 'id', item: 'item' }[kind]]}`)
  }
  for (const [kind, of] of Object.entries(nodes)) of.forEach((made, at) => {
    if (made.dataset.kind === 'fold') { made.onpointerenter = rest; return }
    made.onpointerenter = event => { if (event.pointerType === 'mouse') light(kind, at) }
    made.onfocus = () => light(kind, at)
    made.onpointerdown = event => { touched = event.pointerType === 'mouse' ? '' : root.lit }
    made.onclick = event => {  // a first tap shows the path, a second acts
      const tap = event.pointerType === 'touch' || event.pointerType === 'pen'
      if (tap && touched !== `${kind} ${at}`) { light(kind, at); return }
      act(kind, at)
    }
  })
  flow.onpointerleave = event => { if (event.pointerType === 'mouse') rest() }
  root.onfocusout = event => { if (!root.contains(event.relatedTarget)) rest() }
  const columns = ['events', ...(experts.length ? ['experts'] : []), 'list'].map(name => [...flow.querySelectorAll(`.${name} .node`)])
  flow.onkeydown = event => {
    const here = columns.findIndex(all => all.includes(event.target))
    if (event.key === 'Escape') rest()
    const { kind, at } = event.target.dataset
    if (kind && kind !== 'fold' && (event.key === 'Delete' || event.key === 'Backspace')) takeAway(kind, Number(at))
    if (here < 0) return
    const from = columns[here].indexOf(event.target)
    const to = { ArrowUp: [here, from - 1], ArrowDown: [here, from + 1], ArrowLeft: [here - 1, 0], ArrowRight: [here + 1, 0] }[event.key]
    if (!to) return
    event.preventDefault()
    const going = columns[to[0]]?.[Math.max(0, to[1])]
    if (!going) return
    for (const each of columns[to[0]]) each.tabIndex = each === going ? 0 : -1
    going.focus()
  }
  if (svg) {
    let at = grid.picked ?? experts[0].id
    svg.onpointermove = event => {
      const over = event.target.closest('[data-e]')
      if (event.pointerType === 'mouse' && over && root.lit !== `square ${over.dataset.e}`) lightSquare(Number(over.dataset.e))
    }
    const pick = e => {
      if (place.has(e)) act('expert', place.get(e))
      else setTriggerValue('looked', `expert ${e}`)
    }
    svg.onclick = event => {
      const over = event.target.closest('[data-e]'), e = over && Number(over.dataset.e)
      if (over && event.pointerType !== 'mouse' && root.lit !== `square ${e}` && root.lit !== `expert ${place.get(e)}`) lightSquare(e)
      else if (over) pick(e)
    }
    svg.onfocus = () => lightSquare(at)
    svg.onkeydown = event => {
      const side = grid.side, step = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -side, ArrowDown: side }[event.key]
      if (event.key === 'Enter' || event.key === ' ') { event.preventDefault(); pick(at); return }
      if (!step) return
      event.preventDefault()
      event.stopPropagation()
      const to = at + step
      if (to < 0 || to >= side * side || (Math.abs(step) === 1 && Math.floor(to / side) !== Math.floor(at / side))) return
      at = to
      if (square(at)) lightSquare(at)
    }
  }

  // --- the lines at rest, and how the list answers ---
  function settle() {
    for (const made of flow.querySelectorAll('.experts .node:not(.fold)')) {
      made.classList.toggle('low', made.clientHeight < 46)
      made.classList.toggle('tall', made.clientHeight >= 64)
    }
    if (!root.lit) heads([])
    // Names that begin alike are cut in their middle where the whole name does not fit.
    const names = [['event', events], ['item', list]].flatMap(([kind, of]) =>
      of.map((each, at) => ({ each, span: nodes[kind][at].querySelector('.name'), star: kind === 'item' && each.gold ? '★ ' : '' })))
    for (const { each, span, star } of names) span.textContent = star + each.name
    for (const { each, span, star } of names.filter(({ span }) => span.scrollWidth > span.clientWidth))
      span.textContent = star + each.label
    cut.clear()
    for (const made of flow.querySelectorAll('.node:not(.fold)')) {
      const name = made.querySelector('.name')
      if (name.scrollWidth > name.clientWidth - CROSS) cut.add(made)
    }
    for (const [kind, of] of [['event', events], ['item', list]])
      of.forEach((each, at) => { nodes[kind][at].title = cut.has(nodes[kind][at]) ? '' : each.about })
    if (flow.classList.contains('build')) flow.style.setProperty('--begun', `${timeSinceBuild() ?? BUILD}ms`)
    draw('.rest', [...called('vote', every(events).flatMap(at => events[at].gone ? [] : voteLinks(at, false))),
      ...called('found', every(experts).flatMap(wanted)),
      ...every(list).flatMap(item => every(experts).flatMap(at => suggestionLinks(item, at)))])
    const lit = root.lit
    if (lit) { root.lit = ''; const [kind, at] = lit.split(' '); kind === 'square' ? lightSquare(Number(at)) : light(kind, Number(at)) }
  }
  // The first picture of a visit builds itself from left to right, unless less motion is asked for; any click or key ends it.
  if (!calm && timeSinceBuild() !== null) {
    flow.classList.add('build')
    const watched = ['pointerdown', 'keydown'], finish = () => {
      flow.classList.remove('build')
      sessionStorage.setItem(BEGAN, '0')
      for (const act of watched) document.removeEventListener(act, finish, true)
    }
    for (const act of watched) document.addEventListener(act, finish, true)
    setTimeout(() => { if (timeSinceBuild() === null) finish() }, BUILD - timeSinceBuild() + 20)
  }
  root.lit = ''
  root.classList.remove('some')  // the pointer may still lie on what was pressed
  settle()
  if (root.watch) root.watch.disconnect()
  root.watch = new ResizeObserver(() => settle())
  root.watch.observe(flow)
  const rows = new Map([...ten.children].map(line => [line.dataset.item, line]))
  if (before && !calm) for (const [item, line] of rows) {
    const was = before.at.get(item), now = line.offsetTop
    const moves = was === undefined ? [{ transform: 'translateX(2rem)', opacity: 0 }, { transform: 'none', opacity: 1 }]
      : was === now ? null : [{ transform: `translateY(${was - now}px)` }, { transform: 'none' }]
    if (moves) line.animate(moves, { duration: 700, easing: 'ease-in-out' })
  }
  if (opened && root.opened !== opened) showDetails(calm)
  root.opened = opened
  root.memory = { who: data.who, at: new Map([...rows].map(([item, line]) => [item, line.offsetTop])) }
  still = true  // the keyboard goes back to where it was; what is to be seen now is the answer, not the path
  if (held) nodes[held.kind]?.[Math.min(held.at, nodes[held.kind].length - 1)]?.focus()
  still = false
}
