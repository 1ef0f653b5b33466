from __future__ import annotations

from datetime import datetime

import pytest
import redis
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dispatch.money.ledger import Blocked, Granted, Ledger, ReserveRequest, ScopeCaps
from dispatch.money.reading import Standing, WindowUse, read_budget
from dispatch.money.windows import Caps, Window, counter_key, scope_prefix
from pidispatch_site import clients
from runs.outcome import Reason

NOW = datetime.fromisoformat("2026-01-06T12:00:00Z")
SCOPES = ("0" * 16, "1" * 16)
TURNS = {
    Window.DAY: datetime.fromisoformat("2026-01-07T00:00:00Z"),
    Window.WEEK: datetime.fromisoformat("2026-01-12T00:00:00Z"),
    Window.MONTH: datetime.fromisoformat("2026-02-01T00:00:00Z"),
}


def read(client, *, caps, hold=None, tokens=None, scopes=()):
    return read_budget(
        client, now=NOW, caps=caps, hold_percent=hold, token_cap=tokens, scopes=[*map(scope_caps, scopes)]
    )


def scope_caps(found):
    return ScopeCaps(scope_hash=found[0], caps=found[1])


def use(window, key, standing, used=None, cap=None, hold=None):
    return WindowUse(
        window=window,
        key=key,
        turns_at=TURNS[window],
        standing=standing,
        used=used,
        cap=cap,
        hold_above=hold,
    )


def test_every_window_is_told_with_its_caps_and_what_meets_the_next_start(valkey):
    day, week, month = "budget:2026-01-06", "budget:w:2026-01-05", "budget:m:2026-01"
    first, second = (scope_prefix(scope) for scope in SCOPES)
    for key, count in {day: 20, month: 30, f"{first}:2026-01-06": 3, "budget:t:2026-01-06": 999}.items():
        valkey.set(key, count, ex=60)

    found = read(
        valkey,
        caps=Caps(day=25, month=30),
        hold=80,
        tokens=1000,
        scopes=[(SCOPES[0], Caps(day=2, week=4)), (SCOPES[1], Caps())],
    )

    assert found.now == NOW
    assert found.windows == (
        use(Window.DAY, day, Standing.HELD, 20, 25, 20),
        use(Window.WEEK, week, Standing.NOT_LIMITED),
        use(Window.MONTH, month, Standing.FULL, 30, 30, 24),
    )
    assert found.tokens == use(Window.DAY, "budget:t:2026-01-06", Standing.OK, 999, 1000)
    assert found.scopes == (
        (
            use(Window.DAY, f"{first}:2026-01-06", Standing.FULL, 3, 2),
            use(Window.WEEK, f"{first}:w:2026-01-05", Standing.OK, 0, 4),
            use(Window.MONTH, f"{first}:m:2026-01", Standing.NOT_LIMITED),
        ),
        tuple(use(window, counter_key(second, window, NOW), Standing.NOT_LIMITED) for window in Window),
    )
    assert [one.remaining for one in (*found.windows, found.tokens, *found.scopes[0])] == [
        *(5, None, 0),
        1,
        *(0, 4, None),
    ]


@pytest.mark.parametrize(("recorded", "standing"), [(1000, Standing.FULL), ("x", Standing.UNREADABLE)])
def test_tokens_are_full_at_their_cap(valkey, recorded, standing):
    valkey.set("budget:t:2026-01-06", recorded)

    assert read(valkey, caps=Caps(day=1), tokens=1000).tokens.standing is standing
    assert read(valkey, caps=Caps(day=1)).tokens.standing is Standing.NOT_LIMITED


@pytest.mark.parametrize("junk", ["many", "007", None])
def test_a_counter_that_is_no_number_is_told_and_hides_no_other(valkey, junk):
    key = "budget:2026-01-06"
    valkey.sadd(key, "of another type") if junk is None else valkey.set(key, junk)

    found = read(valkey, caps=Caps(day=5, week=5))

    assert [(one.used, one.remaining, one.standing) for one in found.windows] == [
        (None, None, Standing.UNREADABLE),
        (0, 5, Standing.OK),
        (None, None, Standing.NOT_LIMITED),
    ]


def test_what_is_read_is_what_is_limited_and_nothing_else(valkey):
    valkey.config_resetstat()

    read(valkey, caps=Caps(day=5, month=5), scopes=[(SCOPES[0], Caps(week=1))])

    said = {name: stat["calls"] for name, stat in valkey.info("commandstats").items()}
    assert {name: calls for name, calls in said.items() if name != "cmdstat_config|resetstat"} == {
        "cmdstat_get": 4
    }


def test_a_server_that_is_away_or_shut_to_us_is_no_reading(valkey, valkey_url):
    with clients.state_client("redis://127.0.0.1:1") as client, pytest.raises(clients.VALKEY_FAULTS):
        read(client, caps=Caps(day=1))
    valkey.execute_command("ACL", "SETUSER", "blind", "on", ">blind", "~*", "+@all", "-get")
    try:
        shut = redis.Redis.from_url(valkey_url.replace("unix://", "unix://blind:blind@"))
        with shut, pytest.raises(redis.exceptions.NoPermissionError):
            read(shut, caps=Caps(day=1))
    finally:
        valkey.execute_command("ACL", "DELUSER", "blind")


count = st.integers(0, 6)
caps = st.builds(Caps, day=count, week=st.none() | count, month=st.none() | count)


@settings(max_examples=60, suppress_health_check=list(HealthCheck))
@given(caps, st.none() | st.integers(1, 99), caps, st.lists(count, min_size=6, max_size=6))
def test_what_is_told_is_what_the_ledger_does(valkey, caps, hold, scoped, counts):
    valkey.flushall()
    for prefix, window in (
        (prefix, window) for prefix in ("budget", scope_prefix("0" * 16)) for window in Window
    ):
        valkey.set(counter_key(prefix, window, NOW), counts.pop(), ex=60)

    found = read(valkey, caps=caps, hold=hold, scopes=[(SCOPES[0], scoped)])
    answer = Ledger(valkey).reserve(
        ReserveRequest(
            job_id="local-1",
            attempt=0,
            token="boot/1",
            first_queued_ms=5,
            now_ms=int(NOW.timestamp() * 1000),
            caps=caps,
            hold_percent=hold,
            scope=scope_caps((SCOPES[0], scoped)),
        )
    )

    everywhere = (*found.windows, *found.scopes[0])
    if isinstance(answer, Granted):
        assert {one.standing for one in everywhere} <= {Standing.OK, Standing.NOT_LIMITED}
    else:
        assert isinstance(answer, Blocked)
        of_scope = answer.reason is Reason.SCOPE_CAP
        blocking = next(
            one for one in (found.scopes[0] if of_scope else found.windows) if one.window is answer.window
        )
        assert (blocking.used, blocking.cap) == (answer.reserved, answer.cap)
        assert blocking.standing is (Standing.HELD if answer.reason is Reason.SOFT_HOLD else Standing.FULL)
