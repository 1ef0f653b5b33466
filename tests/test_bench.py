"""What `make bench` prints around its figures; the figures themselves are measured by it alone."""

from __future__ import annotations

import json
from types import SimpleNamespace

import pytest

from tests.bench import __main__ as bench
from tests.bench import ladder, schedules
from tests.bench.report import FIGURES, report


def _lines(capsys):
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


@pytest.mark.parametrize(
    ("key", "ours", "peer", "ratio", "holds"),
    [
        pytest.param("containers", 11.5, 10.0, 1.15, True, id="at most, just"),
        pytest.param("containers", 11.6, 10.0, 1.16, False, id="at most, missed"),
        pytest.param("throughput-pool", 20.0, 10.0, 2.0, True, id="at least, just"),
        pytest.param("throughput-pool", 19.9, 10.0, 1.99, False, id="at least, missed"),
        pytest.param("memory", 80.0, None, 0.8, True, id="to the target"),
        pytest.param("memory", 101.0, None, 1.01, False, id="above the target"),
    ],
)
def test_a_line_says_by_name_what_was_measured_and_whether_it_holds(capsys, key, ours, peer, ratio, holds):
    report(key, ours=ours, peer=peer)

    (line,) = _lines(capsys)
    del line["what"]
    assert line == {
        "name": key,
        "ours": ours,
        "peer": peer,
        "ratio": ratio,
        "target": FIGURES[key].target,
        "holds": holds,
    }


def test_every_line_belongs_to_one_benchmark():
    assert sorted(key for keys in bench.BENCHES.values() for key in keys) == sorted(FIGURES)


def test_without_an_engine_the_lines_that_need_one_have_no_figures_and_the_others_are_measured(
    capsys, monkeypatch, tmp_path
):
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/nobody.sock")
    measured = SimpleNamespace(bench=lambda keys: report(*keys, ours=1.0, peer=1.0))
    monkeypatch.setattr(
        bench,
        "import_module",
        lambda name: measured if name == "tests.bench.latency" else __import__(name, fromlist=["bench"]),
    )

    assert bench.main(["containers", "latency", "memory"]) == 0

    lines = {line["name"]: (line["ours"], line["holds"], line.get("note")) for line in _lines(capsys)}
    nothing = (None, None, "no container engine answers")
    assert lines == {"containers": nothing, "latency": (1.0, True, None), "memory": nothing}


def test_one_that_breaks_says_so_and_the_others_are_measured(capsys, monkeypatch):
    def broken(keys):
        raise RuntimeError("no")

    monkeypatch.setattr(bench, "import_module", lambda name: SimpleNamespace(bench=broken))

    assert bench.main(["throughput", "commands"]) == 1

    lines = _lines(capsys)
    assert [line["name"] for line in lines] == ["throughput-simple", "throughput-pool", "commands"]
    assert {(line["holds"], line["note"]) for line in lines} == {(None, "it broke: RuntimeError('no')")}


@pytest.mark.parametrize(
    ("names", "asked"),
    [
        pytest.param(["throughput"], [("throughput-simple", "throughput-pool")], id="both of a benchmark"),
        pytest.param(["throughput-pool"], [("throughput-pool",)], id="one line"),
        pytest.param([], list(bench.BENCHES.values()), id="everything"),
    ],
)
def test_a_name_is_a_line_or_a_benchmark(monkeypatch, names, asked):
    seen = []
    monkeypatch.setattr(bench, "import_module", lambda name: SimpleNamespace(bench=seen.append))

    assert bench.main(names) == 0
    assert seen == asked


def test_an_unknown_name_is_answered_with_those_there_are(capsys):
    assert bench.main(["containers", "speed"]) == 2

    said = capsys.readouterr().err
    assert "no benchmark named speed" in said
    assert all(key in said for key in FIGURES)


def test_the_ladder_decides_about_paused_jobs_and_others_by_files_of_the_size_that_is_promised(
    capsys, monkeypatch
):
    monkeypatch.setattr(ladder, "JOBS", 60)
    monkeypatch.setattr(ladder, "RELOADS", 2)

    assert bench.main(["ladder"]) == 0

    lines = {line["name"]: line for line in _lines(capsys)}
    assert list(lines) == list(bench.BENCHES["ladder"])
    assert all(line["ours"] > 0 for line in lines.values())
    assert "60 of 60 paused" in lines["ladder-dense"]["note"]
    assert "60 of 60 paused" not in lines["ladder"]["note"]
    assert "; 0 of 60 paused" not in lines["ladder"]["note"]


def test_schedules_are_loaded_installed_and_found_not_due_within_what_is_promised(capsys, monkeypatch):
    monkeypatch.setattr(schedules, "SCHEDULES", 60)
    monkeypatch.setattr(schedules, "TICKS", 20)

    assert bench.main(["schedules"]) == 0

    lines = {line["name"]: line for line in _lines(capsys)}
    assert list(lines) == list(bench.BENCHES["schedules"])
    assert all(line["ours"] > 0 for line in lines.values())
    assert all(line["holds"] for name, line in lines.items() if not name.endswith("-peer")), lines
    assert lines["schedules-trips"]["ours"] == 2
