"""Links to profiles: a server on this machine from which the page of Perfetto loads a trace."""

from __future__ import annotations

import http.server
from pathlib import Path

from pullback.core.errors import ProfilerError

PORT = 9001
"""The port from which https://ui.perfetto.dev may load traces; it refuses all others."""
_PAGE = "https://ui.perfetto.dev"


class _Handler(http.server.BaseHTTPRequestHandler):
    """Sends the trace of the server to Perfetto's page, and to nobody else."""

    server: _Server

    def do_GET(self) -> None:
        path = self.server.path
        if self.path != f"/{path.name}":
            self.send_error(404)
            return
        content = path.read_bytes()
        self.send_response(200)
        self.send_header("Access-Control-Allow-Origin", _PAGE)
        self.send_header("Content-Type", "application/gzip")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)
        self.server.loaded = True

    def log_message(self, format: str, *args: object) -> None:
        """Print nothing about requests."""


class _Server(http.server.HTTPServer):
    """A server for one file. ``loaded`` says whether somebody has loaded it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.loaded = False
        super().__init__(("127.0.0.1", PORT), _Handler)


def serve(path: Path) -> None:
    """Print a link that opens a trace in Perfetto, and wait until a browser has loaded the trace.

    Raises:
      ProfilerError: another process uses the port (a RuntimeError and ValueError).
    """
    try:
        server = _Server(path)
    except OSError as error:
        raise ProfilerError(
            f"no link to the profile: the port {PORT}, from which Perfetto loads traces, is not free ({error}). Open "
            f"the file {path} at {_PAGE}"
        ) from None
    with server:
        print(
            f"Open this link in a browser: {_PAGE}/#!/?url=http://127.0.0.1:{server.server_port}/{path.name}",
            flush=True,
        )
        while not server.loaded:
            server.handle_request()
