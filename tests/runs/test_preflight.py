from __future__ import annotations

from dataclasses import dataclass, field, replace

import pytest

from runs.outcome import InfraFault, Reason, Refusal
from runs.preflight import GATES, Needs, check_image, judge_image
from runs.protocols import EngineSilentError, ImageFacts

FULL = ImageFacts(
    id="sha256:1",
    pi_version="1.6.0",
    forges=frozenset({"github", "gitlab"}),
    capabilities=frozenset({"replicas", "commands", "anyUid"}),
    user="1001:1001",
)
BARE = ImageFacts(id="sha256:2", pi_version=None, forges=None, capabilities=None, user="pi")
LOCAL = Needs(kind="local")


@dataclass
class Images:
    """The images of an engine that may be silent."""

    here: dict[str, ImageFacts] = field(default_factory=dict)
    silent: bool = False
    asked: list[str] = field(default_factory=list)

    def image(self, reference: str) -> ImageFacts | None:
        self.asked.append(reference)
        if self.silent:
            raise EngineSilentError("engine-timeout")
        return self.here.get(reference)


def check(facts: ImageFacts, needs: Needs) -> ImageFacts | Refusal:
    return check_image(Images({"pi-job:latest": facts}), "pi-job:latest", needs)


def test_a_missing_image_is_refused_and_named():
    assert check_image(Images(), "nope:1", LOCAL) == Refusal(Reason.JOB_IMAGE_MISSING, image="nope:1")


def test_a_silent_engine_is_not_a_missing_image():
    with pytest.raises(InfraFault) as fault:
        check_image(Images(silent=True), "pi-job:latest", LOCAL)

    assert fault.value.reason is Reason.CONTAINER_NEVER_STARTED
    assert fault.value.detail == "engine-timeout"


@pytest.mark.parametrize("reference", ["", " ", "pi-job:latest ", "\tpi-job", "pi-job\n", "-pi-job", "--all"])
def test_a_reference_that_is_no_name_is_refused_without_asking(reference: str):
    images = Images()

    assert check_image(images, reference, LOCAL) == Refusal(Reason.CONFIG_REFUSED, "image-reference")
    assert images.asked == []


@pytest.mark.parametrize(
    ("facts", "needs", "reason"),
    [
        pytest.param(FULL, Needs(kind="github"), None, id="listed forge"),
        pytest.param(FULL, Needs(kind="azure"), Reason.JOB_IMAGE_FORGE_UNSUPPORTED, id="forge not listed"),
        pytest.param(BARE, Needs(kind="azure"), None, id="no label admits every forge"),
        pytest.param(FULL, LOCAL, None, id="a local job needs no forge"),
        pytest.param(BARE, LOCAL, None, id="nothing needed"),
        pytest.param(FULL, Needs(kind="github", replicas=True, commands=True, any_uid=True), None, id="all"),
        pytest.param(
            BARE,
            Needs(kind="github", replicas=True, commands=True),
            Reason.JOB_IMAGE_REPLICAS_UNSUPPORTED,
            id="replicas first",
        ),
        pytest.param(
            BARE,
            Needs(kind="local", commands=True, any_uid=True),
            Reason.JOB_IMAGE_COMMANDS_UNSUPPORTED,
            id="then commands",
        ),
        pytest.param(
            BARE, Needs(kind="local", any_uid=True), Reason.JOB_IMAGE_ANY_UID_UNSUPPORTED, id="any uid"
        ),
    ],
)
def test_the_labels_decide(facts: ImageFacts, needs: Needs, reason: Reason | None):
    answer = check(facts, needs)

    assert (answer if reason is None else getattr(answer, "reason", None)) == (reason or facts)


@pytest.mark.parametrize("gate", GATES, ids=lambda gate: gate.capability)
def test_each_gate_is_open_to_exactly_its_own_capability(gate):
    field_name = {"replicas": "replicas", "commands": "commands", "anyUid": "any_uid"}[gate.capability]
    needs = replace(LOCAL, **{field_name: True})

    assert gate.needed(needs)
    assert not gate.needed(LOCAL)

    alone = replace(BARE, capabilities=frozenset({gate.capability}))
    others = replace(BARE, capabilities=FULL.capabilities - {gate.capability})

    assert check(alone, needs) == alone
    assert check(others, needs) == Refusal(
        gate.reason,
        image="pi-job:latest",
        kind="local",
        declared=tuple(sorted(FULL.capabilities - {gate.capability})),
    )


def test_a_refused_forge_is_named_beside_those_that_the_image_declares():
    assert check(FULL, Needs(kind="azure")) == Refusal(
        Reason.JOB_IMAGE_FORGE_UNSUPPORTED,
        image="pi-job:latest",
        kind="azure",
        declared=("github", "gitlab"),
    )


def test_an_image_that_declares_nothing_is_told_as_that():
    assert check(BARE, replace(LOCAL, commands=True)).declared == ()


@pytest.mark.parametrize(
    ("user", "refused"),
    [
        pytest.param("", True, id="none"),
        pytest.param("0", True, id="zero"),
        pytest.param("0:0", True, id="zero and group"),
        pytest.param("root:pi", True, id="by name"),
        pytest.param("pi", False, id="pi"),
        pytest.param("1001:0", False, id="another user"),
    ],
)
def test_an_image_that_would_run_as_root_is_refused_unless_we_pass_a_user(user: str, refused: bool):
    image = replace(FULL, user=user)

    assert (check(image, LOCAL) != image) == refused
    assert check(image, replace(LOCAL, any_uid=True)) == image


def test_while_the_jobs_user_is_not_known_the_images_own_is_not_judged():
    image = replace(BARE, user="")
    unknown = replace(LOCAL, any_uid=None)

    assert check(image, unknown) == image
    assert judge_image("job:1", image, LOCAL) == Refusal(
        Reason.JOB_USER_UNMAPPABLE, "image-user-is-root", image="job:1"
    )


def test_nothing_is_remembered_between_two_looks():
    images = Images()
    assert isinstance(check_image(images, "pi-job:latest", LOCAL), Refusal)

    images.here["pi-job:latest"] = FULL
    assert check_image(images, "pi-job:latest", LOCAL) == FULL

    del images.here["pi-job:latest"]
    assert isinstance(check_image(images, "pi-job:latest", LOCAL), Refusal)
