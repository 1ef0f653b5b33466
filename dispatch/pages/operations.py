"""Actions that take longer than a request: they run in a thread of the web process and tell how they stand.

What they tell is kept in Valkey for every web process (`operation_store`), and until that has all of it in
the memory of this one: an action never waits for its book-keeping, and one that lost Valkey still says so.
"""

from __future__ import annotations

import secrets
import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from time import monotonic, sleep

import redis
from django.db import connections
from redis.exceptions import RedisError

from dispatch.console.arguments import one_line
from dispatch.console.server import address_of, explained
from dispatch.pages import operation_store
from dispatch.pages.operation_state import MOST_LINES, Progress, Result, Row, State
from dispatch.pages.veil import veiled
from hosts.faults import token_of
from hosts.switches import LONGEST_TEXT
from pidispatch_site import clients, log, server_url
from pidispatch_site.errors import PidispatchError

__all__ = ["Entries", "Operation", "Progress", "Result", "Row", "State", "begin", "here"]

_BEAT_SECONDS = 3.0
_FEWEST_SECONDS = 0.5
_LAST_WORD_SECONDS = 60.0
_END_UNLOGGED = "The end of this action is not in the log: the database is away, or may not be written to."
# Of those whose end Valkey did not take.
_MOST_REMEMBERED = 20
_remembered: OrderedDict[str, Operation] = OrderedDict()
_lock = threading.Lock()

Work = Callable[["Operation"], Result]


@dataclass(frozen=True, slots=True)
class Entries:
    """Keeps that an action began, once it has (by its id), and then how it ended; both may take long.

    `ended` answers whether that is kept: there is nobody left to tell but who looks at the action.
    """

    begun: Callable[[str], object]
    ended: Callable[[Progress], bool]


def begin(
    environment: Mapping[str, str],
    *,
    kind: str,
    by: str,
    reason: str,
    work: Work,
    columns: Sequence[str] = (),
    total: int | None = None,
    entries: Entries | None = None,
) -> str:
    """Start `work` in a thread and answer the action's id, which `console_operation` shows.

    `kind` is a token such as `stop`, `columns` head the table of its rows. A PidispatchError or a fault of
    Valkey that `work` raises is shown as its end. Raises PidispatchError where the configuration names no
    server.
    """
    address = address_of(environment)
    progress = Progress(
        id=secrets.token_hex(16),
        kind=kind,
        by=one_line(by)[:LONGEST_TEXT],
        reason=one_line(reason)[:LONGEST_TEXT],
        columns=tuple(columns),
        total=total,
    )
    operation = Operation(progress, address, environment)
    _remember(operation)
    log.event("operation_started", operation=operation.id, kind=kind)
    threading.Thread(
        target=operation.run, args=(work, entries), name=f"operation-{kind}", daemon=True
    ).start()
    threading.Thread(target=operation.keep, name="operation-beat", daemon=True).start()
    try:
        if entries:
            entries.begun(operation.id)
    finally:
        operation.begun.set()
    # Whoever is led to its page may be answered by another process.
    operation.first_kept.wait(1.0)
    return operation.id


def here(operation_id: str, *, first: int = 0, count: int = 200) -> Progress | None:
    """Tell how an action stands of which this process knows more than Valkey; None for any other."""
    with _lock:
        operation = _remembered.get(operation_id)
    return operation.progress(first=first, count=count) if operation else None


def _remember(operation: Operation) -> None:
    with _lock:
        _remembered[operation.id] = operation
        over = [one.id for one in _remembered.values() if one.is_over]
        for old in over[: max(0, len(_remembered) - _MOST_REMEMBERED)]:
            del _remembered[old]


def _forget(operation_id: str) -> None:
    with _lock:
        _remembered.pop(operation_id, None)


def _printable(row: Row) -> Row:
    """Make texts that peers wrote safe to keep and to show."""
    return Row(tuple(map(one_line, row.cells)), row.is_good)


