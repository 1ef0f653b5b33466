"""Whoever can write to Valkey can write into the registry: it is shown as unreadable, and nothing breaks."""

from __future__ import annotations

from dispatch.leases import order
from hosts import keys as hosts_keys
from runs.workspace.scope import hash16
from tests.harness.forge_jobs import repository
from tests.harness.judge import outcomes
from tests.harness.knobs import Knobs
from tests.harness.manage import manage

NAMES = ("a:b", "x@y", "two words", "n" * 10_000, "../..", "*", "", "pi-jobs@evil", "\x1b[2J")
ROWS = (
    {"beatAt": "soon", "name": "late"},
    {"beatAt": "1e999", "concurrency": "-1", "routes": "true", "caps": "s:" + "c" * 10_000},
    {"beatAt": str(2**70), "hostId": "\0", "pid": "[]", "routes": "true"},
    {"routes": "true"},
)


def _plant_rows(client):
    now_ms = int(client.time()[0]) * 1000
    for number, name in enumerate((*NAMES, "fine-0", "fine-1", "fine-2", "fine-3", b"\xff\xfe")):
        row = {"name": name, "beatAt": now_ms, "routes": "true", **ROWS[number % len(ROWS)]}
        client.sadd(hosts_keys.HOSTS_LIVE, name)
        client.hset(b"host:h:" + (name if isinstance(name, bytes) else name.encode()), mapping=row)
        client.hset(hosts_keys.HOSTS_KNOWN, name, '{"name": "x:y", "beat": "never"}')
    client.sadd(hosts_keys.HOSTS_LIVE, "stringy")
    client.set(hosts_keys.host_row("stringy"), "no hash")


def _plant_wrong_types(client):
    for key in (hosts_keys.HOSTS_LIVE, hosts_keys.HOSTS_KNOWN):
        client.delete(key)
    client.set(hosts_keys.HOSTS_LIVE, "no set")
    client.rpush(hosts_keys.HOSTS_KNOWN, "no hash")


def _require_answers(fleet, *commands):
    for words in commands:
        done = manage({"VALKEY_URL": fleet.url, "PI_STATE_DIR": str(fleet.home)}, *words)
        assert done.returncode in {0, 1}, (words, done.stderr)
        assert "Traceback" not in done.stdout + done.stderr, (words, done.stderr)
        assert "\x1b[2J" not in done.stdout + done.stderr, words


def test_what_peers_have_written_into_registry_and_leases_breaks_nothing_and_makes_no_queue(fleet):
    limits = fleet.bound(web=3)
    fleet.place("web", delay="0.1")
    slots = order.scope(hash16(repository("web")))
    fleet.client.rpush(f"{slots}:0", "no claim")
    fleet.client.set(f"{slots}:1", "#" * 100_000, ex=60)
    _plant_rows(fleet.client)
    alpha = fleet.worker(environment=limits)
    alpha.start(Knobs(without_containers=True, repositories=str(fleet.ground.home)))
    job_ids = [fleet.enqueue_forge("web") for _ in range(3)]
    job_ids.append(fleet.enqueue(fleet.place("own"), queue=alpha.queue))
    _require_answers(fleet, ["fleet"], ["doctor"], ["pause"], ["status"], ["resume"])

    _plant_wrong_types(fleet.client)
    alpha.until_said("host_registry_unreachable")
    job_ids.append(fleet.enqueue_forge("web"))
    _require_answers(fleet, ["fleet", "--json"], ["stop", "--timeout", "0"], ["resume"])
    fleet.until_over(seconds=20)

    fleet.client.delete(hosts_keys.HOSTS_LIVE)
    alpha.until_said("host_registry_restored")
    assert outcomes(fleet.require_sound()) == {"completed": len(job_ids)}
    assert {one.decode() for one in fleet.client.smembers(hosts_keys.QUEUES_KNOWN)} == {
        "pi-jobs",
        alpha.queue,
    }
    assert fleet.complaints() == ""
