"""One press of Back for one act of the visitor, whatever the frame writes into the address by itself.

An address that names a default, or an edit in short form, is written anew when the page has been drawn; Streamlit makes an entry
of the browser's history of every such change. So its page gets a few lines of its own: without an act since the last entry, the
address of that entry is written over.

Streamlit would also open a page as far down as the last one was scrolled: another page begins at its top.

Where Back stays on the same page, Streamlit turns its controls back and shows what it showed: then the page is loaded anew, as
the address has it.
"""

from typing import Any

from pages.frame.guard import App, Message, Receive, Send

SCRIPT = b"""<script>
{
  let acted = false, shown = location.pathname
  for (const act of ["pointerdown", "keydown"]) addEventListener(act, () => { acted = true }, true)
  const push = history.pushState.bind(history)
  history.pushState = (...given) => {
    (acted ? push : history.replaceState.bind(history))(...given)
    acted = false
    if (location.pathname !== shown) document.querySelector('[data-testid="stMain"]')?.scrollTo(0, 0)
    shown = location.pathname
  }
  addEventListener("popstate", () => {
    if (location.pathname === shown && !location.hash) location.reload()
    shown = location.pathname
  })
}
</script>"""
PLACE, PAGE = b"<head>", b"text/html"
KEPT_BY_BROWSERS = (b"etag", b"last-modified", b"content-length")  # of the page without these lines


class Back:
    """ASGI middleware."""

    def __init__(self, app: App) -> None:
        self.app = app

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        asked = dict(scope.get("headers", ()))
        if scope["type"] != "http" or scope.get("method") != "GET" or PAGE not in asked.get(b"accept", b""):
            await self.app(scope, receive, send)
            return
        plain = {**scope, "headers": [(name, value) for name, value in scope["headers"] if name != b"accept-encoding"]}
        begun: list[Any] = []

        async def written(message: Message) -> None:
            if message["type"] == "http.response.start" and PAGE in dict(message["headers"]).get(b"content-type", b""):
                begun.append(message)
            elif begun:
                body = bytes(message.get("body", b"")).replace(PLACE, PLACE + SCRIPT, 1)
                start = begun.pop()
                kept = [(name, value) for name, value in start["headers"] if name.lower() not in KEPT_BY_BROWSERS]
                await send({**start, "headers": kept})
                await send({**message, "body": body})
            else:
                await send(message)

        await self.app(plain, receive, written)
