"""Around every answer of the server: no other site may frame the app, and in public mode no file is taken in at all.

A page without an uploader is no protection: Streamlit's address for files takes them from any session.
"""

from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from elastic_core.services import public

Message = MutableMapping[str, Any]
Receive, Send = Callable[[], Awaitable[Message]], Callable[[Message], Awaitable[None]]
App = Callable[[Message, Receive, Send], Awaitable[None]]
HEADERS = ((b"content-security-policy", b"frame-ancestors 'self'"), (b"x-frame-options", b"SAMEORIGIN"))
FILES = "/_stcore/upload_file"


class Guard:
    """ASGI middleware."""

    def __init__(self, app: App) -> None:
        self.app = app

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        async def guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message.get("headers", ()), *HEADERS]
            await send(message)

        if scope["type"] != "http":
            await self.app(scope, receive, send)
        elif FILES in scope["path"] and public.on():
            await guarded({"type": "http.response.start", "status": 403, "headers": [(b"content-type", b"text/plain")]})
            await guarded({"type": "http.response.body", "body": f"{public.why('upload')}.".encode()})
        else:
            await self.app(scope, receive, guarded)
