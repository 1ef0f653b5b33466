from __future__ import annotations

import pytest

from pidispatch_site import lazy_settings
from pidispatch_site.errors import ConfigurationError


def test_the_database_stands_in_the_state_directory(tmp_path):
    database = lazy_settings.database({"PI_STATE_DIR": str(tmp_path)})["default"]

    assert database["NAME"] == str(tmp_path / "db.sqlite3")


@pytest.mark.parametrize(
    "environment",
    [
        {"DATABASE_URL": "nothing", "PI_STATE_DIR": "/s"},
        {"PI_STATE_DIR": "relative"},
        {"DATABASE_URL_FILE": "/nonexistent", "PI_STATE_DIR": "/s"},
    ],
    ids=["address", "directory", "file"],
)
def test_a_wrong_database_is_one_that_says_so(environment):
    assert len(lazy_settings.database(environment)["default"]["PROBLEMS"]) == 1


def test_a_named_database_needs_no_state_directory(monkeypatch):
    environment = {"DATABASE_URL": "sqlite:////x/y.db", "PI_STATE_DIR": "relative"}

    assert lazy_settings.database(environment)["default"]["NAME"] == "/x/y.db"


def test_the_key_is_made_once_and_is_private(tmp_path):
    environment = {"PI_STATE_DIR": str(tmp_path / "s")}

    key = lazy_settings.secret_key(environment)

    assert len(key) >= 50
    assert lazy_settings.secret_key(environment) == key
    assert (tmp_path / "s" / "secret_key").stat().st_mode & 0o777 == 0o600


def test_the_cache_uses_the_fleets_server_or_the_socket_of_our_own(tmp_path):
    own = {"VALKEY_URL": "embedded", "PI_STATE_DIR": "/s"}

    assert lazy_settings.cache({"VALKEY_URL": "redis://h"})["default"]["LOCATION"] == "redis://h"
    assert lazy_settings.cache(own)["default"]["LOCATION"] == "unix:///s/valkey/valkey.sock"
    with pytest.raises(ConfigurationError):
        lazy_settings.cache({"VALKEY_URL": "h"})


def test_only_this_machine_and_what_is_declared_may_be_addressed():
    origins = ("https://pi.example", "https://pi.example:8443", "http://[fd00::1]:80", "http://[fd00::2]")

    assert lazy_settings.allowed_hosts(()) == ["127.0.0.1", "localhost", "[::1]"]
    assert lazy_settings.allowed_hosts(origins)[3:] == ["pi.example", "pi.example", "[fd00::1]", "[fd00::2]"]


def test_wrong_origins_are_none_until_the_configuration_says_so():
    assert lazy_settings.web_origins({"PI_WEB_ORIGINS": "pi.example"}) == ()
    assert lazy_settings.web_origins({"PI_WEB_ORIGINS": "https://a"}) == ("https://a",)
