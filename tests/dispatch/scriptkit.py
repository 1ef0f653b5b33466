"""A fleet, a history and people in which every text that somebody else may write is a script with a name."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import fields, is_dataclass, replace
from datetime import UTC, datetime
from enum import Enum
from pathlib import Path
from typing import Any

import redis
from django.contrib.admin.models import ADDITION, CHANGE, LogEntry
from django.contrib.auth.models import Group, User
from django.contrib.contenttypes.models import ContentType

from dispatch.console import triggers_file
from dispatch.ids import rq_id
from dispatch.jobdata import JobData
from dispatch.jobs import decode
from dispatch.models import Fleet
from dispatch.pages import operation_store
from dispatch.pages.operation_state import Progress, Result, Row, State
from dispatch.payload import encode
from dispatch.queue import entries, keys
from dispatch.queue import fields as job_fields
from dispatch.queue.waiters import WaitReason
from dispatch.schedules import keys as schedule_keys
from dispatch.schedules.fingerprint import fingerprint
from dispatch.schedules.notes import Acted, Torn
from dispatch.waits.holds import Holds, Waiter
from hosts import keys as hosts_keys
from hosts import switches
from hosts.row_reading import FIELDS
from runs import rows
from runs.files import RecordFiles
from runs.models import Run
from runs.outcome import Outcome
from runs.record import Attempt
from tests.dispatch.fleetkit import appear
from tests.dispatch.job_samples import FULL_FORGE, FULL_LOCAL, call
from tests.dispatch.queuekit import Host, now_ms
from tests.dispatch.schedulekit import ALPHA, entry, schedule
from tests.harness.records import NOON, a_record

FAR_MS = 4_000_000_000_000
LATER_VERSIONS = "later-version"
JOBS = tuple(f"job-{name}" for name in ("ran", "failed", "runs", "cap", "held", "scope", "waits", "odd"))
OPERATIONS = {state: f"{place:032x}" for place, state in enumerate(State)}
# What says where a job stands, or how it is read; everything else of it is somebody's text.
_OF_ITS_STATE = {
    *("status", "origin", "taker", "reason", "since", "until", "firstQueued", "attempt", "attempts", "data"),
    *("enqueued_at", "started_at", "ended_at", "created_at"),
}


def evil(name: str) -> str:
    """Write a script that breaks out of text, attributes, scripts and a spreadsheet's cell.

    It has no blank, so that it may be the name of something, and one of the marks that pages set code
    between; its own name comes first, so that it can be recognised where only the beginning is shown.
    """
    return f"=zz-{name}-zz</script><script>alert(1)</script>\"'><img/src=''/onerror=alert(2)>`"


def scripted(value: Any, name: str) -> Any:
    """Put a script in the place of every text in a value, and of each text of a dataclass that is absent."""
    match value:
        case Enum():
            return value
        case str():
            return evil(name)
        case Mapping():
            return {key: scripted(one, f"{name}.{key}") for key, one in value.items()}
        case list() | tuple():
            return type(value)(scripted(one, name) for one in value)
    if not is_dataclass(value) or isinstance(value, type):
        return value
    changed = {}
    for one in fields(value):
        found = getattr(value, one.name)
        is_absent = found is None and one.type == "str | None"
        changed[one.name] = scripted("" if is_absent else found, f"{name}.{one.name}")
    return replace(value, **changed)


def scripted_job(job: JobData, name: str) -> JobData:
    """Put a script in the place of each text of a job's data with which it still is a job."""
    for one in fields(job):
        found = getattr(job, one.name)
        text = "" if found is None and one.type == "str | None" else found
        changed = replace(job, **{one.name: scripted(text, f"{name}.{one.name}")})
        if isinstance(decode(call(encode(changed)["data"])), JobData):
            job = changed
    # The last part of its path is shown.
    folder = evil(f"{name}.folder").replace("/", " ")
    return replace(job, folder=f"/srv/{folder}") if job.folder else job


def fleet(client: redis.Redis, folder: Path) -> dict[str, str]:
    """Write all that stands in Valkey and in files; answers the variables of the host alpha."""
    files = operator_files(folder)
    told = triggers_file.loaded(folder / "triggers.json", zone="UTC", name="alpha")
    cron = fingerprint(told.triggers.cron if told.triggers else None, zone=told.zone)
    texts = ("version", "image", "imageDigest", "piVersion", "tz", "blind", "caps", "fpPause", "fpSettings")
    appear(client, "alpha", fpTriggers=told.digest, fpCron=cron, **{one: evil(f"row.{one}") for one in texts})
    appear(client, "beta", **{one: evil(f"beta.{one}") for one in FIELDS if one not in ("name", "hostId")})
    strangers(client)
    jobs(client)
    schedules(client)
    switches.pause(client, [hosts_keys.FLEET], by=evil("pause.by"), reason=evil("pause.reason"))
    switches.pause(client, [ALPHA], by=evil("pause-queue.by"), reason=evil("pause-queue.reason"))
    for host in ("alpha", "beta"):
        switches.drain(client, host, by=evil("drain.by"), reason=evil("drain.reason"))
    operations(client)
    return files


