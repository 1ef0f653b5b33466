"""The server in front of the console: one process, some threads, on an address that is this machine's own."""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Callable
from typing import Any

from gunicorn.app.base import BaseApplication
from gunicorn.config import KNOWN_SETTINGS

from pidispatch_site.errors import ConfigurationError, OperationalError

THREADS = 8
_BACKLOG = 128


class WebServer(BaseApplication):  # type: ignore[misc] # gunicorn has no types
    """gunicorn without its own command line, files and control socket; `run` ends the process."""

    def __init__(self, descriptor: int, load: Callable[[], Any]) -> None:
        """Take over the descriptor of a listening socket."""
        self._descriptor = descriptor
        self._load = load
        super().__init__()

    def load_config(self) -> None:
        """Set what differs from gunicorn's defaults."""
        known = {setting.name for setting in KNOWN_SETTINGS}
        wanted = {
            "bind": f"fd://{self._descriptor}",
            "workers": 1,
            "worker_class": "gthread",
            "threads": THREADS,
            "loglevel": "warning",
            # Its default of 0 would make the database's side files writable for everybody.
            "umask": 0o077,
            # A second door into the process, in the home directory; newer versions open it by default.
            "control_socket_disable": True,
        }
        for name, value in wanted.items():
            if name in known:
                self.cfg.set(name, value)

    def load(self) -> Any:
        """Give the WSGI application."""
        return self._load()


def parsed(bind: str) -> tuple[str, int]:
    """Take `HOST:PORT` apart (an IPv6 host in brackets); `ConfigurationError` if it is none."""
    host, colon, port = bind.rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    if not (host and colon and port.isascii() and port.isdigit() and int(port) < 65536):
        raise ConfigurationError(f"--bind is {bind!r}; expected HOST:PORT, such as 127.0.0.1:8000")
    return host, int(port)


def is_loopback(host: str) -> bool:
    """Tell whether only this machine can reach the address; a name other than localhost is not looked up."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def listen(host: str, port: int) -> socket.socket:
    """Open the listening socket; `OperationalError` when the address is taken or not this machine's."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((host, port))
        listener.listen(_BACKLOG)
    except OSError as exc:
        listener.close()
        reason = exc.strerror or str(exc)
        raise OperationalError(
            f"Nothing can be served on {host}:{port}: {reason}. Try another --bind."
        ) from exc
    return listener


def address(listener: socket.socket) -> str:
    """Name the address that a browser on this machine opens."""
    host, port = listener.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
