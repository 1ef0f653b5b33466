from __future__ import annotations

import pytest

from runs import labels

OURS = {labels.HOST: "h1", labels.JOB: "j", labels.ATTEMPT: "h1-b/3"}


@pytest.mark.parametrize(
    ("name", "found", "ours"),
    [
        pytest.param("pi-job-x", OURS, True, id="name and label"),
        pytest.param("pi-job-x", {}, False, id="an operator's own of that name"),
        pytest.param("pi-job-x", {labels.HOST: "h2"}, False, id="another state directory's"),
        pytest.param("my-pi-job-x", OURS, False, id="the prefix in the middle"),
        pytest.param("pi-jobs", OURS, False, id="nearly the prefix"),
        pytest.param("pi-sandbox-x", OURS, False, id="a sandbox"),
        pytest.param("", OURS, False, id="no name"),
    ],
)
def test_ours_takes_both_the_name_and_the_label(name, found, ours):
    assert labels.is_ours(name, found, "h1") is ours


def test_an_empty_host_id_owns_nothing():
    assert not labels.is_ours("pi-job-x", {labels.HOST: ""}, "")


@pytest.mark.parametrize("label", [labels.HOST, labels.JOB, labels.ATTEMPT])
def test_an_attempt_is_the_same_only_in_all_of_host_job_and_token(label):
    assert labels.same_attempt(OURS, dict(OURS))
    assert not labels.same_attempt(OURS, {**OURS, label: "other"})
    without = {name: value for name, value in OURS.items() if name != label}
    assert not labels.same_attempt(without, without)
