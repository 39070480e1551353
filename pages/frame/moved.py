"""Addresses of pages that are somewhere else now: links out there go on working, with all they ask for."""

from urllib.parse import urlencode

from starlette.requests import Request
from starlette.responses import RedirectResponse
from starlette.routing import Route

DEPTH = "ev_depth"
MOVED = {"learned": "Claims", "results": "Systems", "compare": "Systems"}  # to which depth of Evidence


def _to_evidence(request: Request) -> RedirectResponse:
    """A relative place, so that it holds below a path of its own, too."""
    asked = {DEPTH: MOVED[request.url.path.strip("/").rpartition("/")[2]], **request.query_params}
    return RedirectResponse(f"evidence?{urlencode(asked)}", status_code=307)


ROUTES = [Route(f"/{name}", _to_evidence) for name in MOVED]
