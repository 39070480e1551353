// Scrolls to the control that a stop of the tour names, where the tour's own bar does not cover it, and rings it. `data`: our own keys alone.
const SETTLING = 6000, LOOK = 300, AIR = 12, SEEN = 240  // SEEN: pixels of a tall target that are enough

export default function({ data, parentElement }) {
  const { keys, turn, colour } = data, quiet = matchMedia('(prefers-reduced-motion: reduce)').matches
  if (parentElement.turn === turn) return
  parentElement.leave?.()
  parentElement.turn = turn
  // On a phone the open menu would lie over the tour's card.
  if (innerWidth < 768) document.querySelector('[data-testid="stSidebar"][data-collapsed="false"] [data-testid="stSidebarCollapseButton"] button')?.click()
  let ringed = null, free = !keys.length, began = 0
  const stop = () => { free = true }
  const acts = ['wheel', 'touchmove', 'keydown', 'pointerdown']
  for (const act of acts) addEventListener(act, stop, { passive: true, capture: true })

  const clear = () => {
    if (!ringed) return
    ringed.style.outline = ringed.style.outlineOffset = ringed.style.borderRadius = ''
    for (const each of ringed.getAnimations()) if (each.id === 'tour') each.cancel()
    ringed = null
  }
  const found = () => keys.map(key => document.querySelector(`[class~="st-key-${CSS.escape(key)}"], [class*="st-key-${CSS.escape(key)}_"]`)).find(one => one?.getBoundingClientRect().height > 0)
  const look = () => {
    const one = found(), bar = document.querySelector('.st-key-tour_panel'), main = document.querySelector('[data-testid="stMain"]')
    if (one !== ringed) {
      clear()
      if (one) {
        ringed = one
        Object.assign(one.style, { outline: `3px solid ${colour}`, outlineOffset: '4px', borderRadius: '.3rem' })
        if (!quiet) one.animate([{ outlineOffset: '4px', outlineColor: colour }, { outlineOffset: '12px', outlineColor: 'transparent' }],
          { duration: 1100, iterations: 4, id: 'tour' })
      }
    }
    document.body.style.setProperty('--tour-height', `${bar?.offsetHeight ?? 0}px`)  // the menu begins below the card
    if (!one || free || !main) return
    began ||= performance.now()
    if (performance.now() - began > SETTLING) free = true
    const head = document.querySelector('[data-testid="stHeader"]')?.getBoundingClientRect().bottom ?? 0
    const top = Math.max(main.getBoundingClientRect().top, getComputedStyle(main).position === 'static' ? 0 : head) + AIR
    const box = one.getBoundingClientRect(), low = bar?.getBoundingClientRect()
    const bottom = (low && low.right > main.getBoundingClientRect().left ? low.top : innerHeight) - AIR  // else it stands at the left
    if (box.top + main.scrollTop + Math.min(box.height, SEEN) <= bottom) {  // seen together with the title of its page
      if (main.scrollTop) main.scrollTo({ top: 0, behavior: 'instant' })
      return
    }
    if (box.top >= top && box.bottom <= bottom) return
    const wanted = top + Math.min(Math.max(bottom - top - box.height, 0), 110)  // its heading above it, what it acts on below
    main.scrollBy({ top: box.top - wanted, behavior: quiet || performance.now() - began > 1500 ? 'instant' : 'smooth' })
  }
  const timer = setInterval(() => parentElement.isConnected ? look() : parentElement.leave(), LOOK)
  parentElement.leave = () => {
    clearInterval(timer)
    clear()
    document.body.style.removeProperty('--tour-height')
    for (const act of acts) removeEventListener(act, stop, { capture: true })
  }
  look()
}
