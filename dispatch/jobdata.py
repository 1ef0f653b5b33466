"""What a job is: the fields of Q 2.2 as values. `dispatch.payload` writes and reads them.

A field that is None is absent in the queue. On the wire a name is the camel-case form of the attribute,
unless its metadata says otherwise. Nothing is judged here: `dispatch.jobrules` does that.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from dispatch.ids import Kind, TargetType
from runs.workspace.scope import canonical_scope, hash16

# A condition of `waitFor` as it arrived: one that this worker cannot read is a refusal of its own (Q 9.2), so
# it has to survive the reading of the job.
Condition = object


@dataclass(frozen=True, slots=True, kw_only=True)
class CronTrigger:
    """The schedule that a local job is an occurrence of."""

    id: str
    pattern: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Sender:
    """Who caused a delivery, by the forge's number; never a name."""

    id: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Matched:
    """The entry of the triggers file that a delivery matched; `index` is its position in the file."""

    index: int
    type: str
    once: bool | None = None
    number: int | None = None
    label: str | None = None
    phrase: str | None = None
    action: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Comment:
    """The comment that called; untrusted text."""

    body: str
    author_association: str | None = field(default=None, metadata={"wire": "author_association"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Review:
    """The review that called; untrusted text."""

    id: int
    body: str
    state: str
    author_association: str | None = field(default=None, metadata={"wire": "author_association"})


@dataclass(frozen=True, slots=True, kw_only=True)
class ForgeTrigger:
    """The delivery behind a forge job, as its `event.json` shows it; `action` is the forge's raw word."""

    delivery_id: str
    matched: Matched
    event: str | None = None
    action: str | None = None
    sender: Sender | None = None
    comment: Comment | None = None
    review: Review | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """The issue or pull request that a forge job is about; its texts are untrusted."""

    type: TargetType
    number: int
    title: str
    body: str
    head: str | None = None
    base: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AzureRepository:
    """The three names that address a repository of Azure DevOps."""

    org: str
    project: str
    repository: str


@dataclass(frozen=True, slots=True, kw_only=True)
class JobData:
    """One job as it stands in the queue, equal for every attempt.

    Common to all kinds first, then what only a local job has, then what only a forge job has. `provider`,
    `model`, `max_turns` and `image` are None when they are to be resolved at the start of an attempt.
    `secrets` maps an environment name to a reference, never to a value. `folder` is absolute on its host.
    """

    kind: Kind
    flow: str | None = None
    command: str | None = None
    provider: str | None = None
    model: str | None = None
    max_turns: int | None = None
    packages: bool | None = None
    image: str | None = None
    skills_dir: str | None = None
    secrets: Mapping[str, str] | None = None
    secrets_profile: str | None = None
    wait_for: tuple[Condition, ...] | None = None
    trigger: CronTrigger | ForgeTrigger | None = None

    folder: str | None = None
    task: str | None = field(default=None, repr=False)
    chain_depth: int | None = None
    parent_job_id: str | None = None
    github: bool | None = None

    resume: bool | None = None
    repo: str | None = None
    project_id: int | None = None
    azure: AzureRepository | None = None
    target: Target | None = field(default=None, repr=False)
    instructions: str | None = field(default=None, repr=False)
    replica: int | None = None
    replicas: int | None = None

    @property
    def pause_scope(self) -> str | None:
        """What pause windows name it by, letter by letter: the folder or the repository as the job has it."""
        return self.repo if self.kind.is_forge else self.folder

    @property
    def scope(self) -> str | None:
        """What it is counted and locked by: its canonical folder or repository (Q 5.3)."""
        return canonical_scope(kind=self.kind.value, folder=self.folder, repository=self.repo)

    @property
    def scope_hash(self) -> str | None:
        """The same, as it stands in keys, labels and records."""
        return hash16(self.scope) if self.scope else None
