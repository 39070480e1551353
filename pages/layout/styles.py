"""What the theme cannot say of how Streamlit's own parts look."""

import streamlit as st

from pages.components import page_context

# On a low window the names of the pages move together, so that the tour and the person are seen without scrolling; and what is
# above a page's title moves up, so that an act and its answer are seen together. A run's name that is cut says so,
# and the kinds of file that may be brought are all named.
LOW = """<style>[data-testid="stSidebar"] :is(.st-key-run, .st-key-vs) input { font-size: 0.875rem; text-overflow: ellipsis }
.st-key-world_sentence p { line-height: 1.2 }
[data-testid="stFileUploaderDropzoneInstructions"] span { white-space: normal }
@media (min-width: 768px) { .st-key-world_switch { min-height: 2.5rem; max-height: 2.5rem; justify-content: center } }
@media (min-width: 768px) and (max-height: 950px) {
  [data-testid="stSidebarHeader"] { margin-bottom: 0 }
  [data-testid="stMainBlockContainer"] { padding-top: 0.25rem }
  [data-testid="stMain"] h1 { padding: 0.25rem 0 0.5rem }
  [data-testid="stHeader"] { background: transparent }
  [data-testid="stHeader"], [data-testid="stHeader"] * { pointer-events: none !important }
  [data-testid="stHeader"] :is(button, a, button *, a *) { pointer-events: auto !important }
  [data-testid="stSidebarNavItems"] li, [data-testid="stSidebarNavLink"] { margin-block: 0 }
  [data-testid="stSidebarNavLinkContainer"] { height: 28px }
}
@media (min-width: 768px) and (max-height: 720px) { [data-testid="stMain"] h1 { font-size: 1.5rem; padding: 0 0 .25rem } }
</style>"""
# On what the dark theme fills with light blue Streamlit writes in white: 2.2 : 1, hardly to be read. Code in a caption, green and
# pale, is 4.3 : 1.
DARK = """<style>
  [data-testid^="stBaseButton-primary"]:enabled, [data-tag] * { color: #14161a }
  [data-testid="stCaptionContainer"] code { color: inherit }
</style>"""
# In the light theme a caption on the sidebar's ground is 4.4 : 1, the numbers at a chart's axes 3.7, an option of a command 2.8,
# the chosen part of a switch under the mouse 4.2.
LIGHT = """<style>
  [data-testid="stSidebar"] [data-testid="stCaptionContainer"] { color: #000000 }
  .js-plotly-plot :is(.xtick text, .ytick text, .xtitle, .ytitle) { fill: #5f5b54 !important }
  [data-testid="stCode"] .token.parameter { color: #0b6e99 }
  [data-variant="segmented_control"][aria-checked="true"]:is(:hover, :focus, :active) * { color: #095d82 }
</style>"""


def apply_styles() -> None:
    """Called by navigation.py before anything is drawn."""
    st.html(LOW + (DARK if page_context.is_dark() else LIGHT))
