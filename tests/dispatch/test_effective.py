from __future__ import annotations

from dataclasses import replace

import pytest

from dispatch.effective import EffectiveJob, JobDefaults, resolve
from dispatch.jobs import local_job

DEFAULTS = JobDefaults(provider="anthropic", model="big", image="job:1", max_turns=30, max_tokens=5000)
JOB = local_job("/srv/site", task="tidy up")
AS_CONFIGURED = EffectiveJob(provider="anthropic", model="big", image="job:1", max_turns=30, max_tokens=5000)


@pytest.mark.parametrize(
    ("said", "changed"),
    [
        pytest.param({}, {}, id="nothing"),
        pytest.param({"provider": "openai"}, {"provider": "openai"}, id="provider"),
        pytest.param({"model": "small"}, {"model": "small"}, id="model"),
        pytest.param({"image": "mine:2"}, {"image": "mine:2"}, id="image"),
        pytest.param({"max_turns": 3}, {"max_turns": 3}, id="turns"),
        pytest.param(
            {"provider": "openai", "max_turns": 300},
            {"provider": "openai", "max_turns": 300},
            id="two of them",
        ),
    ],
)
def test_a_jobs_own_words_win_field_by_field(said, changed):
    assert resolve(replace(JOB, **said), DEFAULTS) == replace(AS_CONFIGURED, **changed)


def test_the_tokens_are_the_hosts_to_limit():
    assert resolve(JOB, replace(DEFAULTS, max_tokens=None)).max_tokens is None
