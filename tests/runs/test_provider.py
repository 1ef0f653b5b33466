from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from runs import provider
from runs.environment import may_enter
from runs.outcome import InfraFault, Reason, Refusal
from runs.provider import Credentials, advice, names_read, table
from tests.conftest import absent

ROOT = Path(__file__).parents[2]
PI_AI = ROOT / "image" / "runner" / "node_modules" / "@earendil-works" / "pi-ai"


@pytest.fixture
def agent_dir(tmp_path: Path) -> Path:
    path = tmp_path / "agent"
    path.mkdir()
    return path


@pytest.fixture
def login(agent_dir: Path):
    def write(**entries: object) -> None:
        (agent_dir / "auth.json").write_text(json.dumps(entries))

    return write


@pytest.fixture
def resolve(agent_dir: Path):
    def call(name: str, environment: dict[str, str] | None = None, **options) -> Credentials | Refusal:
        options = {"auth_from_pi": True, "agent_dir": agent_dir, **options}
        return provider.resolve(name, environment or {}, **options)

    return call


def variables(found: Credentials | Refusal) -> dict[str, str]:
    assert isinstance(found, Credentials)
    return dict(found.variables)


def unconfigured(detail: str, *, of: str = "anthropic") -> Refusal:
    return Refusal(Reason.PROVIDER_UNCONFIGURED, detail, provider=of)


def test_the_environment_gives_every_variable_that_pi_reads_for_the_provider_and_no_other(resolve, login):
    login(anthropic={"type": "api_key", "key": "from-the-login"})
    worker = {
        "ANTHROPIC_OAUTH_TOKEN": "t",
        "ANTHROPIC_API_KEY": "k",
        "OPENAI_API_KEY": "canary",
        "HOME": "/x",
    }

    assert variables(resolve("anthropic", worker)) == {"ANTHROPIC_OAUTH_TOKEN": "t", "ANTHROPIC_API_KEY": "k"}


def test_an_empty_variable_counts_as_absent(resolve):
    assert resolve("anthropic", {"ANTHROPIC_API_KEY": ""}) == unconfigured("no-credential")


def test_the_key_of_the_hosts_login_goes_under_the_variable_of_a_key(resolve, login):
    login(anthropic={"type": "api_key", "key": "from-the-login"})

    assert variables(resolve("anthropic")) == {"ANTHROPIC_API_KEY": "from-the-login"}
    assert resolve("anthropic", auth_from_pi=False) == unconfigured("no-credential")
    assert resolve("openai") == unconfigured("no-credential", of="openai")


@pytest.mark.parametrize(
    ("entry", "detail"),
    [
        pytest.param(
            {"type": "oauth", "access": "a", "refresh": "r", "expires": 1}, "oauth-login", id="oauth"
        ),
        pytest.param({"type": "api_key", "key": "!op read key"}, "key-is-a-command", id="command"),
        pytest.param({"type": "api_key", "key": "$MY_KEY"}, "key-is-interpolated", id="variable"),
        pytest.param({"type": "api_key", "key": "a$$b"}, "key-is-interpolated", id="escaped dollar"),
        pytest.param({"type": "api_key"}, "auth-entry-without-key", id="no key"),
        pytest.param({"type": "api_key", "key": ""}, "auth-entry-without-key", id="empty key"),
        pytest.param({"type": "api_key", "key": 5}, "auth-entry-without-key", id="number"),
        pytest.param({"type": "other", "key": "k"}, "auth-entry-invalid", id="other type"),
        pytest.param("sk-123", "auth-entry-invalid", id="no object"),
        pytest.param(
            {"type": "api_key", "key": "k", "env": {"ANTHROPIC_BASE_URL": "u"}},
            "companion-not-passed:ANTHROPIC_BASE_URL",
            id="companion",
        ),
        pytest.param(
            {"type": "api_key", "key": "k", "env": {"a b": "u"}}, "auth-entry-invalid", id="companion's name"
        ),
    ],
)
def test_a_login_that_cannot_be_passed_on_is_refused_with_a_token(resolve, login, entry, detail: str):
    login(anthropic=entry)

    assert resolve("anthropic") == unconfigured(detail)


