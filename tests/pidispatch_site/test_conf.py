from __future__ import annotations

from pathlib import Path

import pytest

from pidispatch_site import conf
from pidispatch_site.envfile import Environment, merged
from pidispatch_site.errors import ConfigurationError
from pidispatch_site.known_names import LATER, MINTED, OF_PI, PROXY, SET_BY_WORKER, WORKER_ONLY
from pidispatch_site.variables import VARIABLES, BackendKind

HOME = {"HOME": "/home/op"}


def load(**variables):
    return conf.load(HOME | variables, hostname=lambda: "Box.local")


def problems(**variables):
    with pytest.raises(ConfigurationError) as caught:
        load(**variables)
    return caught.value.problems


def test_an_empty_environment_gives_every_default():
    config = load()

    shown = {
        name: getattr(config, name) for name in config.__slots__ if name not in ("environment", "warnings")
    }
    assert {name: str(value) for name, value in shown.items()} == {
        "valkey_url": "redis://127.0.0.1:6379",
        "database_url": "None",
        "state_dir": "/home/op/.pi-dispatch",
        "logs_dir": "/home/op/.pi-dispatch/logs",
        "jobs_dir": "/home/op/.pi-dispatch/jobs",
        "worker_name": "box.local",
        "worker_name_declared": "False",
        "concurrency": "3",
        "daily_cap": "25",
        "weekly_cap": "None",
        "monthly_cap": "None",
        "soft_hold_pct": "None",
        "daily_token_cap": "None",
        "cap_action": "refuse",
        "scoped_limits_file": "None",
        "pause_windows_file": "None",
        "settings_file": "/home/op/.pi-dispatch/settings.json",
        "wait_profiles": "{}",
        "wait_check_timeout_ms": "10000",
        "wait_interval_ms": "60000",
        "wait_check_slots": "1",
        "wait_max_ms": "86400000",
        "wait_after_max_ms": "2592000000",
        "wait_max_checks": "96",
        "wait_max_faults": "5",
        "triggers_file": "None",
        "scheduler_stall_max": "2",
        "chain_depth_max": "1",
        "chain_max_per_job": "2",
        "max_turns": "30",
        "max_tokens": "None",
        "provider": "anthropic",
        "model": "claude-sonnet-4-5-20250929",
        "job_image": "pi-job:latest",
        "global_pi_dir": "None",
        "global_allow_extensions": "True",
        "forward_env": "()",
        "auth_from_pi": "True",
        "coding_agent_dir": "/home/op/.pi/agent",
        "egress": "True",
        "secret_profiles": "{}",
        "capture_job_logs": "False",
        "log_retention_days": "30",
        "run_retention_days": "400",
        "backend": "docker",
        "web_origins": "()",
    }
    assert config.warnings == ()


def test_an_empty_value_is_the_default():
    empty = {row.name: "" for row in VARIABLES if row.name not in conf.NO_EMPTY_VALUE}

    assert load(**empty) == conf.load(HOME | empty, hostname=lambda: "Box.local")
    for field in ("concurrency", "max_tokens", "egress", "worker_name", "worker_name_declared", "state_dir"):
        assert getattr(load(**empty), field) == getattr(load(), field)


@pytest.mark.parametrize("name", conf.NO_EMPTY_VALUE)
def test_a_file_of_bounds_is_not_left_out_by_an_empty_value(name):
    with pytest.raises(ConfigurationError, match=f"{name} is set to an empty value"):
        load(**{name: ""})


