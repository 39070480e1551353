"""Back takes one press for one act of the visitor, whatever the frame writes into the address by itself.

An address that names a default, an edit in short form or no run is written anew when the page is drawn, and Streamlit makes an
entry of the browser's history of that: without these lines no number of presses of Back leaves a page, and an edit stays on the
screen when Back takes it out of the address (tests/browser/test_addresses_in_browser.py). They stand in the page that the server
sends, so that they run before Streamlit: as an element of the app they came too late on a busy machine.
"""

from typing import Any

from pages.layout.server import App, Message, Receive, Send

SCRIPT = b"""<script>
{
  let acted = false, shown = location.pathname
  for (const act of ["pointerdown", "keydown"]) addEventListener(act, () => { acted = true }, true)
  const push = history.pushState.bind(history)
  history.pushState = (...entry) => {
    (acted ? push : history.replaceState.bind(history))(...entry)
    acted = false
    // Another page begins at its top, not as far down as the last one was scrolled, and on a phone not below the open menu.
    if (location.pathname !== shown) {
      document.querySelector('[data-testid="stMain"]')?.scrollTo(0, 0)
      const menu = '[data-testid="stSidebar"][data-collapsed="false"] [data-testid="stSidebarCollapseButton"] button'
      if (innerWidth < 768) document.querySelector(menu)?.click()
    }
    shown = location.pathname
  }
  // Where Back stays on the page, Streamlit would show what it showed: the page is loaded anew, as the address has it.
  addEventListener("popstate", () => {
    if (location.pathname === shown && !location.hash) location.reload()
    shown = location.pathname
  })
}
</script>"""
PLACE, PAGE = b"<head>", b"text/html"
OF_THE_PLAIN_PAGE = (b"etag", b"last-modified", b"content-length")  # of the page without these lines


class MergeEntries:
    """ASGI middleware that writes `SCRIPT` into the page."""

    def __init__(self, app: App) -> None:
        self.app = app

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        headers = dict(scope.get("headers", ()))
        if scope["type"] != "http" or scope.get("method") != "GET" or PAGE not in headers.get(b"accept", b""):
            await self.app(scope, receive, send)
            return
        plain = {**scope, "headers": [(name, value) for name, value in scope["headers"] if name != b"accept-encoding"]}
        pending: list[Any] = []

        async def send_with_script(message: Message) -> None:
            if message["type"] == "http.response.start" and PAGE in dict(message["headers"]).get(b"content-type", b""):
                pending.append(message)
            elif pending:
                body = bytes(message.get("body", b"")).replace(PLACE, PLACE + SCRIPT, 1)
                start = pending.pop()
                headers = [(name, value) for name, value in start["headers"] if name.lower() not in OF_THE_PLAIN_PAGE]
                await send({**start, "headers": headers})
                await send({**message, "body": body})
            else:
                await send(message)

        await self.app(plain, receive, send_with_script)