@pytest.mark.parametrize("content", [b"{", b"[]", b"\xff{}", b"[" * 5000])
def test_a_login_file_that_is_no_json_object_is_a_refusal(resolve, agent_dir: Path, content: bytes):
    (agent_dir / "auth.json").write_bytes(content)

    assert resolve("anthropic") == unconfigured("auth-file-invalid")
    assert variables(resolve("anthropic", {"ANTHROPIC_API_KEY": "k"})) == {"ANTHROPIC_API_KEY": "k"}


def test_a_login_file_with_a_byte_order_mark_is_read(resolve, agent_dir: Path):
    entry = {"openai": {"type": "api_key", "key": "k"}}
    (agent_dir / "auth.json").write_text(json.dumps(entry), encoding="utf-8-sig")

    assert variables(resolve("openai")) == {"OPENAI_API_KEY": "k"}


def test_a_login_file_that_cannot_be_read_is_tried_again(resolve, agent_dir: Path):
    (agent_dir / "auth.json").mkdir()

    with pytest.raises(InfraFault) as fault:
        resolve("anthropic")

    assert fault.value.detail == "auth-file-unreadable"
    assert str(agent_dir) not in str(fault.value)


def test_a_login_folder_that_is_missing_or_a_file_holds_no_login(resolve, tmp_path: Path):
    (tmp_path / "file").touch()

    assert resolve("anthropic", agent_dir=tmp_path / "absent") == unconfigured("no-credential")
    assert resolve("anthropic", agent_dir=tmp_path / "file") == unconfigured("no-credential")


def test_a_provider_with_companions_needs_all_of_them(resolve, login):
    worker = {"CLOUDFLARE_ACCOUNT_ID": "a"}
    assert resolve("cloudflare-workers-ai", {"CLOUDFLARE_API_KEY": "k"}) == unconfigured(
        "no-credential", of="cloudflare-workers-ai"
    )

    login(**{"cloudflare-workers-ai": {"type": "api_key", "key": "k", "env": {"CLOUDFLARE_ACCOUNT_ID": "b"}}})

    assert resolve("cloudflare-workers-ai") == unconfigured(
        "companion-not-passed:CLOUDFLARE_ACCOUNT_ID", of="cloudflare-workers-ai"
    )
    both = {"CLOUDFLARE_ACCOUNT_ID": "a", "CLOUDFLARE_API_KEY": "k"}
    assert variables(resolve("cloudflare-workers-ai", worker)) == both

    login(**{"cloudflare-workers-ai": {"type": "api_key", "key": "k"}})
    assert resolve("cloudflare-workers-ai") == unconfigured("companion-missing", of="cloudflare-workers-ai")


def test_a_companion_that_is_forwarded_is_passed(resolve, login):
    login(openai={"type": "api_key", "key": "k", "env": {"OPENAI_BASE_URL": "u"}})
    worker = {"OPENAI_BASE_URL": "u"}

    assert resolve("openai", worker) == unconfigured("companion-not-passed:OPENAI_BASE_URL", of="openai")
    found = resolve("openai", worker, forward_env=("OPENAI_BASE_URL",))
    assert variables(found) == {"OPENAI_API_KEY": "k"}
    assert resolve("openai", {}, forward_env=("OPENAI_BASE_URL",)) == unconfigured(
        "companion-not-passed:OPENAI_BASE_URL", of="openai"
    )


def test_what_points_at_the_host_is_neither_passed_nor_enough(resolve, login):
    worker = {"AWS_PROFILE": "work", "AWS_REGION": "eu-central-1"}
    assert resolve("amazon-bedrock", worker) == unconfigured("no-credential", of="amazon-bedrock")

    keys = {"AWS_ACCESS_KEY_ID": "i", "AWS_SECRET_ACCESS_KEY": "s"}
    found = variables(resolve("amazon-bedrock", worker | keys))
    assert found == keys | {"AWS_REGION": "eu-central-1"}

    login(**{"amazon-bedrock": {"type": "api_key", "key": "bearer"}})
    assert resolve("amazon-bedrock") == unconfigured("key-has-no-variable", of="amazon-bedrock")


