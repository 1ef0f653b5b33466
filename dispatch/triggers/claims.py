"""Which job spends a one-shot, for the whole fleet: of several that matched it, one runs (Q 3.4 a).

The file alone cannot say it: two jobs may be on their way at once, and each host has a file of its own. A
claim is its job's as long as that job is known in the queue. It outlives the job's record, for the hosts whose
file still has the entry armed; on a host that has noted in its file that the job spent it, an armed entry was
armed again by hand, and the next job may have it.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, cast

from redis.exceptions import ResponseError

from dispatch.ids import MAX_ID_BYTES
from dispatch.queue.states import Standing, look
from runs.oneshot import OneShot

if TYPE_CHECKING:
    import redis

_LUA = Path(__file__).with_name("lua")
# As long as a forge's job is known in the queue (Q 2.4).
LIFETIME_MS = timedelta(days=31) // timedelta(milliseconds=1)


class Claims:
    """The claims as one host sees them. Raises redis-py's errors; every method may be repeated."""

    def __init__(self, client: redis.Redis, host_id: str) -> None:
        self._client = client
        self._field = f"spent:{host_id}"
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
        if holder == job_id:
            return holder
        standing = self._standing(holder)
        is_gone = standing is None
        is_armed_again = noted == holder and standing is not None and standing.state.is_over and is_armed()
        if is_gone or is_armed_again:
            holder, _ = self._ask(once, job_id, displacing=holder)
        return holder

    def spender(self, once: OneShot, job_id: str) -> str | None:
        """Name the job that has spent it, now that a record of `job_id` is written; None: it is under way.

        That is who has the claim, else `job_id` itself.
        """
        try:
            value = cast("bytes | None", self._client.hget(_key(once), "job"))
        except ResponseError:
            value = None
        holder = value.decode("utf-8", "replace") if value and len(value) <= MAX_ID_BYTES else job_id
        if holder == job_id:
            return job_id
        standing = self._standing(holder)
        return holder if standing is None or standing.state.is_over else None

    def note(self, once: OneShot, job_id: str) -> None:
        """Note that this host's file says that the job has spent it."""
        self._note(keys=[_key(once)], args=[job_id, self._field, LIFETIME_MS])

    def forget(self, once: OneShot) -> None:
        """Forget whose it was: it is armed again."""
        self._client.delete(_key(once))

    def _ask(self, once: OneShot, job_id: str, *, displacing: str = "") -> tuple[str, str]:
        answer = self._claim(
            keys=[_key(once)], args=[job_id, displacing, self._field, LIFETIME_MS, MAX_ID_BYTES]
        )
        holder, noted = (part.decode("utf-8", "surrogateescape") for part in answer)
        return holder, noted

    def _standing(self, job_id: str) -> Standing | None:
        """Look up where a job stands; None when it is not known, and for what is no id of a job."""
        try:
            return look(self._client, job_id)
        except (ValueError, ResponseError):
            return None


def _key(once: OneShot) -> str:
    return f"once:{once.index}:{once.number}:{once.slot}"
