from __future__ import annotations

import io
import json
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace

import pytest
from django.core.management import CommandError, call_command

from pidispatch_site.errors import OperationalError
from runs import merging, mirror, rows
from runs.files import Entry
from runs.mirror import Mirror
from runs.models import Run
from runs.outcome import Outcome
from tests.harness.records import a_record
from tests.runs.test_rows import table_renamed

NOW = datetime.now(UTC).replace(microsecond=0)
FAILED = Outcome.FAILED


def run(number: int, **fields: object):
    """The `number`-th run of the last hour."""
    return a_record(number, **{"ended_at": NOW - timedelta(minutes=50) + timedelta(seconds=number), **fields})


def mirrored(valkey, *news) -> None:
    Mirror(valkey, retention_days=0).write([Entry(record, record.to_bytes()) for record in news])


@pytest.fixture
def asked(settings, tmp_path, db, valkey_url):
    """Call the command on a host of a fleet: what it prints, and what it says beside that."""
    settings.PIDISPATCH = SimpleNamespace(
        worker_name_declared=True, valkey_url=valkey_url, state_dir=tmp_path / "state"
    )

    def call(*arguments: str) -> tuple[str, str]:
        out, err = io.StringIO(), io.StringIO()
        call_command("runs", *arguments, stdout=out, stderr=err)
        return out.getvalue(), err.getvalue()

    return call


def found(asked, *arguments: str) -> tuple[str, list[str]]:
    out, _ = asked("--json", *arguments)
    answer = json.loads(out)
    return answer["degraded"], [f"{one['jobId'][-1]}{one['attempt']}" for one in answer["runs"]]


def test_the_fleets_runs_are_one_list_newest_first(asked, valkey):
    rows.write([run(1), run(4), run(5, final=False)])
    mirrored(valkey, run(1), run(2), run(3), run(6, job_id=run(5).job_id, attempt=1))

    assert found(asked) == ("ok", ["51", "40", "30", "20", "10"])
    assert found(asked, "--limit", "2") == ("ok", ["51", "40"])
    assert asked()[1].strip() == merging.sentence(merging.OK)


@pytest.mark.parametrize(
    ("arguments", "shown"),
    [
        (("--outcome", "failed"), ["60", "51", "40"]),
        (("--outcome", "failed", "--limit", "1"), ["60"]),
        (("--host", "build-2"), ["60", "51", "30"]),
        (("--host", "build-1", "--outcome", "failed"), ["40"]),
        (("--host", "build-1", "--outcome", "failed", "--limit", "1"), ["40"]),
        (("--outcome", "policy"), []),
    ],
)
def test_a_filter_is_judged_by_the_last_word_of_a_run_wherever_it_stands(arguments, shown, asked, valkey):
    there = {"host": "build-2"}
    rows.write(
        [
            # Failed here, but went well there since: more of them than are asked for.
            *(run(number, job_id=f"again-{number}", outcome=FAILED, final=False) for number in range(10, 15)),
            run(3, outcome=Outcome.COMPLETED, **there),
            run(4, outcome=FAILED),
        ]
    )
    mirrored(
        valkey,
        *(run(number + 10, job_id=f"again-{number}", attempt=1) for number in range(10, 15)),
        # Failed there, but this host knows better.
        run(2, job_id=run(3).job_id, outcome=FAILED, **there),
        run(5, attempt=1, outcome=FAILED, **there),
        run(6, outcome=FAILED, **there),
    )

    assert found(asked, *arguments) == ("ok", shown)


def test_the_four_answers_reach_a_person_and_a_program(asked, valkey, settings, monkeypatch):
    rows.write([run(1)])
    assert found(asked) == ("off", ["10"])
    assert asked()[1].strip() == merging.sentence(merging.OFF)

    mirrored(valkey, *(run(number) for number in range(200)))
    monkeypatch.setattr(mirror, "_READ_BYTES", 1)
    assert found(asked, "--outcome", "completed", "--limit", "1")[0] == "truncated"

    settings.PIDISPATCH.valkey_url = "unix:///nonexistent/s"
    assert found(asked) == ("unreachable", ["10"])
    out, err = asked()
    assert err.startswith("This host only")
    assert "no-answer" in err
    assert run(1).job_id in out


def test_a_host_that_is_not_in_a_fleet_asks_no_server(asked, settings):
    settings.PIDISPATCH.worker_name_declared = False
    settings.PIDISPATCH.valkey_url = "embedded"
    rows.write([run(1)])

    assert found(asked) == ("off", ["10"])
    assert "declares no PI_WORKER_NAME" in asked()[1]


def test_a_person_sees_columns_and_no_control_characters(asked):
    rows.write(
        [
            run(1, tokens=None, host="a\x1b[31m", job_id="j\x07\n1", final=False, outcome=FAILED),
            run(2, reason="over-budget", outcome=Outcome.POLICY),
        ]
    )

    out, _ = asked()

    heading, second, first = out.splitlines()
    assert heading.split() == ["ENDED", "(UTC)", "OUTCOME", "REASON", "HOST", "TOOK", "COST", "JOB"]
    assert "policy" in second
    assert "over-budget" in second
    assert first.endswith("j??1")
    assert "failed, again" in first
    assert "a?[31m" in first
    assert first.index("j??1") == second.index(run(2).job_id) == heading.index("JOB")


def test_an_empty_history_and_rows_of_a_later_version_are_said(asked):
    assert "No run yet" in asked()[0]

    rows.write([run(1), run(2)])
    Run.objects.filter(pk=run(1).job_id).update(outcome="a-later-outcome")

    out, err = asked()
    assert run(2).job_id in out
    assert "1 rows of a later version are left out." in err


@pytest.mark.parametrize("arguments", [("--limit", "0"), ("--limit", "x"), ("--outcome", "done")])
def test_what_is_no_option_is_usage(arguments, asked):
    with pytest.raises(CommandError):
        asked(*arguments)


@pytest.mark.django_db(transaction=True)
def test_a_broken_table_is_explained(asked):
    told = r"cannot be read: (no such table: runs_run|relation \"runs_run\" does not exist)\.$"
    with table_renamed(), pytest.raises(OperationalError, match=told):
        asked()
