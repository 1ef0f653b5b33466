"""What stands in `triggers.json`, as values: on what each entry starts a job, and what it runs (Q 5.1).

A field that is None is absent in the file. On the wire a name is the camel-case form of the attribute.
Nothing is judged here: `dispatch.triggers.parse` does that.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from dispatch.ids import Kind
from dispatch.jobrules import wire_name


@dataclass(frozen=True, slots=True, kw_only=True)
class CronOn:
    """At the instants of a pattern, as authored; `tz` is an IANA zone, None for that of the host."""

    id: str
    pattern: str
    tz: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelOn:
    """When an issue's labels are these: one of `any`, each of `all`, not one of `none`."""

    any: tuple[str, ...] | None = None
    all: tuple[str, ...] | None = None
    none: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CommentOn:
    """When a comment holds the phrase."""

    phrase: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PullRequestOn:
    """When one of the actions, in the forge's own words, befalls a pull request.

    `number` narrows a rule about closing to one; with `once` it is a one-shot.
    """

    action: tuple[str, ...]
    any: tuple[str, ...] | None = None
    all: tuple[str, ...] | None = None
    none: tuple[str, ...] | None = None
    review_state: tuple[str, ...] | None = None
    number: int | None = None
    once: bool | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class IssueOn:
    """When an issue, of that number if one is given, is closed; with `once` it is a one-shot."""

    action: tuple[str, ...]
    number: int | None = None
    once: bool | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Disarmed:
    """A one-shot that is spent, since `at` and by the job `job_id`, as its disarm wrote it: matches nothing.

    `was` is what it waited for. The entry keeps its place in the file, since records refer to places.
    """

    at: str
    job_id: str | None
    was: PullRequestOn | IssueOn


On = CronOn | LabelOn | CommentOn | PullRequestOn | IssueOn | Disarmed

TYPES: Mapping[str, type[CronOn | LabelOn | CommentOn | PullRequestOn | IssueOn]] = {
    "cron": CronOn,
    "label": LabelOn,
    "comment": CommentOn,
    "pull_request": PullRequestOn,
    "issue": IssueOn,
}
DISARMED = "disarmed"
_TYPE_NAMES: Mapping[type, str] = {kind: name for name, kind in TYPES.items()}


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """What is run. `folder` is as authored; `secrets` maps an environment name to a reference, never a value.

    `wait_for` holds the conditions as authored, one to four.
    """

    kind: Kind
    folder: str | None = None
    flow: str | None = None
    command: str | None = None
    task: str | None = field(default=None, repr=False)
    github: bool | None = None
    provider: str | None = None
    model: str | None = None
    max_turns: int | None = None
    packages: bool | None = None
    image: str | None = None
    skills_dir: str | None = None
    instructions: str | None = field(default=None, repr=False)
    resume: bool | None = None
    replicas: int | None = None
    repository: str | None = None
    secrets: Mapping[str, str] | None = field(default=None, repr=False)
    secrets_profile: str | None = None
    wait_for: tuple[Mapping[str, str], ...] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Trigger:
    """One entry; `index` is its place in the file, from 0."""

    index: int
    on: On
    run: Run


@dataclass(frozen=True, slots=True)
class Triggers:
    """All entries of a file, in its order."""

    entries: tuple[Trigger, ...] = ()

    def __len__(self) -> int:
        return len(self.entries)

    @property
    def cron(self) -> tuple[Trigger, ...]:
        """The schedules, in the file's order; each `on` is a CronOn."""
        return tuple(entry for entry in self.entries if isinstance(entry.on, CronOn))

    @property
    def one_shots(self) -> tuple[Trigger, ...]:
        """What runs once, in the file's order: the armed ones and the spent (their `on` is a Disarmed)."""
        return tuple(entry for entry in self.entries if is_one_shot(entry.on))


def is_one_shot(on: On) -> bool:
    """Tell whether it is armed for one run, or was and is spent."""
    return isinstance(on, Disarmed) or (isinstance(on, PullRequestOn | IssueOn) and on.once is True)


def wire(trigger: Trigger) -> dict[str, Any]:
    """Write an entry as JSON has it, what is unset left out; of a spent one-shot only that it is one."""
    if isinstance(trigger.on, Disarmed):
        return {"on": {"type": DISARMED}, "run": {}}
    return {
        "on": {"type": _TYPE_NAMES[type(trigger.on)], **_written(trigger.on)},
        "run": wire_run(trigger.run),
    }


def wire_run(run: Run) -> dict[str, Any]:
    """Write what an entry runs as JSON has it, what is unset left out."""
    return {**_written(run), "kind": run.kind.value}


def _written(value: Any) -> dict[str, Any]:
    found = ((one.name, getattr(value, one.name)) for one in fields(value))
    return {wire_name(name): _plain(one) for name, one in found if one is not None}


def _plain(value: Any) -> Any:
    if isinstance(value, tuple):
        return [_plain(one) for one in value]
    return dict(value) if isinstance(value, Mapping) else value
