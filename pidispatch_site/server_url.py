"""The address of the Valkey server: which texts are one, and how it is shown to a person."""

from __future__ import annotations

from urllib.parse import SplitResult, parse_qsl, urlsplit

from pidispatch_site.parsing import Unusable

EMBEDDED = "embedded"
DEFAULT = "redis://127.0.0.1:6379"
EXPECTED = "redis://HOST[:PORT][/DB], rediss://…, unix:///PATH[?db=N], or the word embedded"

_SCHEMES = {"valkey": "redis", "valkeys": "rediss", "redis": "redis", "rediss": "rediss", "unix": "unix"}
# The client lets options in the URL overrule its caller's; time limits and decoding are not the operator's.
_OPTIONS = frozenset(
    {"db", "ssl_cert_reqs", "ssl_ca_certs", "ssl_certfile", "ssl_keyfile", "ssl_check_hostname"},
)


def parse(text: str) -> str:
    """Read an address as the client takes it; `Unusable` never repeats the text: it may hold a password."""
    url = text.strip()
    if url == EMBEDDED:
        return url
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as exc:
        raise Unusable(EXPECTED) from exc
    if parts.scheme not in _SCHEMES or port == 0:
        raise Unusable(EXPECTED)
    if parts.fragment:
        raise Unusable(f"{EXPECTED}; a # in the password is written %23")
    _check_options(parts)
    _check_place(parts)
    return _SCHEMES[parts.scheme] + url[len(parts.scheme) :]


def _check_options(parts: SplitResult) -> None:
    options = parse_qsl(parts.query, keep_blank_values=True)
    unknown = sorted({name for name, _ in options} - _OPTIONS)
    if unknown:
        raise Unusable(f"no option but {', '.join(sorted(_OPTIONS))} after the question mark")
    if any(name == "db" and not _is_database(value) for name, value in options):
        raise Unusable("a number of a database in db=")


def _check_place(parts: SplitResult) -> None:
    if parts.scheme == "unix":
        if parts.netloc.rpartition("@")[2] or len(parts.path) < len("/x"):
            raise Unusable(EXPECTED)
        return
    database = parts.path.removeprefix("/")
    # The client takes an unreadable number for database 0 without a word.
    if not parts.hostname or (database and not _is_database(database)):
        raise Unusable(EXPECTED)


def _is_database(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) < len("10000")


def shown(url: str) -> str:
    """Show the address without user, password and options, for a person's eyes."""
    parts = urlsplit(url)
    place = parts.netloc.rpartition("@")[2]
    return f"{parts.scheme}://{place}{parts.path}" if parts.scheme else url
