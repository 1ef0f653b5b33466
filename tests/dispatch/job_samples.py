"""Jobs to test with: the smallest, and one with every field of each side."""

from __future__ import annotations

import json

from dispatch.ids import Kind, TargetType
from dispatch.jobdata import (
    AzureRepository,
    Comment,
    CronTrigger,
    ForgeTrigger,
    JobData,
    Matched,
    Review,
    Sender,
    Target,
)
from dispatch.payload import CALLABLE

LOCAL = JobData(kind=Kind.LOCAL, folder="/srv/site", task="do it")
FULL_LOCAL = JobData(
    kind=Kind.LOCAL,
    flow="fix",
    provider="anthropic",
    model="m-1",
    max_turns=3,
    packages=False,
    image="pi-job:latest",
    skills_dir="/srv/skills",
    secrets={"TOKEN": "op://vault/item"},
    secrets_profile="default",
    wait_for=({"after": "2026-09-01T09:00:00Z"}, {"news": [1.5, None]}),
    trigger=CronTrigger(id="nightly", pattern="0 3 * * *"),
    folder="/srv/site",
    task="tâche 東京 😀\n\0",
    chain_depth=1,
    parent_job_id="repeat:nightly:1",
    github=True,
)
FULL_FORGE = JobData(
    kind=Kind.AZURE,
    command="deploy prod",
    resume=False,
    repo="org/proj/repo",
    project_id=7,
    azure=AzureRepository(org="org", project="proj", repository="repo"),
    target=Target(type=TargetType.PULL_REQUEST, number=9, title="t", body="", head="x", base="main"),
    trigger=ForgeTrigger(
        delivery_id="d-1",
        event="pull_request",
        action="submitted",
        sender=Sender(id=5),
        matched=Matched(index=0, type="pull_request", once=True, number=9, label="l", phrase="p", action="a"),
        comment=Comment(body="b", author_association="OWNER"),
        review=Review(id=3, body="b", state="approved", author_association="MEMBER"),
    ),
    instructions="be kind",
    replica=1,
    replicas=2,
)


def call(data: object, *, version: object = 1, function: object = CALLABLE) -> bytes:
    """The bytes of a call as RQ's JSON serializer writes it."""
    return json.dumps([function, None, [], {"job": {"v": version, "data": data}}]).encode()
