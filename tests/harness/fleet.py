"""One queue with its workers, folders and witnesses: what acceptance tests and soaks are made of."""

from __future__ import annotations

import itertools
import json
import secrets
import shutil
import tempfile
import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self, cast

import redis

from dispatch.ids import rq_id
from dispatch.jobs import JobData, local_job
from dispatch.queue import keys
from dispatch.queue.new_jobs import FORGE, LOCAL, Keeping
from dispatch.queue.producer import Enqueued, Exists, Producer
from runs.workspace.scope import canonical_folder, hash16
from tests.harness import forge_jobs
from tests.harness.engine_witness import EngineWitness, Life
from tests.harness.evidence import QUEUE, Evidence, counted_starts, dirty_keys, gather_jobs
from tests.harness.ground import Ground
from tests.harness.judge import Rule, judge, shown
from tests.harness.null_runs import IMAGE
from tests.harness.worker_process import WorkerProcess, until

_OVER = frozenset({b"finished", b"failed"})


class Fleet:
    """Everything of one test in one temporary place, gone at the end; `image` None = nothing in containers.

    `engine` is docker-py's client and goes with an image.
    """

    def __init__(self, url: str, *, image: str | None = None, engine: Any = None) -> None:
        self.home = Path(tempfile.mkdtemp(prefix="pd-fleet-")).resolve()
        self.home.chmod(0o755)
        self.url = url
        self.client: redis.Redis = redis.Redis.from_url(url, socket_timeout=30)
        self.ground = Ground(self.home / "ground")
        self.job_ids: list[str] = []
        self.bounds: dict[str, int | None] = {}
        self._image = image
        self._witness = EngineWitness(engine) if image else None
        self.workers: dict[str, WorkerProcess] = {}
        self._producer = Producer(self.client)
        self._numbers = itertools.count(1)
        # Several fleets may use one engine at once, and a container's name is made of the job's id alone.
        self._salt = secrets.token_hex(4)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for worker in self.workers.values():
            worker.kill()
        if self._witness is not None:
            self._witness.remove(self.host_ids)
            self._witness.close()
        self.client.close()
        shutil.rmtree(self.home, ignore_errors=True)

    @property
    def host_ids(self) -> list[str]:
        """The hosts whose workers have started once."""
        return [host_id for worker in self.workers.values() if (host_id := worker.host_id)]

    def worker(self, name: str = "alpha", **options: Any) -> WorkerProcess:
        """Make the worker of a host (see `WorkerProcess`); it is not started."""
        worker = WorkerProcess(
            self.home / name, self.url, name=name, **{"image": self._image or IMAGE, **options}
        )
        self.workers[name] = worker
        return worker

    def folder(self, name: str, **orders: str) -> Path:
        """Make a folder; an order's underscore stands for a dash."""
        return self.ground.folder(name, {key.replace("_", "-"): value for key, value in orders.items()})

    def place(self, name: str, **orders: str) -> Path:
        """Make a folder for a worker without containers, as in `folder`, in no time."""
        return self.ground.place(name, {key.replace("_", "-"): value for key, value in orders.items()})

    def enqueue(self, folder: Path, *, queue: str = QUEUE, keeping: Keeping = LOCAL, **fields: Any) -> str:
        """Put a job on a folder into a queue and answer its id."""
        job_id = f"local-{self._salt}{next(self._numbers):04x}"
        job = local_job(str(folder), task="Do as you are told.", **fields)
        scope = canonical_folder(str(folder))
        return self._put(queue, job_id, job, keeping, hash16(scope) if scope else None)

    def enqueue_forge(self, folder: str, *, queue: str = QUEUE, once: tuple[int, int] | None = None) -> str:
        """Put a job of the repository that stands for this folder into a queue (see `Knobs.repositories`).

        `once`: of the one-shot with this index in the triggers file and this number.
        """
        repo = forge_jobs.repository(folder)
        job_id, job = forge_jobs.forge_job(repo, f"{self._salt}{next(self._numbers):04x}", once=once)
        self.bounds.setdefault(folder, None)
        return self._put(queue, job_id, job, FORGE, hash16(repo))

    def bound(self, **concurrent: int) -> dict[str, str]:
        """Bound the repositories that stand for these folders; what a worker is told of it."""
        rows = [
            {"scope": forge_jobs.repository(folder), "concurrent": most}
            for folder, most in concurrent.items()
        ]
        path = self.home / f"limits-{next(self._numbers)}.json"
        path.write_text(json.dumps({"version": 1, "limits": rows}))
        self.bounds.update(concurrent)
        return {"PI_SCOPED_LIMITS_FILE": str(path)}

    def _put(self, queue: str, job_id: str, job: JobData, keeping: Keeping, scope_hash: str | None) -> str:
        found = self._producer.enqueue(queue, job_id, job, keeping=keeping, scope_hash=scope_hash)
        assert isinstance(found, Enqueued), found
        self.job_ids.append(job_id)
        return job_id

    def enqueue_again(self, job_id: str) -> str:
        """Ask for a job that is known already; the state that the answer names."""
        found = self._producer.enqueue(QUEUE, job_id, local_job("/elsewhere", task="Something else."))
        assert isinstance(found, Exists), found
        return found.state.value

    def statuses(self, job_ids: Sequence[str]) -> list[bytes | None]:
        """Where these jobs stand, in RQ's words."""
        pipeline = self.client.pipeline(transaction=False)
        for job_id in job_ids:
            pipeline.hget(keys.job(rq_id(job_id).encode()), "status")
        return pipeline.execute()

    def how_many_are_over(self, job_ids: Sequence[str] | None = None) -> int:
        """How many of these jobs (all) have ended."""
        return sum(status in _OVER for status in self.statuses(self.job_ids if job_ids is None else job_ids))

    def all_wait(self, workers: int) -> bool:
        """Whether so many workers wait for a job, each on the shared queue and on its own."""
        return cast("int", self.client.info("clients")["blocked_clients"]) == 2 * workers

    def until_over(self, job_ids: Sequence[str] | None = None, *, seconds: float) -> None:
        """Wait until these jobs (all) have ended and their records are written."""
        wanted = self.job_ids if job_ids is None else job_ids

        def over() -> bool:
            return self.how_many_are_over(wanted) == len(wanted) and not self.has_unwritten_records()

        until(over, seconds=seconds, what=f"{len(wanted)} jobs have ended and are recorded")

    def has_unwritten_records(self) -> bool:
        """Whether any host has still to write a record."""
        return any(self.client.llen(keys.pending_records(host_id)) for host_id in self.host_ids)

    def until_status(self, job_id: str, status: str, *, seconds: float = 10) -> None:
        """Wait until a job stands so."""
        until(
            lambda: self.statuses([job_id]) == [status.encode()],
            seconds=seconds,
            what=f"{job_id} is {status}",
        )

    def until_a_day_has_time_left(self, seconds: float) -> None:
        """Wait for the next day if this one ends sooner: a test of caps must not be given another day's."""
        left = 24 * 3600 - self.client.time()[0] % (24 * 3600)
        if left < seconds:
            time.sleep(left)

    def until_tidy(self, *, seconds: float) -> None:
        """Wait until nothing is left to tidy up; what stays is for the judge to name."""
        try:
            until(lambda: not self._left() and not dirty_keys(self.client), seconds=seconds, what="tidy")
        except AssertionError:
            return

    def record(self, job_id: str) -> Mapping[str, Any]:
        """The final record file of a job."""
        return self.records([job_id])[job_id]

    def records(self, job_ids: Sequence[str]) -> Mapping[str, Mapping[str, Any]]:
        """The final record file of each of these jobs."""
        found = {}
        for job in self._jobs(job_ids):
            (found[job.job_id],) = (record for record in job.files if record["final"])
        return found

    def lives(self) -> list[Life]:
        """The containers of these hosts so far, by the engine's word; none without containers."""
        return self._witness.lives(self.host_ids) if self._witness else []

    def hash_of(self, job_id: str) -> Mapping[bytes, bytes]:
        """What the queue itself says of a job."""
        return cast("Mapping[bytes, bytes]", self.client.hgetall(keys.job(rq_id(job_id).encode())))

    def everything_in_valkey(self) -> str:
        """The whole content of the server, for tests that look for what must not be there."""
        return "\n".join(f"{key!r} {self.client.dump(key)!r}" for key in self.client.scan_iter(count=1000))

    def events(self, *names: str) -> list[dict[str, Any]]:
        """What the workers have logged, of these names (all)."""
        found = [event for worker in self.workers.values() for event in worker.events()]
        return [event for event in found if not names or event["event"] in names]

    def evidence(self) -> Evidence:
        """Gather it; call when everything stands still."""
        counted, granted = counted_starts(self.client)
        return Evidence(
            jobs=self._jobs(self.job_ids),
            spans=tuple(self.ground.spans()),
            lives=tuple(self._witness.lives(self.host_ids)) if self._witness else None,
            left=tuple(self._left()),
            dirty=dirty_keys(self.client),
            counted=counted,
            granted=granted,
            hosts=len(self.workers),
            bounds=dict(self.bounds),
            unmirrored=len(self.events("run_mirror_failed")),
        )

    def require_sound(self, *, tidy_seconds: float = 10, without: Collection[Rule] = ()) -> Evidence:
        """Gather and judge, but for some rules; AssertionError with what does not hold."""
        self.until_tidy(seconds=tidy_seconds)
        evidence = self.evidence()
        violations = judge(evidence, without=without)
        assert not violations, shown(violations)
        return evidence

    def complaints(self) -> str:
        """What the workers wrote to standard error."""
        return "".join(worker.complaint() for worker in self.workers.values())

    def _jobs(self, job_ids: Sequence[str]) -> Any:
        return gather_jobs(self.client, job_ids, self._state_dirs(), self.events())

    def _state_dirs(self) -> Iterable[Path]:
        return (worker.state_dir for worker in self.workers.values())

    def _left(self) -> list[str]:
        """Name containers, networks, job directories and half-written files that are still there."""
        paths = [path for state in self._state_dirs() for path in state.glob("*jobs/*")]
        paths += [path for state in self._state_dirs() for path in (state / "logs").rglob(".*")]
        found = [path.name for path in paths]
        return [*found, *self._witness.left(self.host_ids)] if self._witness else found