def test_a_provider_that_nobody_knows_is_refused(resolve, login):
    login(acme={"type": "api_key", "key": "k"})

    assert resolve("acme") == unconfigured("unknown-provider", of="acme")
    assert resolve("../../etc") == unconfigured("unknown-provider", of="../../etc")


class TestModelsFile:
    """A provider of the overlay's models.json."""

    @pytest.fixture
    def overlay(self, tmp_path: Path, resolve):
        folder = tmp_path / "pi-global"
        folder.mkdir()

        def call(content: object, environment: dict[str, str] | None = None, name: str = "acme"):
            text = content if isinstance(content, str) else json.dumps({"providers": {"acme": content}})
            (folder / "models.json").write_text(text)
            return resolve(name, environment, global_pi_dir=folder)

        return call

    def test_a_literal_key_makes_a_provider_that_needs_nothing(self, overlay):
        entry = {"baseUrl": "http://10.0.0.1/v1", "api": "openai-completions", "apiKey": "none"}

        assert variables(overlay(entry, {"ACME": "canary"})) == {}

    def test_comments_and_trailing_commas_are_read_as_pi_reads_them(self, overlay):
        text = '{"providers": { // ours\n "acme": {"baseUrl": "http://x//y", "apiKey": "a,}",}, }, }'

        assert variables(overlay(text)) == {}

    def test_a_command_is_left_to_pi(self, overlay):
        assert variables(overlay({"apiKey": "!cat /run/key$X"})) == {}

    def test_the_variables_of_key_and_headers_are_passed(self, overlay):
        entry = {
            "apiKey": "${ACME_KEY}",
            "headers": {"X-Org": "org-$ORG$$NOT"},
            "models": [{"id": "m", "headers": {"X": "$OPTIONAL$ABSENT$GH_TOKEN"}}],
        }
        worker = {"ACME_KEY": "k", "ORG": "o", "OPTIONAL": "p", "NOT": "canary", "GH_TOKEN": "canary"}

        assert variables(overlay(entry, worker)) == {"ACME_KEY": "k", "ORG": "o", "OPTIONAL": "p"}

    @pytest.mark.parametrize(
        ("entry", "detail"),
        [
            pytest.param({"apiKey": "$ACME_KEY"}, "variable-missing:ACME_KEY", id="missing"),
            pytest.param({"apiKey": "$GITHUB_PAT"}, "variable-not-allowed:GITHUB_PAT", id="worker's secret"),
            pytest.param({"baseUrl": "http://x"}, "models-entry-without-key", id="no key"),
            pytest.param({"apiKey": ""}, "models-entry-invalid", id="empty key"),
            pytest.param({"apiKey": 5}, "models-entry-invalid", id="number"),
            pytest.param([], "models-entry-invalid", id="list"),
            pytest.param(None, "models-entry-invalid", id="null"),
        ],
    )
    def test_an_entry_that_pi_could_not_use_is_refused(self, overlay, entry, detail: str):
        assert overlay(entry, {"GITHUB_PAT": "canary"}) == unconfigured(detail, of="acme")

    @pytest.mark.parametrize("text", ["{", "[]", '{"providers": []}'])
    def test_a_file_that_is_not_of_the_shape_is_refused(self, overlay, text: str):
        assert overlay(text) == unconfigured("models-file-invalid", of="acme")

    def test_a_provider_beside_it_is_not_touched(self, overlay):
        found = overlay({"apiKey": "$ACME_KEY"}, {"OPENAI_API_KEY": "k"}, name="openai")

        assert variables(found) == {"OPENAI_API_KEY": "k"}

    def test_a_key_for_a_built_in_provider_stands_in_for_its_variable(self, overlay):
        entries = {"cloudflare-workers-ai": {"apiKey": "k"}, "openai": {"apiKey": "$OPENAI_API_KEY"}}
        text = json.dumps({"providers": entries})

        assert overlay(text, name="cloudflare-workers-ai") == unconfigured(
            "no-credential", of="cloudflare-workers-ai"
        )
        worker = {"CLOUDFLARE_ACCOUNT_ID": "a", "OPENAI_API_KEY": "k"}
        assert variables(overlay(text, worker, name="cloudflare-workers-ai")) == {
            "CLOUDFLARE_ACCOUNT_ID": "a"
        }
        assert variables(overlay(text, worker, name="openai")) == {"OPENAI_API_KEY": "k"}

    def test_a_proxy_for_a_built_in_provider_changes_no_need(self, overlay):
        text = '{"providers": {"anthropic": {"baseUrl": "https://proxy/v1"}}}'

        assert overlay(text, name="anthropic") == unconfigured("no-credential")

    def test_a_file_that_cannot_be_read_is_tried_again(self, resolve, tmp_path: Path):
        (tmp_path / "models.json").mkdir()

        with pytest.raises(InfraFault):
            resolve("acme", global_pi_dir=tmp_path)

    def test_an_overlay_without_the_file_declares_nothing(self, resolve, tmp_path: Path):
        assert resolve("acme", global_pi_dir=tmp_path) == unconfigured("unknown-provider", of="acme")


