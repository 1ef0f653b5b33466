from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runs.workspace.event import CronTrigger, Occurrence, Source, local_event

SHA = "a" * 40
NIGHT = datetime(2026, 3, 4, 5, 6, 7, 890123, tzinfo=UTC)


def test_a_manual_job_tells_its_source_folder_and_commit() -> None:
    text = local_event(source=Source.MANUAL, folder_name="site", sha=SHA)

    assert text == b'{"source":"manual","folder":"site","sha":"' + SHA.encode() + b'"}\n'


def test_a_chained_job_before_the_first_commit_has_no_commit() -> None:
    assert json.loads(local_event(source=Source.CHAIN, folder_name="s", sha=None)) == {
        "source": "chain",
        "folder": "s",
        "sha": None,
    }


def test_a_cron_job_tells_its_schedule_and_both_instants_in_utc() -> None:
    text = local_event(
        source=Source.CRON,
        folder_name="site",
        sha=SHA,
        trigger=CronTrigger(id="nightly", pattern="0 3 * * *"),
        occurrence=Occurrence(
            scheduled_for=NIGHT.astimezone(timezone(timedelta(hours=2))), previous_run_at=None
        ),
    )

    assert list(json.loads(text).items()) == [
        ("source", "cron"),
        ("trigger", {"id": "nightly", "pattern": "0 3 * * *"}),
        ("folder", "site"),
        ("sha", SHA),
        ("scheduledFor", "2026-03-04T05:06:07.890Z"),
        ("previousRunAt", None),
    ]


@pytest.mark.parametrize("source", [Source.MANUAL, Source.CHAIN])
def test_instants_are_only_for_cron(source: Source) -> None:
    occurrence = Occurrence(scheduled_for=NIGHT, previous_run_at=NIGHT)

    event = json.loads(local_event(source=source, folder_name="s", sha=SHA, occurrence=occurrence))

    assert event.keys() == {"source", "folder", "sha"}


def test_a_cron_job_of_unknown_instants_says_null() -> None:
    event = json.loads(local_event(source=Source.CRON, folder_name="s", sha=SHA))

    assert event["scheduledFor"] is None
    assert event["previousRunAt"] is None


@given(st.text(alphabet=st.characters(), max_size=20))
def test_any_folder_name_is_one_line_of_ascii_and_comes_back(name: str) -> None:
    text = local_event(source=Source.MANUAL, folder_name=name, sha=SHA)

    assert text.count(b"\n") == 1
    assert json.loads(text.decode("ascii"))["folder"] == name