def strangers(client: redis.Redis) -> None:
    """What is no host and no queue, in each list of them."""
    other = evil("stranger") + "\n\x1b[31m"
    client.hset(hosts_keys.host_row("gamma"), mapping={"name": evil("gamma"), "hostId": evil("gamma")})
    client.sadd(hosts_keys.HOSTS_LIVE, "gamma", other)
    client.sadd(hosts_keys.QUEUES_KNOWN, evil("queue"))
    client.hset(hosts_keys.HOSTS_KNOWN, evil("known"), json.dumps({"name": evil("known"), "beat": 1}))
    client.zadd(f"takers:{ALPHA}", {evil("taker"): now_ms(client)})
    client.hset(keys.PUT_OFFS, mapping={f'{evil("put-off")}"}} 1\nevil{{a="': 3})
    client.hset(hosts_keys.containers("b" * 16), evil("container.name"), evil("container.what"))


def jobs(client: redis.Redis) -> None:
    """Jobs in every state, each text of whose hash and data is a script."""
    host = Host(client, host_id="a" * 16)
    for place, name in enumerate(JOBS):
        job = scripted_job((FULL_LOCAL, FULL_FORGE)[place % 2], name)
        host.producer.enqueue(host.queue, name, job, scope_hash=evil(f"{name}.scope"))
    host.producer.enqueue(host.queue, evil("jobid"), FULL_LOCAL, scope_hash=evil("job.scope"))
    host.end(host.start())
    host.end(host.start(), Outcome.FAILED)
    host.steps.begin(host.claim(), container=evil("container"), deadline_ms=FAR_MS)
    for reason in (WaitReason.CAP, WaitReason.WAIT, WaitReason.SCOPE_BUSY):
        host.steps.put_off(host.claim(), until_ms=FAR_MS, reason=reason, cause=evil(f"cause.{reason}"))
    hold = Waiter(
        job_id="job-held", target=evil("hold.target"), label=evil("hold.label"), identity=evil("hold.id")
    )
    Holds(client).record(hold, now_ms=now_ms(client), until_ms=FAR_MS)
    for name in (*JOBS, evil("jobid")):
        key = keys.job(rq_id(name).encode())
        known = {*entries.NAMES, *job_fields.NAMES, *(one.decode() for one in client.hkeys(key))}
        texts = known if name == "job-odd" else known - _OF_ITS_STATE
        about = name if name in JOBS else "jobid"
        client.hset(key, mapping={one: evil(f"{about}.{one}") for one in texts})


def schedules(client: redis.Redis) -> None:
    """A schedule as the file has it, one that was taken down, and what is none."""
    run = scripted({"flow": "x", "task": "x", "model": "x", "folder": "x"}, "sched")
    for queue in (ALPHA, "pi-jobs"):
        definitions = {
            "nightly": schedule(**run).text(),
            "other": schedule("other", **run).text(),
            evil("sched.id"): evil("sched.def"),
        }
        client.hset(schedule_keys.definitions(queue), mapping=definitions)
        client.zadd(schedule_keys.upcoming(queue), dict.fromkeys(definitions, FAR_MS))
        client.hset(schedule_keys.since(queue), mapping={"nightly": 1, evil("since"): evil("since.at")})
        torn = Torn(
            fingerprint=evil("torn.fp"),
            stalls=3,
            at_ms=now_ms(client),
            definition=schedule("torn", **run).text(),
        )
        client.hset(
            schedule_keys.torn(queue), mapping={"torn": torn.text(), evil("torn.id"): evil("torn.note")}
        )
        acted = Acted(instant_ms=1_800_000_000_000, at_ms=1_800_000_000_000, skipped=2, job_id="x")
        client.hset(schedule_keys.fired(queue), mapping={"nightly": acted.text(), "other": evil("fired")})


def operations(client: redis.Redis) -> None:
    """A background action in every state."""
    for state, its_id in OPERATIONS.items():
        made = Progress(
            id=its_id,
            kind="x",
            by="x",
            reason="x",
            lines=("x",),
            columns=("Job", "x"),
            result=Result("x", is_good=False, notes=("x",)),
        )
        told = replace(scripted(made, f"op-{state}"), id=its_id, state=state)
        row = Row(tuple(evil(f"op-{state}.cell{place}") for place in range(3)), is_good=None)
        operation_store.keep(client, told, [row], replaces=True)


