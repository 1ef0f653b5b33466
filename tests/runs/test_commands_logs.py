from __future__ import annotations

import io
import threading
from types import SimpleNamespace

import pytest
from django.core.management import call_command

from pidispatch_site.errors import OperationalError
from runs.files import Entry, RecordFiles
from runs.management.commands import logs
from runs.outcome import Outcome
from tests.harness.records import a_record


class Terminal(io.BytesIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def configuration(tmp_path, settings) -> SimpleNamespace:
    settings.PIDISPATCH = SimpleNamespace(logs_dir=tmp_path / "logs", capture_job_logs=True)
    return settings.PIDISPATCH


@pytest.fixture
def files(configuration) -> RecordFiles:
    configuration.logs_dir.mkdir()
    return RecordFiles(configuration.logs_dir)


def keep(files: RecordFiles, **fields: object) -> None:
    record = a_record(**fields)
    files.write([Entry(record, record.to_bytes())])


def test_the_bytes_are_shown_as_they_are(files, capfdbinary):
    files.log_path("repeat:a:1").write_bytes(b"one\n\x1b[31m\xff two")

    call_command("logs", "repeat:a:1")

    assert capfdbinary.readouterr().out == b"one\n\x1b[31m\xff two"


def test_on_a_terminal_a_job_cannot_send_control_sequences(tmp_path):
    log = tmp_path / "a.log"
    log.write_bytes("a\tb\n\x1b]0;title\x07 \x9b31m é\r".encode())
    out = Terminal()

    logs.show(log, out, ended=lambda: True)

    assert out.getvalue() == "a\tb\n?]0;title? ?31m é?".encode()


@pytest.mark.parametrize(
    ("capture", "record", "expected"),
    [
        pytest.param(
            True, None, ["neither a log nor a record", "manage.py status", "another host"], id="unknown"
        ),
        pytest.param(False, {}, ["completed", "PI_CAPTURE_JOB_LOGS=1"], id="capture is off"),
        pytest.param(
            True,
            {"outcome": Outcome.POLICY, "reason": "job-image-missing"},
            ["policy (job-image-missing)", "no container ran", "reaped"],
            id="refused",
        ),
    ],
)
def test_a_log_that_is_not_there_is_explained(capture, record, expected, files, configuration):
    configuration.capture_job_logs = capture
    if record is not None:
        keep(files, job_id="job-1", **record)

    with pytest.raises(OperationalError) as raised:
        call_command("logs", "job-1")

    assert raised.value.exit_code == 1
    for part in expected:
        assert part in str(raised.value)


def test_following_an_ended_job_ends(files, capfdbinary):
    keep(files, job_id="job-1")
    files.log_path("job-1").write_bytes(b"all of it")

    call_command("logs", "job-1", "--follow")

    assert capfdbinary.readouterr().out == b"all of it"


def test_following_shows_what_comes_until_the_job_has_ended_for_good(files):
    path, out = files.log_path("job-1"), io.BytesIO()
    happens = iter(
        [
            lambda: path.write_bytes(b"one "),
            lambda: keep(files, job_id="job-1", attempt=0, final=False),
            lambda: append(path, b"two "),
            lambda: (append(path, b"three"), keep(files, job_id="job-1", attempt=1)),
        ]
    )

    logs.show(path, out, ended=logs._ends(files, "job-1"), sleep=lambda _: next(happens)())

    assert out.getvalue() == b"one two three"


def append(path, content: bytes) -> None:
    with path.open("ab") as file:
        file.write(content)


def test_a_job_that_prints_faster_than_we_copy_is_shown_up_to_now(tmp_path):
    log = tmp_path / "a.log"
    log.write_bytes(b"x" * 200_000)
    stop = threading.Event()

    def flood() -> None:
        while not stop.is_set() and log.stat().st_size < 50_000_000:
            append(log, b"y" * 100_000)

    writer = threading.Thread(target=flood)
    writer.start()
    try:
        out = io.BytesIO()
        logs.show(log, out, ended=lambda: True)
    finally:
        stop.set()
        writer.join()

    assert out.getvalue().startswith(b"x" * 200_000)