def test_every_variable_reaches_its_field(tmp_path):
    config = load(
        VALKEY_URL="valkey://h/2",
        DATABASE_URL="sqlite:////x/y.db",
        PI_STATE_DIR="/s",
        PI_LOGS_DIR="/l",
        PI_JOBS_DIR="/j",
        PI_WORKER_NAME="Mac-1",
        PI_CONCURRENCY="4",
        PI_DAILY_CAP="5",
        PI_WEEKLY_CAP="6",
        PI_MONTHLY_CAP="7",
        PI_SOFT_HOLD_PCT="80",
        PI_DAILY_TOKEN_CAP="9",
        PI_CAP_ACTION="park",
        PI_SCOPED_LIMITS_FILE="/f/limits.json",
        PI_PAUSE_WINDOWS_FILE="/f/pause.json",
        PI_SETTINGS_FILE="/f/settings.json",
        PI_WAIT_PROFILES="ci:/f/ci,nightly:/f/n",
        PI_WAIT_CHECK_TIMEOUT_MS="1",
        PI_WAIT_INTERVAL_MS="1",
        PI_WAIT_CHECK_SLOTS="2",
        PI_WAIT_MAX_MS="2",
        PI_WAIT_AFTER_MAX_MS="3",
        PI_WAIT_MAX_CHECKS="4",
        PI_WAIT_MAX_FAULTS="6",
        PI_TRIGGERS_FILE="/f/triggers.json",
        PI_SCHEDULER_STALL_MAX="3",
        PI_CHAIN_DEPTH_MAX="0",
        PI_CHAIN_MAX_PER_JOB="5",
        PI_MAX_TURNS="6",
        PI_MAX_TOKENS="7",
        PI_PROVIDER="openai",
        PI_MODEL="m/1",
        PI_JOB_IMAGE="reg:5000/i@sha256:ab",
        PI_GLOBAL_PI_DIR=str(tmp_path),
        PI_GLOBAL_ALLOW_EXTENSIONS="0",
        PI_FORWARD_ENV="A,B",
        PI_AUTH_FROM_PI="0",
        PI_CODING_AGENT_DIR="/a",
        PI_EGRESS="0",
        PI_SECRET_PROFILES="vault:/f/v",
        PI_CAPTURE_JOB_LOGS="1",
        PI_LOG_RETENTION_DAYS="0",
        PI_RUN_RETENTION_DAYS="9",
        PI_BACKEND="process",
        PI_WEB_ORIGINS="https://pi.example",
    )

    defaults = load()
    untouched = [name for name in config.__slots__ if getattr(config, name) == getattr(defaults, name)]
    assert untouched == ["warnings"]
    assert (config.valkey_url, config.worker_name, config.backend) == (
        "redis://h/2",
        "Mac-1",
        BackendKind.PROCESS,
    )
    assert config.wait_profiles == {"ci": Path("/f/ci"), "nightly": Path("/f/n")}
    assert config.wait_interval_ms == 30_000


def test_the_name_makes_a_fleet_only_when_it_is_declared():
    assert load(PI_WORKER_NAME="box").worker_name_declared
    assert not load().worker_name_declared


def test_all_problems_come_in_one_message_each_with_name_value_and_expectation():
    found = problems(
        PI_CONCURRENCY="1e3",
        PI_DAILY_CAP="0",
        PI_EGRESS="yes",
        PI_GLOBAL_ALLOW_EXTENSIONS="true",
        PI_WORKER_NAME="a.json",
        PI_STATE_DIR="relative",
        PI_BACKEND="podman",
        VALKEY_URL="localhost",
        DATABASE_URL="mysql://u:hunter2@h/n",
        PI_GLOBAL_PI_DIR="/nonexistent/overlay",
        PI_FORWARD_ENV="GH_TOKEN",
    )

    assert [problem.split()[0] for problem in found] == [
        "VALKEY_URL",
        "PI_STATE_DIR",
        "PI_CONCURRENCY",
        "PI_DAILY_CAP",
        "PI_GLOBAL_PI_DIR",
        "PI_GLOBAL_ALLOW_EXTENSIONS",
        "PI_EGRESS",
        "PI_BACKEND",
        "PI_WORKER_NAME",
        "PI_FORWARD_ENV",
        "DATABASE_URL",
    ]
    assert "PI_CONCURRENCY is '1e3'; expected a whole number of at least 1" in found


