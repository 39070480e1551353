"""Back takes one press for one act of the visitor, whatever the frame writes into the address by itself.

An address that names a default, an edit in short form or no run is written anew when the page is drawn, and Streamlit makes an
entry of the browser's history of that: without these lines no number of presses of Back leaves a page, and an edit stays on the
screen when Back takes it out of the address (tests/browser/test_addresses_in_browser.py).
"""

import streamlit as st

SCRIPT = """<script>
if (!window.mergesEntries) {
  window.mergesEntries = true
  let acted = false, shown = location.pathname
  for (const act of ["pointerdown", "keydown"]) addEventListener(act, () => { acted = true }, true)
  const push = history.pushState.bind(history)
  history.pushState = (...entry) => {
    (acted ? push : history.replaceState.bind(history))(...entry)
    acted = false
    // Another page begins at its top, not as far down as the last one was scrolled.
    if (location.pathname !== shown) document.querySelector('[data-testid="stMain"]')?.scrollTo(0, 0)
    shown = location.pathname
  }
  // Where Back stays on the page, Streamlit would show what it showed: the page is loaded anew, as the address has it.
  addEventListener("popstate", () => {
    if (location.pathname === shown && !location.hash) location.reload()
    shown = location.pathname
  })
}
</script>"""


def merge_entries() -> None:
    """Called by navigation.py before anything writes into the address."""
    st.html("<style>.st-key-history { display: none }</style>")  # a script would take room
    with st.container(key="history"):
        st.html(SCRIPT, unsafe_allow_javascript=True)
