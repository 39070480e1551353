"""A visit of the app through Streamlit's own test driver, by deep link: the page that the address names is run, and no other."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from streamlit.testing.v1 import AppTest

APP = Path(__file__).resolve().parents[1] / "pages" / "navigation.py"
_learned: dict[str, Any] = {}  # what a driver knows only after its first run: the pages, and the components that are installed


def visit(page: str = "", address: Mapping[str, str] | None = None, timeout: float = 90) -> AppTest:
    """`visit("experts/page.py", {"run": "tiny"})`; no page is Start. Looking for installed components takes longer than that."""
    app = AppTest.from_file(str(APP), default_timeout=timeout)
    if not _learned:
        app.run()
        _learned.update({name: getattr(app, name) for name in ("_registered_pages", "_bidi_component_manager")})
        return visit(page, address, timeout)
    for name, known in _learned.items():
        setattr(app, name, known)
    app.query_params.update(address or {})
    return app.switch_page(page).run() if page else app.run()