@pytest.mark.parametrize("name", ["PI_CONCURRENCY", "PI_DAILY_CAP", "PI_MAX_TURNS", "PI_MAX_TOKENS"])
@pytest.mark.parametrize("text", ["0", "-1", "1.5", "x", " "])
def test_counts_start_at_one(name, text):
    assert len(problems(**{name: text})) == 1


@pytest.mark.parametrize("name", ["PI_LOG_RETENTION_DAYS", "PI_RUN_RETENTION_DAYS"])
def test_zero_days_keep_for_ever_and_there_is_an_end_to_days(name):
    assert getattr(load(**{name: "0"}), name.removeprefix("PI_").lower()) == 0
    assert "at most 365000" in problems(**{name: "999999999"})[0]


def test_a_secret_is_never_in_a_message_nor_in_the_configurations_own_words():
    found = problems(VALKEY_URL="redis://:hunter2@h:x", DATABASE_URL="mysql://u:hunter2@h/n")
    config = load(VALKEY_URL="redis://:hunter2@h", ANTHROPIC_API_KEY="hunter2")

    assert "hunter2" not in "".join(found)
    assert "hunter2" not in repr(config)
    assert config.environment["ANTHROPIC_API_KEY"] == "hunter2"


def test_a_long_value_is_cut_in_the_message():
    assert len(problems(PI_PROVIDER="x y" * 10_000)[0]) < 300


def test_an_embedded_server_cannot_serve_a_fleet():
    found = problems(VALKEY_URL="embedded", PI_WORKER_NAME="box")

    assert len(found) == 1
    assert "PI_WORKER_NAME" in found[0]
    assert load(VALKEY_URL="embedded").valkey_url == "embedded"


class TestSecretsFromFiles:
    def test_the_file_counts_without_its_line_end(self, tmp_path):
        (tmp_path / "f").write_text("redis://:pw@h\n")

        assert load(VALKEY_URL_FILE=str(tmp_path / "f")).valkey_url == "redis://:pw@h"

    def test_both_at_once_are_refused(self, tmp_path):
        (tmp_path / "f").write_text("redis://a")

        assert "both set" in problems(VALKEY_URL="redis://b", VALKEY_URL_FILE=str(tmp_path / "f"))[0]

    @pytest.mark.parametrize("content", [None, b"\xff\xfe"], ids=["missing", "no text"])
    def test_a_file_that_cannot_be_read_is_refused(self, tmp_path, content):
        if content is not None:
            (tmp_path / "f").write_bytes(content)

        assert "cannot be read" in problems(DATABASE_URL_FILE=str(tmp_path / "f"))[0]


class TestForwarding:
    @pytest.mark.parametrize("name", sorted(MINTED | WORKER_ONLY | SET_BY_WORKER | PROXY))
    def test_what_only_the_worker_may_hold_or_set_is_refused(self, name):
        assert f"names {name}, which is refused" in problems(PI_FORWARD_ENV=f"OK,{name}")[0]

    @pytest.mark.parametrize("name", sorted(PROXY))
    def test_proxies_may_be_forwarded_where_the_network_is_open(self, name):
        assert load(PI_FORWARD_ENV=name, PI_EGRESS="0").forward_env == (name,)

    def test_the_variable_that_holds_the_token_is_refused_whatever_its_name(self):
        assert "MY_PAT" in problems(PI_FORWARD_ENV="MY_PAT", GITHUB_PAT_VAR="MY_PAT")[0]

    def test_other_names_pass_whether_they_are_set_or_not(self):
        assert load(PI_FORWARD_ENV="NPM_CONFIG_CACHE, LANG").forward_env == ("NPM_CONFIG_CACHE", "LANG")


