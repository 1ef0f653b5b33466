"""The variables that say what starts by itself, and what may follow from it (Q 4.2, cron and chaining)."""

from __future__ import annotations

from pidispatch_site import parsing
from pidispatch_site.variable import Variable

TRIGGER_VARIABLES: tuple[Variable, ...] = (
    Variable(
        name="PI_TRIGGERS_FILE",
        field="triggers_file",
        default="off",
        parse=parsing.path,
        bounds="a file that loads",
        meaning="What starts jobs by itself: schedules, and rules for forges (docs/triggers.md). Without it "
        "this host keeps no schedule. Followed while the worker runs.",
    ),
    Variable(
        name="PI_SCHEDULER_STALL_MAX",
        field="scheduler_stall_max",
        default="2",
        value=2,
        parse=parsing.integer(least=1),
        bounds="≥ 1",
        meaning="How often in 24 hours a schedule's job may lose its worker before the schedule is taken "
        "down on that host's queue.",
    ),
    Variable(
        name="PI_CHAIN_DEPTH_MAX",
        field="chain_depth_max",
        default="1",
        value=1,
        parse=parsing.integer(least=0),
        bounds="≥ 0; 0 is off",
        meaning="How many jobs deep a local job may ask for follow-up jobs.",
    ),
    Variable(
        name="PI_CHAIN_MAX_PER_JOB",
        field="chain_max_per_job",
        default="2",
        value=2,
        parse=parsing.integer(least=0),
        bounds="≥ 0",
        meaning="How many follow-up jobs one job may ask for; the rest is refused.",
    ),
)
