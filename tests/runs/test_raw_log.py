"""What a job printed, on its page and as a file: for who may read it, of this host, and never a fault."""

from __future__ import annotations

import os
import re
from html import unescape
from types import SimpleNamespace

import pytest
from django.contrib.admin.utils import quote
from django.contrib.auth.models import Permission, User
from django.urls import reverse

from pidispatch_site.errors import ConfigurationError
from runs import raw_log, rows
from runs.files import RecordFiles
from tests.harness.records import a_record

pytestmark = pytest.mark.django_db
ID = "chain/ä 1"


@pytest.fixture
def log(settings, tmp_path):
    """Where this host would keep the output of the job, which has ended."""
    settings.PIDISPATCH = SimpleNamespace(worker_name_declared=False, logs_dir=tmp_path)
    rows.write([a_record(job_id=ID, host="build-7")])
    return RecordFiles(tmp_path).log_path(ID)


@pytest.fixture
def reader(client):
    """Somebody who may view runs and read what they printed."""
    user = User.objects.create_user("reader", is_staff=True)
    user.user_permissions.set(Permission.objects.filter(codename__in=["view_run", "read_job_output"]))
    client.force_login(user)
    return client


def page(client) -> str:
    response = client.get(reverse("admin:runs_run_change", args=[quote(ID)]))
    assert response.status_code == 200
    return response.content.decode()


def raw(client):
    return client.get(reverse("admin:runs_run_log", args=[quote(ID)]))


def test_the_end_is_shown_as_text_and_all_of_it_is_a_plain_file(log, reader):
    data = b"\x1b[31m<script>alert(1)</script>\r\nend \xff\n"
    log.write_bytes(data)

    shown = page(reader)
    answer = raw(reader)

    (tail,) = re.findall(r'aria-label="What it printed">(.*?)</pre>', shown, re.DOTALL)
    assert unescape(tail) == "<script>alert(1)</script>\nend \ufffd\n"
    assert "<script>alert" not in shown
    assert b"".join(answer.streaming_content) == data
    assert answer.headers["Content-Type"] == "text/plain; charset=utf-8"
    assert answer.headers["X-Content-Type-Options"] == "nosniff"
    assert "no-store" in answer.headers["Cache-Control"]
    assert f"/{ID}" not in answer.headers["Content-Disposition"]


def test_of_a_long_log_the_page_has_whole_lines_of_the_end(log, reader, tmp_path):
    log.write_bytes(b"first\n" + "ü".encode() * 50_000 + b"\nlast\n")

    found = raw_log.tail(tmp_path, ID)

    assert (found.text, found.size, found.is_cut) == ("last\n", 100_012, True)
    assert "the last 64 KiB of 100,012 bytes" in page(reader)
    log.write_bytes(b"x" * 70_000)
    assert len(raw_log.tail(tmp_path, ID).text) == raw_log.TAIL_BYTES


def test_nothing_of_it_is_for_who_may_only_view_runs(log, client):
    log.write_bytes(b"sentinel-of-output")
    user = User.objects.create_user("viewer", is_staff=True)
    user.user_permissions.add(Permission.objects.get(codename="view_run"))
    client.force_login(user)

    assert "sentinel-of-output" not in page(client)
    assert raw(client).status_code == 403
    client.force_login(User.objects.create_user("staff", is_staff=True))
    assert raw(client).status_code == 403
    client.logout()
    assert raw(client).status_code == 302


def _link(log):
    target = log.with_name("elsewhere")
    target.write_text("sentinel-of-elsewhere")
    log.symlink_to(target)


@pytest.mark.parametrize(
    ("make", "said"),
    [
        pytest.param(lambda log: None, "It ran on build-7.", id="nothing there"),
        pytest.param(lambda log: log.write_bytes(b""), "It has printed nothing.", id="empty"),
        pytest.param(lambda log: log.mkdir(), "The log cannot be read: io-error.", id="a folder"),
        pytest.param(os.mkfifo, "The log cannot be read: io-error.", id="a pipe that nobody writes to"),
        pytest.param(_link, "The log cannot be read: io-error.", id="a link"),
    ],
)
def test_what_is_not_there_or_no_log_is_said(make, said, log, reader, tmp_path):
    make(log)

    shown = page(reader)

    assert said in shown
    assert "sentinel" not in shown
    assert str(tmp_path) not in shown
    assert raw(reader).status_code == (200 if "printed nothing" in said else 404)


def test_a_configuration_that_does_not_load_costs_the_log_and_not_the_page(log, reader, settings):
    class Broken:
        def __getattr__(self, name: str) -> object:
            raise ConfigurationError("x")

    settings.PIDISPATCH = Broken()

    assert "configuration does not load" in page(reader)
    assert raw(reader).status_code == 404
    assert "This host only" in reader.get("/admin/runs/run/").content.decode()


def test_a_log_that_grows_while_it_is_read_ends_where_it_began_to_be_read(log, tmp_path):
    log.write_bytes(b"a" * 70_000)

    pieces = raw_log.pieces(tmp_path, ID)
    first = next(pieces)
    with log.open("ab") as file:
        file.write(b"b" * 70_000)

    assert first + b"".join(pieces) == b"a" * 70_000
