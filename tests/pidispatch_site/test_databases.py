from __future__ import annotations

import sqlite3
import subprocess
import sys
import types
import warnings
from concurrent.futures import ProcessPoolExecutor
from contextlib import closing
from multiprocessing import get_context
from pathlib import Path

import pytest
from django.db.utils import ConnectionHandler
from django.db.utils import OperationalError as DjangoOperationalError

from pidispatch_site import databases
from pidispatch_site.errors import ConfigurationError, OperationalError
from tests.dispatch.consolekit import be_humble

WRONG = [
    "nothing",
    "mysql://u:hunter2@h/n",
    "postgres://",
    "postgres://u:hunter2@h",
    "postgres://u:hunter2@[::1",
    "postgres://u:hunter2@h:port/n",
    "sqlite://",
    "sqlite:///relative-hunter2.db",
    "sqlite://:memory:",
    "://",
]


@pytest.fixture
def opened(django_db_blocker):
    """Connections of a test's own files; the product's database stays out of reach."""
    with django_db_blocker.unblock():
        yield


@pytest.fixture
def driver(monkeypatch):
    """A PostgreSQL driver as far as the settings ask for one."""
    monkeypatch.setitem(sys.modules, "psycopg", types.ModuleType("psycopg"))


@pytest.mark.parametrize("url", WRONG)
def test_a_wrong_address_is_refused_without_being_shown(url, driver, capfd):
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        found = databases.problems(url)

    assert len(found) == 1
    assert "hunter2" not in "".join([*found, *capfd.readouterr()])


def test_postgresql_is_taken_apart(driver):
    settings = databases.settings("postgres://op:p%40ss@db:5433/runs?sslmode=require", default=Path("/x"))

    assert settings["ENGINE"] == "django.db.backends.postgresql"
    assert [settings[key] for key in ("USER", "PASSWORD", "HOST", "PORT", "NAME")] == [
        "op",
        "p@ss",
        "db",
        5433,
        "runs",
    ]
    assert settings["OPTIONS"] == {"sslmode": "require"}


def test_postgresql_may_be_reached_by_its_socket(driver):
    assert databases.settings("postgres://op@%2Frun%2Fpg/runs", default=Path("/x"))["HOST"] == "/run/pg"


def test_postgresql_without_its_driver_is_told_how_to_get_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "psycopg", None)

    assert "pip install" in databases.problems("postgres://u@h/n")[0]


def connection(settings):
    return ConnectionHandler({"default": settings})["default"]


def test_sqlite_waits_for_writers_and_does_not_block_readers(tmp_path, opened):
    one = connection(databases.settings(None, default=tmp_path / "db.sqlite3"))

    with one.cursor() as cursor:
        pragmas = [
            cursor.execute(f"PRAGMA {name}").fetchone()[0]
            for name in ("journal_mode", "synchronous", "busy_timeout")
        ]

    assert pragmas == ["wal", 1, 20_000]
    assert one.transaction_mode == "IMMEDIATE"
    one.close()


def test_the_first_connection_makes_a_private_directory(tmp_path, opened):
    one = connection(databases.settings(None, default=tmp_path / "a" / "b" / "db.sqlite3"))
    assert not (tmp_path / "a").exists()

    one.ensure_connection()

    assert (tmp_path / "a" / "b").stat().st_mode & 0o777 == 0o700
    one.close()


def test_a_directory_that_cannot_be_made_is_said(tmp_path, opened):
    (tmp_path / "file").touch()

    with pytest.raises(OperationalError, match="cannot be made private"):
        connection(
            databases.settings(None, default=tmp_path / "file" / "sub" / "db.sqlite3")
        ).ensure_connection()


def test_an_unusable_database_says_why_when_it_is_wanted_and_not_before(opened):
    one = connection(databases.unusable(("first", "second")))

    assert one.ops.max_name_length() is None
    with pytest.raises(ConfigurationError, match="first\nsecond"):
        one.ensure_connection()
    assert not Path("unusable").exists()


def test_an_opening_is_given_up_after_the_timeout(tmp_path, opened):
    path = tmp_path / "db.sqlite3"
    reader = sqlite3.connect(path, isolation_level=None)
    reader.execute("CREATE TABLE counter (n INTEGER)")
    reader.execute("BEGIN")
    reader.execute("SELECT * FROM counter").fetchall()
    settings = databases.settings(None, default=path)
    settings["OPTIONS"]["timeout"] = 0.2

    with pytest.raises(DjangoOperationalError, match="locked"):
        connection(settings).ensure_connection()
    reader.close()