def operator_files(folder: Path) -> dict[str, str]:
    """The operator's files, as full of scripts as their loaders let pass."""
    run = scripted(
        {"task": "x", "flow": "x", "provider": "x", "model": "x", "image": "x", "skillsDir": "x"}, "file.run"
    )
    cron = entry("nightly", "30 2 * * *", **{**run, "folder": f"/{evil('file.folder')}", "image": "img:1"})
    cron[evil("file.key")] = evil("file.value")
    comment = {
        "on": {"type": "comment", "phrase": evil("file.phrase")},
        "run": {"kind": "github", "flow": "fix", "instructions": evil("file.instructions")},
    }
    label = {
        "on": {"type": "label", "any": [evil("file.label")]},
        "run": {"kind": "gitlab", "command": evil("file.command")},
    }
    scope = {
        "scope": f"/srv/{evil('window.scope')}",
        "allDay": True,
        evil("window.key"): evil("window.value"),
    }
    documents: dict[str, object] = {
        "TRIGGERS": {"triggers": [cron, comment, label], evil("file.top"): evil("file.top")},
        "PAUSE_WINDOWS": {"windows": [scope, {"scope": evil("window.repo"), "allDay": True}]},
        "SCOPED_LIMITS": {"version": 1, "limits": [{"scope": f"/srv/{evil('limit.scope')}", "day": 1}]},
        "SETTINGS": {
            "provider": evil("overlay.provider"),
            "model": evil("overlay.model"),
            evil("overlay.key"): "x",
        },
    }
    return written(folder, documents)


def broken_files(folder: Path) -> dict[str, str]:
    """The same files as their loaders refuse them: a script in the place of everything."""
    told = scripted(entry(), "broken") | {evil("broken.key"): evil("broken.value")}
    row = {
        evil("broken.row-key"): evil("broken.row"),
        "scope": evil("broken.scope"),
        "tz": evil("broken.zone"),
    }
    documents: dict[str, object] = {
        "TRIGGERS": {"triggers": [told, evil("broken.entry"), {**told, "on": {"type": evil("broken.type")}}]},
        "PAUSE_WINDOWS": {"windows": [{**row, "from": evil("broken.from"), "days": [evil("broken.day")]}]},
        "SCOPED_LIMITS": {"version": 1, "limits": [{**row, "day": evil("broken.limit")}]},
        "SETTINGS": {"dailyCap": evil("broken.cap"), evil("broken.setting"): evil("broken.setting")},
    }
    return written(folder, documents)


def written(folder: Path, documents: Mapping[str, object]) -> dict[str, str]:
    """Write them; answers the variables that name them."""
    named = {}
    for name, document in documents.items():
        path = folder / ("triggers.json" if name == "TRIGGERS" else f"{name}.json")
        path.write_text(json.dumps(document))
        named[f"PI_{name}_FILE"] = str(path)
    return named


def history(logs: Path) -> None:
    """Runs whose every text is a script, and what they printed."""
    early = Attempt(outcome=Outcome.FAILED, reason="x", tokens={"total": 1, "x": "x"})
    session = {"resumed": False, "reason": "x", "bytes": 1, "path": "x"}
    full = scripted(a_record(1, attempts=(early,), session=session), "run")
    parent = replace(
        full, job_id="job-1", parent_job_id=evil("run.job_id"), kind="local", ended_at=datetime.now(UTC)
    )
    rows.write([full, parent, replace(full, job_id="job-2", parent_job_id="job-1", ended_at=NOON)])
    later = {
        one.attname: getattr(Run.objects.get(pk="job-2"), one.attname) for one in Run._meta.concrete_fields
    }
    Run.objects.create(
        **{**later, "job_id": LATER_VERSIONS, "outcome": evil("run.outcome"), "tokens": evil("t")}
    )
    for job_id in ("job-1", "job-2"):
        RecordFiles(logs).log_path(job_id).write_text(evil("printed") + "\x1b[31m\r\n")


def people(admin: User) -> None:
    """Names of people, groups and tokens, and entries of the log of each kind."""
    named = {one: evil(f"user.{one}")[:30] for one in ("first_name", "last_name", "email")}
    User.objects.create_user(evil("user.name")[:150], **named).groups.add(
        Group.objects.create(name=evil("group.name")[:150])
    )
    ours = {
        one: {**scripted({"x": {"y": ["x"], "z": [{"x": "x"}]}}, f"log.{one}"), evil("log.key"): "x"}
        for one in ("before", "after")
    }
    ours |= {one: evil(f"log.{one}") for one in ("action", "reason")}
    entry_of(admin, Fleet, CHANGE, json.dumps(ours))
    entry_of(admin, Fleet, CHANGE, json.dumps({**ours, "command": evil("log.command"), "action": "pause"}))
    entry_of(admin, Fleet, CHANGE, evil("log.raw"))
    django = [
        {"changed": {"name": evil("log.model"), "object": evil("log.object"), "fields": [evil("log.field")]}}
    ]
    for flag, said in ((CHANGE, json.dumps(django)), (ADDITION, evil("log.said"))):
        entry_of(admin, User, flag, said)


def entry_of(user: User, model: type, flag: int, message: str) -> None:
    LogEntry.objects.create(
        user_id=user.pk,
        content_type=ContentType.objects.get_for_model(model),
        object_id=str(user.pk),
        object_repr=evil("log.target"),
        action_flag=flag,
        change_message=message,
    )