def test_no_value_shows_in_the_text_of_credentials(resolve):
    assert "canary" not in repr(resolve("openai", {"OPENAI_API_KEY": "canary"}))


@pytest.mark.parametrize(
    ("name", "says"),
    [
        pytest.param("openai", "set OPENAI_API_KEY in", id="one variable"),
        pytest.param(
            "cloudflare-workers-ai", "set CLOUDFLARE_API_KEY and CLOUDFLARE_ACCOUNT_ID in", id="companions"
        ),
        pytest.param("acme", "models.json of PI_GLOBAL_PI_DIR", id="custom"),
    ],
)
def test_the_advice_names_what_to_set(name: str, says: str):
    assert says in advice(name)
    assert name in advice(name)


def test_no_variable_of_any_provider_is_one_that_a_job_may_not_get():
    assert len(table()) >= 40
    assert [name for row in table().values() for name in row.env if not may_enter(name)] == []


def test_the_names_that_pi_reads_include_what_is_never_passed():
    assert {"AWS_PROFILE", "AWS_ACCESS_KEY_ID"} <= names_read("amazon-bedrock")
    assert names_read("acme") == frozenset()


def test_an_api_key_is_never_written_under_a_token_variable():
    keys = {row.key for row in table().values()} - {None}

    assert not [name for name in keys if "OAUTH" in name or "AUTH_TOKEN" in name or "BEARER" in name]
    assert table()["anthropic"].env[:3] == (
        "ANTHROPIC_AUTH_TOKEN",
        "ANTHROPIC_OAUTH_TOKEN",
        "ANTHROPIC_API_KEY",
    )


def test_the_table_is_of_the_pi_that_the_image_pins():
    lock = json.loads((ROOT / "image" / "runner" / "package-lock.json").read_text())

    pinned = lock["packages"]["node_modules/@earendil-works/pi-ai"]["version"]
    assert json.loads(provider.TABLE.read_text())["piAi"] == pinned


def test_the_table_is_what_the_pinned_pi_says_of_itself():
    if shutil.which("node") is None or not PI_AI.is_dir():
        absent("the runner's packages are not installed (npm ci in image/runner)")

    made = subprocess.run(
        ["node", ROOT / "runs" / "data" / "generate_providers.mjs", PI_AI],
        capture_output=True,
        check=True,
        text=True,
        env={"PATH": os.environ["PATH"]},
        timeout=30,
    )

    assert made.stdout == provider.TABLE.read_text()
