"""Who must agree before a host changes its schedules: Q 10.4, row by row."""

from __future__ import annotations

import pytest

from dispatch.schedules.agreement import OWN_UNREADABLE, Peer, Proceed, Refused, judge
from hosts.rows import GONE_MS, LATE_MS
from tests.dispatch.fleetkit import host_id, row

OLD, NEW = "0" * 16, "f" * 16
ME = row("alpha", fp_cron=OLD, cron_count=1)


def has(name, fp_cron, **changes):
    return row(name, **{"fp_cron": fp_cron, "cron_count": 2, **changes})


def refused(*names, mine=NEW, count=3, reason=None, theirs=OLD):
    peers = tuple(Peer(host=name, fp_cron=theirs, cron_count=2) for name in names)
    return Refused(mine=mine, count=count, peers=peers, reason=reason)


# Rows of the registry, what this host has, the judgement.
CASES = {
    "nobody": ([], NEW, Proceed(0)),
    "only ourselves, before this edit": ([ME], NEW, Proceed(0)),
    "an older name of ours": ([has("old", OLD, host_id=host_id("alpha"))], NEW, Proceed(0)),
    "only who abstains": ([ME, has("beta", "", cron_count=None)], NEW, Proceed(0)),
    "equal": ([ME, has("beta", NEW), has("gamma", NEW)], NEW, Proceed(2)),
    "equal, and one abstains": ([has("beta", NEW), has("gamma", "")], NEW, Proceed(1)),
    "one has another": ([has("gamma", OLD), has("beta", NEW)], NEW, refused("gamma")),
    "all have others, by name": ([has("gamma", OLD), has("beta", OLD)], NEW, refused("beta", "gamma")),
    "late": ([has("beta", OLD, age_ms=LATE_MS + 1)], NEW, refused("beta")),
    "on the brink": ([has("beta", OLD, age_ms=GONE_MS)], NEW, refused("beta")),
    "gone": ([has("beta", OLD, age_ms=GONE_MS + 1)], NEW, Proceed(0)),
    "without a beat": ([has("beta", OLD, age_ms=None)], NEW, Proceed(0)),
    "our name, another machine": ([has("alpha", OLD, host_id=host_id("b"))], NEW, refused("alpha")),
    "without a host-id": ([has("beta", OLD, host_id=None)], NEW, refused("beta")),
    "no fingerprint of ours": ([has("beta", "?!")], NEW, refused("beta", theirs="?!")),
    "we cannot tell": ([has("beta", OLD)], "", refused("beta", mine="", count=None, reason=OWN_UNREADABLE)),
    "we cannot tell, nor can they": ([has("beta", "")], "", Proceed(0)),
}


@pytest.mark.parametrize(("rows", "mine", "judgement"), CASES.values(), ids=CASES)
def test_only_another_opinion_of_a_host_that_may_live_refuses(rows, mine, judgement):
    assert judge(mine, 3 if mine else None, rows, own_host_id=host_id("alpha")) == judgement