def open_at_once(paths, barrier):
    """One of several processes that open each of some new databases at the same moment."""
    for path in paths:
        one = connection(databases.settings(None, default=path))
        barrier.wait(timeout=30)
        one.ensure_connection()
        one.close()


def test_processes_that_turn_a_new_database_to_wal_at_once_all_open_it(tmp_path, opened):
    paths = [tmp_path / str(n) / "db.sqlite3" for n in range(30)]
    context = get_context("fork")
    barrier = context.Barrier(6)
    processes = [context.Process(target=open_at_once, args=(paths, barrier)) for _ in range(6)]

    for process in processes:
        process.start()
    for process in processes:
        process.join(60)

    assert [process.exitcode for process in processes] == [0] * 6


def count_up(path):
    """What each of several processes does to one new database at the same moment."""
    one = connection(databases.settings(None, default=path))
    for _ in range(20):
        with one.cursor() as cursor:
            cursor.execute("BEGIN IMMEDIATE")
            cursor.execute("CREATE TABLE IF NOT EXISTS counter (n INTEGER)")
            cursor.execute("INSERT INTO counter SELECT COALESCE(MAX(n), 0) + 1 FROM counter")
            cursor.execute("COMMIT")
    one.close()


def test_processes_that_open_a_new_database_at_once_all_write(tmp_path, opened):
    path = tmp_path / "s" / "db.sqlite3"

    with ProcessPoolExecutor(4, mp_context=get_context("fork")) as pool:
        list(pool.map(count_up, [path] * 4))

    with sqlite3.connect(path) as one:
        assert one.execute("SELECT COUNT(*), MAX(n) FROM counter").fetchone() == (80, 80)
    one.close()


_READS_AS_IT_STANDS = """
import sqlite3, sys
from pathlib import Path
from django.conf import settings
settings.configure()
from django.db.utils import ConnectionHandler, OperationalError
from pidispatch_site import databases
found = databases.settings(None, default=Path(sys.argv[1]))
if sys.argv[2:]:
    databases.for_requests(found)
try:
    with ConnectionHandler({"default": found})["default"].cursor() as cursor:
        print(cursor.execute("SELECT n FROM counter").fetchall())
        cursor.execute("INSERT INTO counter VALUES (8)")
except OperationalError as error:
    print(error)
"""


def test_for_requests_a_file_in_a_folder_that_cannot_be_written_is_read(tmp_path):
    folder = tmp_path / "a folder? of 100%"
    folder.mkdir()
    path = folder / "db.sqlite3"
    with closing(sqlite3.connect(path)) as one:
        one.executescript(
            "PRAGMA journal_mode=WAL; CREATE TABLE counter (n INTEGER); INSERT INTO counter VALUES (7)"
        )
    path.chmod(0o400)
    folder.chmod(0o500)

    def said(*words):
        command = [sys.executable, "-c", _READS_AS_IT_STANDS, str(path), *words]
        return subprocess.run(
            command, capture_output=True, text=True, preexec_fn=be_humble, check=True
        ).stdout

    refused = "attempt to write a readonly database\n"
    assert said("for requests") == f"[(7,)]\n{refused}"
    assert said() == refused
    # Somebody who writes has a log there, without which the file is not the whole of it.
    folder.chmod(0o700)
    (folder / "db.sqlite3-wal").touch()
    folder.chmod(0o500)
    assert said("for requests") == "unable to open database file\n"
    folder.chmod(0o700)


def test_a_request_waits_for_no_lock_for_long(tmp_path, opened, driver):
    path = tmp_path / "db.sqlite3"
    settings = databases.settings(None, default=path)
    databases.for_requests(settings)
    one = connection(settings)
    with one.cursor() as cursor:
        assert cursor.execute("PRAGMA busy_timeout").fetchone()[0] == 2000
    one.close()

    settings = databases.settings("postgres://op@db/runs?sslmode=require", default=path)
    databases.for_requests(settings)
    assert settings["OPTIONS"] == {
        "sslmode": "require",
        "connect_timeout": 2,
        "options": "-c lock_timeout=2s",
    }
