// How the memory filled while the model learned, one epoch after the other: a square an expert, of a stronger colour for more people, and the
// totals of every epoch as two lines.
const PAUSE = 700, WIDTH = 560, HEIGHT = 250, LEFT = 44, RIGHT = 12, TOP = 14, BOTTOM = 34
const SVG = 'http://www.w3.org/2000/svg'
const fill = (text, values) => text.replace(/\[(\w+)\]/g, (all, name) => values[name] ?? all)
const hex = colour => [1, 3, 5].map(at => parseInt(colour.slice(at, at + 2), 16))

// A colour between the stops of a ramp, for a share from 0 to 1.
function blend(ramp, share) {
  const at = Math.min(share, 1) * (ramp.length - 1), low = Math.min(Math.floor(at), ramp.length - 2)
  return ramp[low].map((value, i) => value + (ramp[low + 1][i] - value) * (at - low))
}

export default function({ data, parentElement }) {
  const { epochs, loads, says, colours } = data, ramp = colours.load.map(hex)
  const last = epochs.length - 1, most = Math.max(...loads.flat(), 1)
  let root = parentElement.querySelector('div.learning'), at = last
  if (root) { clearInterval(Number(root.dataset.timer)); at = Math.min(Number(root.dataset.at), last); root.replaceChildren() }
  else {
    root = document.createElement('div')
    root.className = 'learning'
    parentElement.append(root)
  }
  const make = (tag, to, name, text) => {
    const made = document.createElement(tag)
    if (name) made.className = name
    if (text) made.textContent = text
    to.append(made)
    return made
  }
  const shape = (tag, to, attributes, text) => {
    const made = document.createElementNS(SVG, tag)
    for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value)
    if (text) made.textContent = text
    to.append(made)
    return made
  }
  const drive = make('div', root, 'drive'), play = make('button', drive, '', says.play), slider = make('input', drive)
  Object.assign(slider, { type: 'range', min: 0, max: last, step: 1, value: at })
  slider.setAttribute('aria-label', says.epoch)
  const where = make('output', drive), told = make('div', root, 'told')
  told.setAttribute('aria-live', 'polite')

  let grid
  if (loads.length) {
    const side = Math.ceil(Math.sqrt(loads[0].length))
    grid = make('canvas', root)
    grid.width = grid.height = side
    grid.setAttribute('role', 'img')
  }
  const chart = shape('svg', root, { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: 'img', 'aria-label': says.chart })
  const x = i => LEFT + (WIDTH - LEFT - RIGHT) * (last ? i / last : .5), y = share => TOP + (HEIGHT - TOP - BOTTOM) * (1 - share)
  for (const share of [0, .5, 1]) {
    shape('line', chart, { class: 'axis', x1: LEFT, x2: WIDTH - RIGHT, y1: y(share), y2: y(share) })
    shape('text', chart, { x: LEFT - 6, y: y(share) + 4, 'text-anchor': 'end' }, `${100 * share}%`)
  }
  for (const [name, colour, dash, row] of [['used', colours.used, '', 1], ['even', colours.even, '6 4', 0]]) {
    const height = y(0) - 16 - 24 * row
    const points = epochs.map((each, i) => `${x(i)},${y(each[name])}`).join(' ')
    shape('polyline', chart, { class: 'line', points, stroke: colour, 'stroke-dasharray': dash })
    shape('line', chart, { class: 'line', x1: LEFT + 12, x2: LEFT + 40, y1: height, y2: height, stroke: colour, 'stroke-dasharray': dash })
    shape('text', chart, { x: LEFT + 48, y: height + 4 }, says[name])
  }
  shape('text', chart, { x: LEFT, y: HEIGHT - 8 }, `${says.epoch} ${epochs[0].epoch}`)
  shape('text', chart, { x: WIDTH - RIGHT, y: HEIGHT - 8, 'text-anchor': 'end' }, `${says.epoch} ${epochs[last].epoch}`)
  const now = shape('line', chart, { class: 'now', y1: TOP, y2: HEIGHT - BOTTOM })

  function show() {
    const { epoch, told: sentence } = epochs[at]
    root.dataset.at = at
    slider.value = at
    where.textContent = fill(says.place, { epoch, last: epochs[last].epoch })
    told.textContent = sentence
    slider.setAttribute('aria-valuetext', where.textContent)
    now.setAttribute('x1', x(at))
    now.setAttribute('x2', x(at))
    if (!grid) return
    const pen = grid.getContext('2d'), picture = pen.createImageData(grid.width, grid.height)
    loads[at].forEach((load, i) => picture.data.set([...blend(ramp, load / most), 255], 4 * i))
    pen.putImageData(picture, 0, 0)
    grid.setAttribute('aria-label', told.textContent)
  }
  const stop = () => { clearInterval(Number(root.dataset.timer)); root.dataset.timer = ''; play.textContent = says.play }
  play.onclick = () => {
    if (root.dataset.timer) return stop()
    at = at === last ? 0 : at + 1
    show()
    play.textContent = says.stop
    root.dataset.timer = setInterval(() => {
      if (at === last || !root.isConnected) return stop()
      at += 1
      show()
    }, PAUSE)
  }
  slider.oninput = () => { stop(); at = Number(slider.value); show() }
  show()
}
