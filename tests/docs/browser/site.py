"""The site as a browser gets it: its pages, a server for its folder, and a build of few pages without execution.

``PULLBACK_SITE`` names the folder of a built site, all pages of which are tested. Without it few pages are built.
"""

from __future__ import annotations

import functools
import http.server
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[3]
BUILT = os.environ.get("PULLBACK_SITE", "")
QUICK = ROOT / "build" / "docs" / "quick"
OF_KINDS = {
    "front": "index",
    "section": "learn/index",
    "course": "learn/state",
    "recipe": "how_to/gradient_clipping",
    "gallery": "examples/index",
    "example": "examples/kalman_filter",
    "program": "programs/arma",
    "reference": "reference/index",
    "function": "reference/pullback.grad",
    "class": "reference/pullback.Array",
    "module": "reference/pullback.custom_derivatives",
    "errors": "reference/errors",
    "decision": "decisions/640-the-site",
    "table": "accuracy",
    "search": "search",
    "missing": "404",
}
"""A page of each kind."""
LARGE = ("reference/errors", "reference/pullback.Array", "accuracy")
"""Pages on which a search for faults of accessibility takes many seconds."""
SEARCHED = (
    "reference/pullback.custom_vjp",
    "reference/pullback.experimental.sparse.grad",
    "reference/pullback.numpy.sin",
    "reference/pullback.lax.sin",
    "reference/pullback.lax",
    "reference/pullback.errors.NotDifferentiableError",
    "reference/pullback.errors.TracerIntegerConversionError",
)
"""Pages that the search has to tell apart."""
RUN_BY_THE_BUILD = ("programs/",)
"""Pages that a build without execution leaves out."""
CHROMIUM = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")


def chromium() -> str:
    """The system's Chromium: the program that ``CHROMIUM`` names, or else one on the PATH; empty if there is none."""
    return os.environ.get("CHROMIUM") or next((path for name in CHROMIUM if (path := shutil.which(name))), "")


def of_kinds() -> list[str]:
    """A page of each kind, of those that are built."""
    return [name for name in OF_KINDS.values() if BUILT or not name.startswith(RUN_BY_THE_BUILD)]


def every() -> list[str]:
    """All pages that are built, by their paths without suffix."""
    if not BUILT:
        return [*of_kinds(), *SEARCHED]
    folder = ROOT / BUILT
    return sorted(path.relative_to(folder).with_suffix("").as_posix() for path in folder.rglob("*.html")
                  if "_static" not in path.parts)  # fmt: skip


def longest(folder: Path, count: int = 10) -> list[str]:
    """The longest pages by bytes, the longest first."""
    return sorted(every(), key=lambda name: -(folder / f"{name}.html").stat().st_size)[:count]


def build_quickly() -> Path:
    """Build few pages without executing any, and return their folder."""
    shutil.rmtree(QUICK, ignore_errors=True)
    sources = ",".join(f"{name}.*" for name in every() if name not in ("search", "404"))
    command = [sys.executable, "-m", "sphinx", "--quiet", "--fresh-env", "--define", f"pullback_pages={sources}"]
    command += ["--doctree-dir", str(QUICK / "doctrees"), str(ROOT / "docs"), str(QUICK / "html")]
    path = os.pathsep.join([str(ROOT / "src"), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(command, env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return QUICK / "html"


class Handler(http.server.SimpleHTTPRequestHandler):
    """Serves a folder as hosts of sites do: an address without a file has the page 404.html."""

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing."""

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """Answer with the site's page, if it has one."""
        page = Path(self.directory) / "404.html"
        if code != 404 or not page.exists():
            super().send_error(code, message, explain)
            return
        body = page.read_bytes()
        self.send_response(code)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


class Server(http.server.ThreadingHTTPServer):
    """A server whose client may leave before it has everything."""

    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Let the browser end a connection; raise nothing in the background."""


@contextmanager
def served(folder: Path) -> Iterator[str]:
    """Serve a folder on this machine; the value is its address."""
    server = Server(("127.0.0.1", 0), functools.partial(Handler, directory=str(folder)))
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
