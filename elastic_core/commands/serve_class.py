"""The app for a whole class: several processes behind one address, because Python runs one process on one core.

  elastic serve-class                                   one process a core, at http://localhost:8501
  elastic serve-class --processes 2 --address 0.0.0.0   for others on the network

Needs haproxy (Debian, Ubuntu: `apt install haproxy`). Who comes first is sent to the process with the fewest visitors and stays
there by a cookie, since a whole class may share one address. Classes, trainings, runs and uploads lie in `checkpoints/`, so all
processes know them. A process that ends is started again; all of them end with this command, however it ends.
"""

import contextlib
import ctypes
import os
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

import elastic_core
from elastic_core.errors import InputError
from elastic_core.services import public

LOCALHOST, MOST = "127.0.0.1", 64
BEGINS, SHORT = 180.0, 5.0  # seconds that a start may take; who lives shorter than the second is not started again
CONFIG = """global
    maxconn 1000
defaults
    mode http
    balance leastconn
    timeout connect 5s
    timeout client 60s
    timeout server 180s
    timeout tunnel 12h
    timeout http-request 30s
    option redispatch
    retries 3
    retry-on conn-failure empty-response
frontend visitors
    bind {address}:{port}
    default_backend processes
backend processes
    cookie elastic_process insert indirect nocache httponly attr SameSite=Lax
    option forwardfor
    http-request disable-l7-retry unless METH_GET
    option httpchk GET /_stcore/health
    default-server check inter 2s fall 3 rise 1
{servers}
"""


def run_command(
    processes: Annotated[int, typer.Option(metavar="N", help="How many; by default one a core.")] = os.cpu_count() or 1,
    address: Annotated[str, typer.Option(metavar="ADDRESS", help="To listen on; 0.0.0.0: the whole network.")] = LOCALHOST,
    port: Annotated[int, typer.Option(metavar="PORT", help="To listen on.")] = 8501,
) -> None:
    """Serves until it is interrupted or told to end. Raises InputError for what keeps it from beginning or going on."""
    app = Path(elastic_core.__file__).resolve().parents[1] / "app.py"
    if not 1 <= processes <= MOST:
        raise InputError(f"--processes must be 1 to {MOST}, not {processes}")
    if not app.is_file():
        raise InputError(f"the app is served from its checkout, and there is no {app}")
    proxy_path = find_proxy()
    if proxy_path is None:
        raise InputError("haproxy is not installed (Debian, Ubuntu: apt install haproxy); `streamlit run app.py` needs none")
    _refuse_taken(address, port)
    if warning := public.exposure_warning(address):
        print(warning.replace("--server.address", "--address"), file=sys.stderr)
    for ending in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(ending, signal.default_int_handler)
    ports = _free_ports(processes)
    host = "localhost" if address in (LOCALHOST, "0.0.0.0", "::") else address
    with tempfile.TemporaryDirectory(prefix="serve-") as folder, contextlib.ExitStack() as running:
        config_file = Path(folder, "haproxy.cfg")
        servers = "\n".join(f"    server p{i} {LOCALHOST}:{each} cookie p{i}" for i, each in enumerate(ports))
        proxy_config = CONFIG.format(address=address, port=port, servers=servers)
        config_file.write_text(proxy_config, encoding="utf-8")
        # One secret for all: a visitor whose process ended goes on with another.
        environment = {**os.environ, "STREAMLIT_SERVER_COOKIE_SECRET": secrets.token_hex(32)}
        words = [sys.executable, "-m", "streamlit", "run", str(app), "--server.headless", "true", "--server.address", LOCALHOST]
        children = list[_Child]()

        def start_child(words: list[str]) -> None:
            children.append(_Child(words, app.parent, environment))
            running.callback(children[-1].end_process)

        for port in ports:
            start_child([*words, "--server.port", str(port)])
        _wait_until(lambda: all(_is_healthy(LOCALHOST, port) for port in ports), children)
        start_child([proxy_path, "-db", "-f", str(config_file)])
        _wait_until(lambda: _is_healthy(host, port), children)
        processes_text = "1 process" if len(ports) == 1 else f"{len(ports)} processes"
        print(f"{processes_text} at http://{host}:{port}; Ctrl+C ends it", flush=True)
        while True:
            time.sleep(0.5)
            for child in children:
                child.restart_if_ended(again=True)


def find_proxy() -> str | None:
    """Where haproxy is; system folders are not always searched for other people than root."""
    return shutil.which("haproxy") or shutil.which("haproxy", path="/usr/sbin:/usr/local/sbin")


class _Child:
    """A process that ends with this one."""

    def __init__(self, words: list[str], folder: Path, environment: dict[str, str]) -> None:
        self.words, parent = words, os.getpid()
        self._start = partial(
            subprocess.Popen, words, cwd=folder, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            start_new_session=True, preexec_fn=lambda: _end_with(parent),
        )  # fmt: skip
        self.process, self.began = self._start(), time.monotonic()

    def restart_if_ended(self, again: bool) -> None:
        """Starts it anew if it has ended. Raises InputError if it hardly lived, or if it is not to be started `again`."""
        if self.process.poll() is None:
            return
        name = "streamlit" if "streamlit" in self.words else Path(self.words[0]).name
        if not again or time.monotonic() - self.began < SHORT:
            raise InputError(f"{name} ended at once (exit status {self.process.returncode}); what it said stands above")
        print(f"{name} ended (exit status {self.process.returncode}) and is started again", file=sys.stderr, flush=True)
        self.process, self.began = self._start(), time.monotonic()

    def end_process(self) -> None:
        self.process.terminate()
        try:
            self.process.wait(timeout=5)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


def _end_with(parent: int) -> None:
    """In a new process: the system ends it when its parent ends, by kill -9 too. Elsewhere than on Linux a kill -9 leaves it."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG
        if os.getppid() != parent:
            os._exit(1)


def _refuse_taken(address: str, port: int) -> None:
    try:
        with socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET) as listener:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind((address, port))
    except (OSError, OverflowError) as error:
        raise InputError(f"{address}:{port} cannot be listened on ({getattr(error, 'strerror', None) or error})") from None


def _free_ports(count: int) -> list[int]:
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.create_server((LOCALHOST, 0))) for _ in range(count)]
        return [each.getsockname()[1] for each in sockets]


def _wait_until(is_ready: Callable[[], bool], children: "list[_Child]") -> None:
    """Until `is_ready`, or InputError if a child ends before that or nothing answers."""
    deadline = time.monotonic() + BEGINS
    while not is_ready():
        for child in children:
            child.restart_if_ended(again=False)
        if time.monotonic() > deadline:
            raise InputError(f"nothing answers after {BEGINS:.0f} seconds")
        time.sleep(0.2)


def _is_healthy(host: str, port: int) -> bool:
    with contextlib.suppress(OSError), urllib.request.urlopen(f"http://{host}:{port}/_stcore/health", timeout=2) as answer:
        return bool(answer.status == 200)
    return False
