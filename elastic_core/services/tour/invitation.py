"""How others come into a class: a link that their machines can reach, and the same as a QR code. No network is asked."""

import io
import socket
from urllib.parse import urlsplit, urlunsplit

import segno

from elastic_core.services.public import is_here

ANY = ("", "0.0.0.0", "::", "[::]")  # what a server listens on that takes everybody
OUTSIDE = ("192.0.2.1", 9)  # an address that nobody has (RFC 5737): the way to it tells our own, and nothing is sent


def reachable_address(url: str, listens_on: str | None) -> str | None:
    """Return the address of this app as other machines can ask for it; None where it answers this machine alone.

    `url` is what the browser shows, `listens_on` the server's own setting. A name or address that is not this machine's loopback
    was reached from outside, or over the network, and stays."""
    parts = urlsplit(url)
    if not is_here(parts.hostname or ""):
        return url
    if listens_on is not None and is_here(listens_on):
        return None
    host = own_address() if listens_on is None or listens_on in ANY else listens_on
    if host is None:
        return None
    host = f"[{host}]" if ":" in host else host
    return urlunsplit(parts._replace(netloc=f"{host}:{parts.port}" if parts.port else host))


def own_address() -> str | None:
    """Return this machine's address in its network; None where it is in none."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as way:
        try:
            way.connect(OUTSIDE)  # of datagrams: only chooses the way
            address = str(way.getsockname()[0])
        except OSError:
            return None
    return None if is_here(address) or address in ANY else address


def qr_code(link: str, wide: int) -> str:
    """Return a link as an SVG of at most `wide` pixels: black on white in every theme, with the quiet edge that cameras need."""
    code, out = segno.make(link, error="m", micro=False), io.BytesIO()
    scale = max(wide // code.symbol_size()[0], 1)
    code.save(out, kind="svg", scale=scale, light="#ffffff", xmldecl=False, svgns=True, svgclass=None, lineclass=None, nl=False)
    return out.getvalue().decode("utf-8")