class TestWarnings:
    def test_a_typo_is_reported_with_the_name_it_resembles(self):
        (warning,) = load(PI_CONCURENCY="3").warnings

        assert (warning.kind, warning.nearest) == (conf.WarningKind.UNKNOWN, "PI_CONCURRENCY")
        assert str(warning) == "PI_CONCURENCY is not a variable of this product; did you mean PI_CONCURRENCY?"

    def test_a_name_like_no_other_is_reported_alone(self):
        (warning,) = load(PI_ZZZ="3").warnings

        assert str(warning) == "PI_ZZZ is not a variable of this product"

    @pytest.mark.parametrize("name", sorted(LATER))
    def test_a_setting_of_a_later_part_is_no_typo_and_no_silence(self, name):
        (warning,) = load(**{name: "1"}).warnings

        assert warning.kind is conf.WarningKind.NOT_BUILT
        assert load(**{name: ""}).warnings == ()

    def test_what_belongs_to_pi_or_to_nobody_here_is_not_mentioned(self):
        others = dict.fromkeys(OF_PI, "1") | {"PIP_INDEX_URL": "x", "PYTHONPATH": "y", "WEBHOOK_SECRET": "z"}

        assert load(**others).warnings == ()


class TestHome:
    def test_without_a_home_the_state_directory_must_be_named(self, monkeypatch):
        def nobody(_uid):
            raise KeyError

        monkeypatch.setattr("pwd.getpwuid", nobody)

        with pytest.raises(ConfigurationError, match="no home directory"):
            conf.load({})
        assert str(conf.load({"PI_STATE_DIR": "/s"}).coding_agent_dir) == "/s/.pi/agent"

    def test_a_relative_home_is_none(self):
        assert conf.home({"HOME": "relative"}) == conf.home({})


def test_problems_of_the_file_are_problems_of_the_configuration(tmp_path):
    (tmp_path / ".env").write_text("HOME=/h\nexport A=1\nPI_CONCURRENCY=0\n")

    with pytest.raises(ConfigurationError) as caught:
        conf.load(merged({}, folder=tmp_path))

    assert [problem.partition(" ")[0] for problem in caught.value.problems] == [
        f"{tmp_path}/.env,",
        "PI_CONCURRENCY",
    ]


class TestSwitchSettings:
    """What `pause` reads: never more than it needs, never a guess."""

    def test_nothing_else_matters(self):
        broken = {
            row.name: "\x01 broken" for row in VARIABLES if row.name not in ("VALKEY_URL", "PI_STATE_DIR")
        }

        url, state = conf.switch_settings(HOME | broken | {"VALKEY_URL": "redis://h"})

        assert (url, str(state)) == ("redis://h", "/home/op/.pi-dispatch")

    def test_a_bad_line_of_the_file_is_skipped(self, tmp_path):
        (tmp_path / ".env").write_text("export X=1\nVALKEY_URL=redis://h\n")

        assert conf.switch_settings(merged({"HOME": "/h"}, folder=tmp_path))[0] == "redis://h"

    def test_the_state_directory_matters_to_the_embedded_server_alone(self):
        wrong = {"PI_STATE_DIR": "relative"}

        assert conf.switch_settings(wrong | {"VALKEY_URL": "redis://h"}) == ("redis://h", None)
        with pytest.raises(ConfigurationError, match="PI_STATE_DIR"):
            conf.switch_settings(wrong | {"VALKEY_URL": "embedded"})

    def test_a_wrong_address_is_refused_and_not_guessed(self):
        with pytest.raises(ConfigurationError, match="VALKEY_URL"):
            conf.switch_settings(HOME | {"VALKEY_URL": '"redis://h"'})

    def test_a_file_that_was_named_and_not_read_leaves_the_server_unknown(self):
        lost = Environment(HOME, unread="PI_ENV_FILE names /x, which does not exist")

        with pytest.raises(ConfigurationError, match="set VALKEY_URL"):
            conf.switch_settings(lost)

    def test_unless_the_process_itself_says_which(self):
        lost = Environment(HOME | {"VALKEY_URL": "redis://h"}, unread="PI_ENV_FILE names /x")

        assert conf.switch_settings(lost)[0] == "redis://h"
