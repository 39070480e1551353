// Draws the squares of squares.py. `data` holds numbers, our colours and our words alone.
export default function({ data, setTriggerValue, parentElement }) {
  const { side, drawn, load, ground, rows, columns, people, retrieved, selected, locked, alt, colours } = data
  const many = new Map(drawn.map((e, i) => [e, people[i]]))
  const rank = new Map(retrieved.map(each => [each.expert, each]))
  const say = e => `expert ${e}: row ${Math.floor(e / side)}, column ${e % side}, ` +
    (rank.has(e) ? `retrieved with rank ${rank.get(e).rank}` + (rank.get(e).quiet ? ', silenced' : '') : 'not retrieved') +
    (many.has(e) ? `, ${many.get(e).toLocaleString('en')} people` : '')
  const cell = (x, y, fill, more = '') => `<rect x="${x + 0.04}" y="${y + 0.04}" width="0.92" height="0.92" fill="${fill}" ${more}/>`
  const frame = (x, y, colour, width, grow, fill = 'none') => `<rect x="${x + 0.06 - grow}" y="${y + 0.06 - grow}" ` +
    `width="${0.88 + 2 * grow}" height="${0.88 + 2 * grow}" fill="${fill}" stroke="${colour}" stroke-width="${width}" ` +
    'vector-effect="non-scaling-stroke" pointer-events="none"/>'
  const edge = -1 - side / 20, low = edge - side / 22 - 0.3, small = side / 32
  let inside = ''
  for (let i = 0; i < side; i++) inside += cell(edge, i, rows[i]) + cell(i, edge, columns[i])
  if (drawn.length < side * side) inside += `<rect width="${side}" height="${side}" fill="${ground}"/>`
  for (const [i, e] of drawn.entries()) inside +=
    cell(e % side, Math.floor(e / side), load[i], `data-e="${e}"`).replace('/>', `><title>${say(e)}</title></rect>`)
  for (const { expert, rank: place, quiet } of retrieved) {
    const x = expert % side, y = Math.floor(expert / side)
    inside += frame(x, y, colours.lit, 2, 0, quiet ? 'none' : colours.lit)
    inside += frame(edge, y, colours.lit, 2, 0) + frame(x, edge, colours.lit, 2, 0)
    inside += `<text x="${x + 0.5}" y="${y + 0.5}" font-size="0.55" font-weight="700" ` +
      `fill="${quiet ? colours.lit : colours.ground}">${quiet ? '×' : place}</text>`
  }
  const mark = e => e === null ? '' : frame(e % side, Math.floor(e / side), colours.picked, 3, 0.12)
  const words = `font-size="${small}" fill="${colours.muted}" style="text-anchor:start"`
  inside += `<text x="0" y="${low + small / 2}" ${words}>column sub-keys →</text>`
  inside += `<text transform="translate(${low + small / 2} 0) rotate(90)" ${words}>row sub-keys →</text>`

  let root = parentElement.querySelector('div.squares')
  if (!root) {
    root = document.createElement('div')
    root.className = 'squares'
    parentElement.appendChild(root)
  }
  root.innerHTML = `<svg viewBox="${low - 0.1} ${low - 0.1} ${side - low + 0.2} ${side - low + 0.2}" tabindex="0" role="group">` +
    `${inside}<g class="mark">${mark(selected)}</g></svg><span class="told" aria-live="polite"></span>`
  const svg = root.querySelector('svg'), told = root.querySelector('.told')
  svg.setAttribute('aria-label', alt)
  svg.classList.toggle('locked', locked)
  let at = selected ?? 0
  const pick = e => { if (!locked) setTriggerValue('picked', e) }
  svg.onclick = event => { const on = event.target.closest('[data-e]'); if (on) pick(Number(on.dataset.e)) }
  svg.onkeydown = event => {
    const step = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -side, ArrowDown: side }[event.key]
    if (event.key === 'Enter' || event.key === ' ') { event.preventDefault(); pick(at); return }
    if (!step) return
    event.preventDefault()
    const to = at + step, sideways = Math.abs(step) === 1
    if (to < 0 || to >= side * side || (sideways && Math.floor(to / side) !== Math.floor(at / side))) return
    at = to
    svg.querySelector('.mark').innerHTML = mark(at)
    told.textContent = say(at)
  }
}
