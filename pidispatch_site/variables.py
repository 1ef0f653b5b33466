"""Every variable of the environment: its name, default, bounds and meaning, and how its text is read (Q 4.2).

This table and docs/settings.md say the same; a test compares them in both directions.
"""

from __future__ import annotations

from pidispatch_site import parsing, server_url
from pidispatch_site.gate_variables import GATE_VARIABLES
from pidispatch_site.trigger_variables import TRIGGER_VARIABLES
from pidispatch_site.variable import BackendKind, CapAction, Variable

__all__ = ["VARIABLES", "BackendKind", "CapAction", "Variable"]

_DAYS = parsing.integer(least=0, most=365_000)
_COUNT = parsing.integer(least=1)

VARIABLES: tuple[Variable, ...] = (
    Variable(
        name="VALKEY_URL",
        field="valkey_url",
        default=server_url.DEFAULT,
        value=server_url.DEFAULT,
        parse=server_url.parse,
        bounds="`redis://`, `rediss://`, `unix://` (also `valkey://`, `valkeys://`) or `embedded`",
        meaning="The one Valkey or Redis of the whole fleet, the database's number as path. `embedded` runs "
        "the server that ships with this product, for one machine.",
        secret=True,
    ),
    Variable(
        name="DATABASE_URL",
        field="database_url",
        default="SQLite in the state directory",
        parse=str,
        bounds="`postgres://…` or `sqlite:////absolute/path`",
        meaning="The database of records and of the console on this host. PostgreSQL needs `pip install "
        "'psycopg[binary]'`.",
        secret=True,
    ),
    Variable(
        name="PI_ENV_FILE",
        field=None,
        default="`.env` in the current folder, if there is one",
        parse=parsing.path,
        meaning="The file of further variables: `NAME=value` lines, taken literally (no quotes, no "
        "expansion). What the process itself sets, wins. A file that is named here must be readable.",
    ),
    Variable(
        name="PI_STATE_DIR",
        field="state_dir",
        default="`~/.pi-dispatch`",
        parse=parsing.absolute_path,
        bounds="an absolute path",
        meaning="This host's own directory, mode 0700: lock, identity, database, key, embedded server.",
    ),
    Variable(
        name="PI_LOGS_DIR",
        field="logs_dir",
        default="`logs` in the state directory",
        parse=parsing.path,
        meaning="Records of runs and raw logs.",
    ),
    Variable(
        name="PI_JOBS_DIR",
        field="jobs_dir",
        default="`jobs` in the state directory",
        parse=parsing.path,
        meaning="Inputs of running jobs; the container engine must be able to mount folders from here.",
    ),
    Variable(
        name="PI_WORKER_NAME",
        field="worker_name",
        default="made of the hostname",
        parse=str,
        bounds="`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`, not ending in `.json` or `.log`",
        meaning="The name of this host. Declaring it says that the host is one of several on one server "
        "(docs/fleet.md): it gets a queue of its own, and takes part in what the fleet shares. Not together "
        "with `VALKEY_URL=embedded`.",
    ),
    Variable(
        name="PI_CONCURRENCY",
        field="concurrency",
        default="3",
        value=3,
        parse=_COUNT,
        bounds="≥ 1",
        meaning="Containers at once on this host, all its queues together.",
    ),
    *GATE_VARIABLES,
    *TRIGGER_VARIABLES,
    Variable(
        name="PI_MAX_TURNS",
        field="max_turns",
        default="30",
        value=30,
        parse=_COUNT,
        bounds="≥ 1",
        meaning="Turns of the agent in one job.",
    ),
    Variable(
        name="PI_MAX_TOKENS",
        field="max_tokens",
        default="off",
        parse=_COUNT,
        bounds="≥ 1",
        meaning="Tokens in one job, counted inside the container after each answer of the model.",
    ),
    Variable(
        name="PI_PROVIDER",
        field="provider",
        default="anthropic",
        value="anthropic",
        parse=parsing.token,
        meaning="The provider of models, by pi's name for it.",
    ),
    Variable(
        name="PI_MODEL",
        field="model",
        # Dated, so that behaviour and price stay what they were; from the table of models of pi 1.6.0.
        default="claude-sonnet-4-5-20250929",
        value="claude-sonnet-4-5-20250929",
        parse=parsing.token,
        meaning="The model, by pi's exact id for it.",
    ),
    Variable(
        name="PI_JOB_IMAGE",
        field="job_image",
        default="pi-job:latest",
        value="pi-job:latest",
        parse=parsing.image,
        meaning="The image of job containers. It must be on this host already: no job pulls one.",
    ),
    Variable(
        name="PI_GLOBAL_PI_DIR",
        field="global_pi_dir",
        default="off",
        parse=parsing.directory,
        bounds="an existing directory",
        meaning="An overlay of pi's own files, mounted read-only into every job.",
    ),
    Variable(
        name="PI_GLOBAL_ALLOW_EXTENSIONS",
        field="global_allow_extensions",
        default="on",
        value=True,
        parse=parsing.zero_or_one,
        bounds="`0`, `1` or nothing",
        meaning="Whether extensions of that overlay are loaded.",
    ),
    Variable(
        name="PI_FORWARD_ENV",
        field="forward_env",
        default="none",
        value=(),
        parse=parsing.names,
        bounds="names, separated by commas",
        meaning="Further variables of this host that every job gets, by name. Tokens and secrets that only "
        "the worker may hold are refused, and so is what the worker sets itself.",
    ),
    Variable(
        name="PI_AUTH_FROM_PI",
        field="auth_from_pi",
        default="on",
        value=True,
        parse=parsing.only_zero_is_off,
        bounds="`0` is off, anything else is on",
        meaning="Use the API key of the host's own pi login when the environment has none.",
    ),
    Variable(
        name="PI_CODING_AGENT_DIR",
        field="coding_agent_dir",
        default="`~/.pi/agent`",
        parse=parsing.path,
        meaning="Where that login lives.",
    ),
    Variable(
        name="PI_EGRESS",
        field="egress",
        default="on",
        value=True,
        parse=parsing.zero_or_one,
        bounds="`0`, `1` or nothing",
        meaning="Whether jobs reach the network only through the allowlist. `0` opens the network to jobs.",
    ),
    Variable(
        name="PI_SECRET_PROFILES",
        field="secret_profiles",
        default="none",
        value={},
        parse=parsing.profiles,
        bounds="`name:/absolute/path` entries, separated by commas",
        meaning="Resolvers of secrets that this host has. This version uses the names alone: they tell the "
        "fleet which jobs can be routed here (docs/fleet.md); a job that asks for secrets is refused.",
    ),
    Variable(
        name="PI_CAPTURE_JOB_LOGS",
        field="capture_job_logs",
        default="off",
        value=False,
        parse=parsing.only_one_is_on,
        bounds="`1` is on, anything else is off",
        meaning="Keep the raw output of each container beside its record.",
    ),
    Variable(
        name="PI_LOG_RETENTION_DAYS",
        field="log_retention_days",
        default="30",
        value=30,
        parse=_DAYS,
        bounds="0 to 365000; 0 keeps for ever",
        meaning="Days after which records and raw logs are removed.",
    ),
    Variable(
        name="PI_RUN_RETENTION_DAYS",
        field="run_retention_days",
        default="400",
        value=400,
        parse=_DAYS,
        bounds="0 to 365000; 0 keeps for ever",
        meaning="Days after which rows of runs leave the database.",
    ),
    Variable(
        name="PI_BACKEND",
        field="backend",
        default="docker",
        value=BackendKind.DOCKER,
        parse=parsing.choice(BackendKind),
        bounds="`docker` or `process`",
        meaning="What runs a job. `process` isolates nothing; it runs only the scripted agent of the demo.",
    ),
    Variable(
        name="PI_WEB_ORIGINS",
        field="web_origins",
        default="none",
        value=(),
        parse=parsing.origins,
        bounds="addresses such as `https://pi.example.org`, separated by commas",
        meaning="Addresses at which browsers reach the console, beside this machine's own (127.0.0.1, "
        "localhost, ::1).",
    ),
)
