"""What a host tells the fleet of its configuration."""

from __future__ import annotations

import pytest

from dispatch.worker.presence import spending_digest
from pidispatch_site import conf


def digest(**variables):
    return spending_digest(conf.load({"HOME": "/h", "PI_EGRESS": "0", **variables}))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("PI_DAILY_CAP", "26"),
        ("PI_WEEKLY_CAP", "26"),
        ("PI_MONTHLY_CAP", "26"),
        ("PI_SOFT_HOLD_PCT", "26"),
        ("PI_DAILY_TOKEN_CAP", "26"),
        ("PI_CAP_ACTION", "park"),
    ],
)
def test_each_cap_is_in_the_digest_of_spending(name, value):
    assert digest(**{name: value}) == digest(**{name: value, "PI_CONCURRENCY": "7"})
    assert digest(**{name: value}) != digest(PI_DAILY_CAP="25")


def test_a_default_counts_as_its_value_and_the_same_number_elsewhere_is_another():
    assert digest() == digest(PI_DAILY_CAP="25", PI_CAP_ACTION="refuse")
    assert digest(PI_WEEKLY_CAP="26") != digest(PI_MONTHLY_CAP="26")
    assert len(digest()) == 16
