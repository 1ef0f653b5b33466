"""The files of the filtered list: whole, harmless to a spreadsheet, and honest about what is missing."""

from __future__ import annotations

import csv
import io
import json

import pytest
from django.contrib.auth.models import Permission, User

from runs import export, rows
from runs.walk import Facet, Query
from tests.harness.records import a_record
from tests.runs.test_rows import table_renamed

pytestmark = pytest.mark.django_db
CSV, JSON = "/admin/runs/run/export.csv", "/admin/runs/run/export.json"


@pytest.fixture
def viewer(client):
    user = User.objects.create_user("viewer", is_staff=True)
    user.user_permissions.add(Permission.objects.get(codename="view_run"))
    client.force_login(user)
    return client


def text(response) -> str:
    assert response.status_code == 200
    return b"".join(response.streaming_content).decode()


def cells(query: Query | None = None) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO("".join(export.as_csv(query or Query())))))


def test_both_files_hold_the_filtered_runs_newest_first(viewer):
    rows.write([a_record(number, host=f"h{number % 2}") for number in range(30)])
    expected = [a_record(number).job_id for number in range(29, 0, -2)]

    sheet, data = viewer.get(CSV, {"host": "h1"}), viewer.get(JSON, {"host": "h1"})

    lines = list(csv.DictReader(io.StringIO(text(sheet))))
    assert [row["jobId"] for row in lines] == expected
    first = [lines[0][name] for name in ("endedAt", "final", "turns", "cost", "reason")]
    assert first == ["2026-01-05T12:04:50.000Z", "true", "7", "0.4136", ""]
    answer = json.loads(text(data))
    assert [run["jobId"] for run in answer["runs"]] == expected
    assert (answer["complete"], answer["note"]) == (True, None)
    assert answer["runs"][0] == a_record(29, host="h1").to_json()
    for response, kind in ((sheet, "text/csv; charset=utf-8"), (data, "application/json")):
        assert response.headers["Content-Type"] == kind
        assert response.headers["X-Content-Type-Options"] == "nosniff"
        assert response.headers["Content-Disposition"].startswith('attachment; filename="runs-')
        assert "no-store" in response.headers["Cache-Control"]


def test_what_is_searched_for_is_exported_too_and_nothing_is_a_file_too():
    rows.write([a_record(1), a_record(2)])

    assert [row["jobId"] for row in cells(Query(search=a_record(1).job_id))] == [a_record(1).job_id]
    assert json.loads("".join(export.as_json(Query(facets={Facet.HOST: "x"})))) == {
        "runs": [],
        "complete": True,
        "note": None,
    }


@pytest.mark.parametrize(
    "start", ["=", "+", "-", "@", "\t", "\r", "\n", "\uff1d", "\uff0b", "\uff0d", "\uff20"]
)
def test_no_cell_is_a_formula(start):
    hostile = f'{start}HYPERLINK("http://x","y")'
    rows.write([a_record(1, job_id=hostile, flow=hostile, target=hostile, host=hostile, exit_code=-1)])

    (row,) = cells()

    assert {row[name] for name in ("jobId", "flow", "target", "host")} == {f"'{hostile}"}
    assert row["exitCode"] == "'-1"
    assert not [value for value in row.values() if value.startswith(export._FORMULA)]


def test_of_too_many_the_newest_are_in_the_file_which_says_so(monkeypatch):
    monkeypatch.setattr(export, "MOST", 7)
    monkeypatch.setattr(export, "_RUNS_AT_ONCE", 3)
    rows.write([a_record(number) for number in range(8)])
    newest = [a_record(number).job_id for number in range(7, 0, -1)]

    assert [row["jobId"] for row in cells()] == [*newest, f"# {export.CUT}"]
    answer = json.loads("".join(export.as_json(Query())))
    assert [run["jobId"] for run in answer["runs"]] == newest
    assert (answer["complete"], answer["note"]) == (False, export.CUT)

    monkeypatch.setattr(export, "MOST", 8)
    assert len(cells()) == 8
    assert json.loads("".join(export.as_json(Query())))["complete"] is True


@pytest.mark.django_db(transaction=True)
def test_it_is_read_while_it_is_written_and_says_when_the_database_went(monkeypatch):
    monkeypatch.setattr(export, "_RUNS_AT_ONCE", 3)
    rows.write([a_record(number) for number in range(9)])
    sheet, data = export.as_csv(Query()), export.as_json(Query())
    got = [next(sheet), next(sheet)], [next(data), next(data)]

    with table_renamed():
        lines = "".join([*got[0], next(sheet)])
        answer = json.loads("".join([*got[1], next(data)]))

    assert lines.endswith(f"# {export.BROKEN}\r\n")
    assert len(lines.splitlines()) == 5
    assert len(answer["runs"]) == 3
    assert (answer["complete"], answer["note"]) == (False, export.BROKEN)


@pytest.mark.parametrize("path", [CSV, JSON])
def test_who_may_and_what_is_not_understood(path, viewer, client):
    assert viewer.get(path, {"since": "soon"}).status_code == 400
    assert viewer.post(path).status_code == 405
    client.force_login(User.objects.create_user("staff", is_staff=True))
    assert client.get(path).status_code == 403
    client.logout()
    assert client.get(path).status_code == 302
