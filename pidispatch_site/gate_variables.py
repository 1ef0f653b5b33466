"""The variables that say how much, when and after what a job may start (Q 4.2, spend and waits)."""

from __future__ import annotations

from pidispatch_site import parsing
from pidispatch_site.variable import CapAction, Variable

_COUNT = parsing.integer(least=1)

GATE_VARIABLES: tuple[Variable, ...] = (
    Variable(
        name="PI_DAILY_CAP",
        field="daily_cap",
        default="25",
        value=25,
        parse=_COUNT,
        bounds="≥ 1",
        meaning="Container starts per UTC day, the whole fleet together.",
    ),
    Variable(
        name="PI_WEEKLY_CAP",
        field="weekly_cap",
        default="off",
        parse=_COUNT,
        bounds="≥ 1",
        meaning="Container starts per week (UTC, from Monday), the whole fleet together.",
    ),
    Variable(
        name="PI_MONTHLY_CAP",
        field="monthly_cap",
        default="off",
        parse=_COUNT,
        bounds="≥ 1",
        meaning="Container starts per calendar month (UTC), the whole fleet together.",
    ),
    Variable(
        name="PI_SOFT_HOLD_PCT",
        field="soft_hold_pct",
        default="off",
        parse=parsing.integer(least=1, most=99),
        bounds="1 to 99",
        meaning="Percent of each of these caps after which jobs are held; the rest is kept back until the "
        "setting is taken away or raised.",
    ),
    Variable(
        name="PI_DAILY_TOKEN_CAP",
        field="daily_token_cap",
        default="off",
        parse=_COUNT,
        bounds="≥ 1",
        meaning="Tokens recorded per UTC day, the whole fleet together, from which on no further job starts. "
        "Jobs that run already are not stopped by it.",
    ),
    Variable(
        name="PI_CAP_ACTION",
        field="cap_action",
        default="refuse",
        value=CapAction.REFUSE,
        parse=parsing.choice(CapAction),
        bounds="`refuse` or `park`",
        meaning="What becomes of a job that a cap holds up: it ends with a record that says so, or it sleeps "
        "until the window turns or the cap is raised.",
    ),
    Variable(
        name="PI_SCOPED_LIMITS_FILE",
        field="scoped_limits_file",
        default="off",
        parse=parsing.path,
        bounds="a file that loads",
        meaning="Caps and concurrency of single folders and repositories (docs/gates.md). Followed while the "
        "worker runs.",
    ),
    Variable(
        name="PI_PAUSE_WINDOWS_FILE",
        field="pause_windows_file",
        default="off",
        parse=parsing.path,
        bounds="a file that loads",
        meaning="Times at which no job starts (docs/gates.md). Followed while the worker runs.",
    ),
    Variable(
        name="PI_SETTINGS_FILE",
        field="settings_file",
        default="`settings.json` in the state directory",
        parse=parsing.path,
        meaning="What `manage.py settings` writes and every job start reads; its values come before those of "
        "the environment.",
    ),
    Variable(
        name="PI_WAIT_PROFILES",
        field="wait_profiles",
        default="none",
        value={},
        parse=parsing.profiles,
        bounds="`name:/absolute/path` entries, separated by commas",
        meaning="Scripts that a job may wait for (docs/gates.md).",
    ),
    Variable(
        name="PI_WAIT_CHECK_TIMEOUT_MS",
        field="wait_check_timeout_ms",
        default="10000",
        value=10_000,
        parse=_COUNT,
        bounds="≥ 1",
        meaning="Milliseconds that one run of such a script may take.",
    ),
    Variable(
        name="PI_WAIT_INTERVAL_MS",
        field="wait_interval_ms",
        default="60000",
        value=60_000,
        parse=parsing.integer(least=1, floor=30_000),
        bounds="≥ 1; below 30000 it is 30000",
        meaning="Milliseconds between two checks of a job at first; they grow with the time it has waited, "
        "up to 15 minutes.",
    ),
    Variable(
        name="PI_WAIT_CHECK_SLOTS",
        field="wait_check_slots",
        default="1",
        value=1,
        parse=_COUNT,
        bounds="≥ 1",
        meaning="Checks at once on this host, and on all hosts of a fleet together; they leave running jobs "
        "the last slot, unless there is only one.",
    ),
    Variable(
        name="PI_WAIT_MAX_MS",
        field="wait_max_ms",
        default="86400000",
        value=86_400_000,
        parse=_COUNT,
        bounds="≥ 1",
        meaning="Milliseconds that a job may wait for its scripts.",
    ),
    Variable(
        name="PI_WAIT_AFTER_MAX_MS",
        field="wait_after_max_ms",
        default="2592000000",
        value=2_592_000_000,
        parse=_COUNT,
        bounds="≥ 1",
        meaning="How far away an `after` instant may be when the job comes up, in milliseconds.",
    ),
    Variable(
        name="PI_WAIT_MAX_CHECKS",
        field="wait_max_checks",
        default="96",
        value=96,
        parse=_COUNT,
        bounds="≥ 1",
        meaning="Checks of one job.",
    ),
    Variable(
        name="PI_WAIT_MAX_FAULTS",
        field="wait_max_faults",
        default="5",
        value=5,
        parse=_COUNT,
        bounds="≥ 1",
        meaning="Checks in a row that could not tell.",
    ),
)