class Operation:
    """A background action, as its work sees it. `client` is its own; `shown` names the server."""

    def __init__(self, progress: Progress, address: str, environment: Mapping[str, str]) -> None:
        self.id = progress.id
        self._environment = environment
        self.client: redis.Redis = clients.state_client(address)
        self.shown = veiled(server_url.shown(address), {})
        self.first_kept = threading.Event()
        self.begun = threading.Event()
        self._books = clients.state_client(address)
        self._progress = progress
        self._rows: list[Row] = []
        # How many rows Valkey has; None when what stands there is not known or no longer right.
        self._kept: int | None = None
        # How often the rows have been replaced.
        self._edition = 0
        self._lock = threading.Lock()
        self._changed = threading.Event()
        self._over = threading.Event()
        self._is_unkept = False

    def tell(self, *lines: str) -> None:
        """Add lines to what a person reads while it runs; the last are kept."""
        with self._lock:
            said = (*self._progress.lines, *map(one_line, lines))[-MOST_LINES:]
            self._progress = replace(self._progress, lines=said)
        self._changed.set()

    def advance(self, done: int, total: int | None = None) -> None:
        """Say how much is done, and how much there is to do where that has changed."""
        with self._lock:
            total = self._progress.total if total is None else total
            self._progress = replace(self._progress, done=done, total=total)
        self._changed.set()

    def add(self, *rows: Row) -> None:
        """Add rows to the table."""
        clean = list(map(_printable, rows))
        with self._lock:
            self._rows.extend(clean)
        self._changed.set()

    def show(self, rows: Sequence[Row]) -> None:
        """Put these rows in the place of those before."""
        clean = list(map(_printable, rows))
        with self._lock:
            if clean != self._rows:
                self._rows, self._kept = clean, None
                self._edition += 1
        self._changed.set()

    @property
    def is_over(self) -> bool:
        """Whether its work has ended."""
        return self._over.is_set()

    def progress(self, *, first: int = 0, count: int = 200) -> Progress:
        """Tell how it stands, with a page of its rows."""
        with self._lock:
            rows = tuple(self._rows[first : first + count])
            return replace(self._progress, rows=rows, row_count=len(self._rows))

    def run(self, work: Work, entries: Entries | None) -> None:
        """Do the work to its end; for the thread that `begin` starts."""
        try:
            state, result = State.DONE, work(self)
        except Exception as error:  # noqa: BLE001 - its end must be told, whatever it is
            state, result = State.FAILED, self._failed(error)
        # In the log an action begins before it ends, however short its work was.
        self.begun.wait(_LAST_WORD_SECONDS)
        is_logged = False
        try:
            # First: whoever reads that it is over finds what is kept of it.
            ending = replace(self.progress(count=0), state=state, result=result)
            is_logged = entries is None or entries.ended(ending)
        finally:
            if not is_logged:
                result = replace(result, notes=(_END_UNLOGGED, *result.notes))
            with self._lock:
                self._progress = replace(self._progress, state=state, result=result)
            self._over.set()
            self._changed.set()
            log.event("operation_ended", operation=self.id, kind=self._progress.kind, state=state.value)
            self.client.close()
            connections.close_all()

    def keep(self) -> None:
        """Keep in Valkey how it stands, until it has ended; for the thread that `begin` starts."""
        self._write()
        self.first_kept.set()
        while not self._over.wait(_FEWEST_SECONDS):
            self._changed.wait(_BEAT_SECONDS)
            self._changed.clear()
            self._write()
        ends = monotonic() + _LAST_WORD_SECONDS
        while not (is_kept := self._write()) and monotonic() < ends:
            sleep(_FEWEST_SECONDS)
        if is_kept:
            _forget(self.id)
        self._books.close()

    def _write(self) -> bool:
        with self._lock:
            progress, kept, edition = self._progress, self._kept, self._edition
            rows, count = self._rows[kept or 0 :], len(self._rows)
            # Until the answer is here nobody knows which rows stand.
            self._kept = None
        try:
            began = operation_store.keep(self._books, progress, rows, replaces=kept is None)
        except RedisError as fault:
            if not self._is_unkept:
                log.event("operation_unkept", operation=self.id, kind=progress.kind, fault=token_of(fault))
            self._is_unkept = True
            return False
        self._is_unkept = False
        with self._lock:
            self._progress = replace(self._progress, started_ms=began)
            self._kept = count if edition == self._edition else None
        return True

    def _failed(self, error: Exception) -> Result:
        if isinstance(error, RedisError):
            error = explained(error, self.shown)
        if isinstance(error, PidispatchError):
            first, *rest = veiled(str(error), self._environment).splitlines() or [""]
            return Result(first, is_good=False, notes=tuple(rest))
        name = type(error).__name__
        log.event("operation_failed", operation=self.id, kind=self._progress.kind, error=name)
        return Result(f"A mistake of the program ended this ({name}).", is_good=False)
