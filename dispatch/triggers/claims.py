"""Which job spends a one-shot, for the whole fleet: of several that matched it, one runs (Q 3.4 a).

The file alone cannot say it: two jobs may be on their way at once, and each host has a file of its own. A
claim is its job's as long as that job is known in the queue. It outlives the job's record, for the hosts
whose file still has the entry armed. Where a host has noted in its file that the job spent it, an entry that
is armed was armed again by hand, and the next job may have it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, cast

from redis.exceptions import ResponseError

from dispatch.ids import MAX_ID_BYTES
from dispatch.queue.states import Standing, look
from pidispatch_site.clients import VALKEY_FAULTS
from runs.oneshot import OneShot

if TYPE_CHECKING:
    import redis

_LUA = Path(__file__).with_name("lua")
# As long as a forge's job is known in the queue (Q 2.4).
LIFETIME_MS = timedelta(days=31) // timedelta(milliseconds=1)
_RECORDED = "recorded"


class Claims:
    """The claims as one host sees them. Raises redis-py's errors; every method may be repeated."""

    def __init__(self, client: redis.Redis, host_id: str) -> None:
        self._client = client
        self._host_id = host_id
        self._field, self._failed = f"spent:{host_id}", f"failed:{host_id}"
        self._claim, self._note = (
            client.register_script((_LUA / f"{name}.lua").read_text(encoding="ascii"))
            for name in ("claim", "note")
        )

    def claim(self, once: OneShot, job_id: str, *, is_armed: Callable[[], bool]) -> str:
        """Claim it for the job, and answer which job has it then.

        `is_armed` tells whether this host's file has the entry armed now; it is asked once the claim has said
        that the file was disarmed, so that an answer from before that moment counts for nothing.
        """
        holder, noted = self._ask(once, job_id)
        if holder != job_id.encode():
            standing = self._standing(holder)
            is_noted = noted == holder and standing is not None and standing.state.is_over
            if standing is None or (is_noted and is_armed()):
                holder, _ = self._ask(once, job_id, displacing=holder)
        return _text(holder)

    def spender(self, once: OneShot, job_id: str) -> str | None:
        """Name the job that has spent it, now that a record of `job_id` is written; None: it has none itself.

        That is who has the claim, else `job_id`. Only `record` tells whether there is one: a job that has
        ended may still wait for it, and of one that vanished nobody knows whether it ran.
        """
        try:
            holder, recorded = cast("list[bytes | None]", self._client.hmget(_key(once), ["job", _RECORDED]))
        except ResponseError:
            return job_id
        if not holder or len(holder) > MAX_ID_BYTES or holder == job_id.encode():
            return job_id
        return _text(holder) if recorded == holder else None

    def record(self, once: OneShot, job_id: str) -> None:
        """Note that a record of the job is written, if it has the claim: others may say that it spent it."""
        self._note(keys=[_key(once)], args=[job_id, _RECORDED, LIFETIME_MS])

    def note(self, once: OneShot, job_id: str) -> None:
        """Note that this host's file says that the job has spent it."""
        self._note(keys=[_key(once)], args=[job_id, self._field, LIFETIME_MS])

    def note_failed(self, once: OneShot, job_id: str) -> None:
        """Note that the job has spent it and this host could not write that into its file."""
        self._note(keys=[_key(once)], args=[job_id, self._failed, LIFETIME_MS])

    def undone(self, onces: Iterable[OneShot]) -> tuple[tuple[OneShot, str], ...]:
        """Tell which of these this host has not noted yet as spent in its file, and by which job each was."""
        return tuple(not_disarmed(self._client, onces, hosts=[self._host_id]).items())

    def _ask(self, once: OneShot, job_id: str, *, displacing: bytes = b"") -> tuple[bytes, bytes]:
        """Ask for the claim: who has it, and for whom this host has noted that."""
        holder, noted = self._claim(
            keys=[_key(once)], args=[job_id, displacing, self._field, LIFETIME_MS, MAX_ID_BYTES]
        )
        return holder, noted

    def _standing(self, holder: bytes) -> Standing | None:
        """Look up where a job stands; None when it is not known, and for what is no id of a job."""
        try:
            return look(self._client, holder.decode())
        except (ValueError, ResponseError):
            return None


def not_disarmed(
    client: redis.Redis, onces: Iterable[OneShot], *, hosts: Sequence[str]
) -> Mapping[OneShot, str]:
    """Tell of which of these armed one-shots a job has a record and its disarm failed, and that job's id.

    On one of the hosts, by host-id. One round trip. Raises redis-py's errors; no claim is no error.
    """
    asked = list(onces)
    if not asked or not hosts:
        return {}
    fields = [f"{what}:{host}" for host in hosts for what in ("failed", "spent")]
    with client.pipeline(transaction=False) as pipeline:
        for once in asked:
            pipeline.hmget(_key(once), ["job", *fields])
        answers = pipeline.execute(raise_on_error=False)
    found = {}
    for once, answer in zip(asked, answers, strict=True):
        if isinstance(answer, VALKEY_FAULTS):
            raise answer
        holder, *noted = [None] if isinstance(answer, Exception) else answer
        of_hosts = zip(noted[::2], noted[1::2], strict=True)
        has_failed = any(failed == holder != spent for failed, spent in of_hosts)
        if holder and len(holder) <= MAX_ID_BYTES and has_failed:
            found[once] = _text(holder)
    return found


def forget_recorded(client: redis.Redis, once: OneShot) -> bool:
    """Forget whose it was if that job's record is written: a job that is on its way keeps it."""
    script = client.register_script((_LUA / "forget.lua").read_text(encoding="ascii"))
    return bool(script(keys=[_key(once)], args=[_RECORDED]))


def forget(client: redis.Redis, once: OneShot) -> None:
    """Forget whose it was: a person armed it again."""
    client.delete(_key(once))


def _text(holder: bytes) -> str:
    return holder.decode("utf-8", "backslashreplace")


def _key(once: OneShot) -> str:
    return f"once:{once.index}:{once.number}:{once.slot}"
