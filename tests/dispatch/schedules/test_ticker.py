"""Each instant is a job once, whoever ticks, whatever the clock does; nothing piles up, nothing stops."""

from __future__ import annotations

import threading
from collections import Counter
from datetime import UTC, datetime, timedelta

import pytest
import redis
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dispatch.ids import occurrence_id
from dispatch.instants import epoch_ms
from dispatch.schedules import keys, ticker
from dispatch.schedules.notes import read_acted
from dispatch.schedules.ticker import Ticker
from pidispatch_site.clients import VALKEY_FAULTS, state_client
from tests.dispatch.queuekit import Host, everything, hash_of, listed
from tests.dispatch.schedules.schedulekit import (
    DAY,
    HOUR,
    MINUTE,
    OTHER,
    QUEUE,
    START,
    Ground,
    end_all,
    instants,
    schedule,
    set_status,
    shown,
)
from tests.harness.wire import Wire

SECOND = timedelta(seconds=1)


def told(events, *names):
    return [{k: v for k, v in one.items() if k != "event"} for one in events() if one["event"] in names]


def test_a_due_instant_becomes_a_job_and_the_next_one_waits_its_turn(valkey, events):
    ground = Ground(valkey, schedule())

    assert ground.tick(by=3 * MINUTE - SECOND) == []
    fired = ground.tick(by=SECOND)
    assert fired == instants(valkey) == ["03. 10:05"]
    assert ground.tick(by=SECOND) == []
    assert ground.next_of() == "03. 10:10"

    job_id = occurrence_id("tidy", instant=ground.clock.now - SECOND)
    assert told(events, "occurrence_enqueued") == [{"jobId": job_id, "schedulerId": "tidy"}]
    assert hash_of(valkey, job_id)["firstQueued"] == str(epoch_ms(ground.clock.now - SECOND))


@pytest.mark.parametrize(
    ("pattern", "away", "fired", "skipped", "following"),
    [
        pytest.param("*/5 * * * *", 8 * HOUR, "03. 18:00", 95, "03. 18:05", id="eight hours"),
        pytest.param(
            "* * * * * *", 30 * DAY, "02. 10:02", 2_592_000 - 1, "02. 10:02", id="seconds of a month"
        ),
        pytest.param("0 3 * * *", 30 * HOUR, "04. 03:00", None, "05. 03:00", id="a day and more"),
        pytest.param("0 3 * * sun", 25 * DAY, "22. 03:00", 2, "29. 03:00", id="weeks"),
        pytest.param("0 0 1 1 *", 400 * DAY, "01. 00:00", None, "01. 00:00", id="a year"),
    ],
)
def test_after_a_time_away_the_latest_instant_alone_is_caught_up_with(
    valkey, events, pattern, away, fired, skipped, following
):
    ground = Ground(valkey, schedule(pattern=pattern))

    assert ground.tick(by=away) == [fired]
    assert ground.tick() == []
    assert (ground.next_of(), instants(valkey)) == (following, [fired])
    assert [one.get("skipped") for one in told(events, "occurrence_enqueued")] == [skipped]


@pytest.mark.parametrize(("late", "told_ms"), [(5 * MINUTE, None), (5 * MINUTE + SECOND, 301_000)])
def test_what_is_later_than_the_grace_is_marked_late(valkey, events, late, told_ms):
    ground = Ground(valkey, schedule(pattern="0 * * * *"))

    assert ground.tick(by=58 * MINUTE + late) == ["03. 11:00"]

    assert [one.get("lateMs") for one in told(events, "occurrence_enqueued")] == [told_ms]


@pytest.mark.parametrize("pattern", ["*/5 * * * *", "0 3 * * *", "0 3 * * sun"])
def test_a_host_that_was_away_fires_no_instant_that_others_had(valkey, pattern):
    ground = Ground(valkey, schedule(pattern=pattern), queues=(QUEUE, OTHER))
    for _ in range(30 * 4):
        ground.tick(OTHER, by=6 * HOUR)
        # Their ids are forgotten a day after their end.
        end_all(valkey, OTHER)

    # Whatever it is late for was the others', and it goes on with them.
    assert ground.tick(QUEUE) == []
    assert ground.next_of(queue=QUEUE) == ground.next_of(queue=OTHER)


@pytest.mark.parametrize("tables", [(QUEUE, QUEUE), (QUEUE, OTHER)], ids=["one table", "a table each"])
def test_hosts_that_race_have_each_instant_once(valkey, valkey_url, tables):
    ground = Ground(valkey, *(schedule(f"s{number}", "* * * * *") for number in range(5)), queues=set(tables))
    fired = []

    def run(queue, start):
        client = redis.Redis.from_url(valkey_url)
        racer = Ticker(client, [queue], clock_ms=ground.clock)
        for _ in range(8):
            start.wait()
            fired.extend(one.job_id for one in racer.tick())
            start.wait()
        client.close()

    start = threading.Barrier(3)
    threads = [threading.Thread(target=run, args=(queue, start)) for queue in tables]
    for thread in threads:
        thread.start()
    for _ in range(8):
        ground.clock.go(MINUTE)
        start.wait()
        start.wait()
        for queue in set(tables):
            end_all(valkey, queue)
    for thread in threads:
        thread.join()

    assert Counter(fired) == Counter(
        occurrence_id(f"s{number}", instant=START + minute * MINUTE)
        for number in range(5)
        for minute in range(1, 9)
    )


@pytest.mark.parametrize(
    ("pattern", "zone", "evening", "fired"),
    [
        ("30 2 * * *", "Europe/Berlin", (3, 28, 20), ["29. 01:00", "30. 00:30"]),
        ("15,45 1,2 * * *", "Europe/Berlin", (3, 29, 0, 30), ["29. 00:45", "29. 01:00", "29. 23:15"]),
        ("30 0 * * *", "Asia/Beirut", (3, 28, 20), ["28. 22:00", "29. 21:30"]),
        ("30 2 * * *", "Europe/Berlin", (10, 24, 20), ["25. 00:30", "26. 01:30"]),
    ],
)
def test_on_a_night_on_which_clocks_change_a_time_of_the_clock_starts_once(
    valkey, pattern, zone, evening, fired
):
    ground = Ground(valkey)
    ground.clock.now = datetime(2026, *evening, tzinfo=UTC)
    ground.reconcile(schedule(pattern=pattern, zone=zone))
    found = []
    while len(found) < len(fired) and ground.clock.now.day <= 30:
        found += ground.tick(by=5 * MINUTE)
        end_all(valkey)

    assert found == fired


class TestAnOccurrenceThatWaits:
    def test_the_ones_that_come_meanwhile_are_counted_and_told_once(self, valkey, events):
        ground = Ground(valkey, schedule())
        assert ground.tick(by=3 * MINUTE) == ["03. 10:05"]
        before = occurrence_id("tidy", instant=ground.clock.now)
        for _ in range(3):
            assert ground.tick(by=5 * MINUTE) == []
        assert ground.tick(by=10 * MINUTE) == []

        note = read_acted(valkey.hget(keys.fired(QUEUE), "tidy"))
        assert (shown(note.instant_ms), note.job_id, note.skipped, note.waited) == (
            "03. 10:30",
            before,
            5,
            True,
        )
        assert told(events, "schedule_occurrence_skipped") == [{"schedulerId": "tidy", "jobId": before}]

        # It has begun, and the next due instant is its successor.
        Host(valkey, queue=QUEUE).start()
        assert ground.tick() == []
        assert ground.tick(by=5 * MINUTE) == ["03. 10:35"]
        assert [one.get("skipped") for one in told(events, "occurrence_enqueued")] == [None, 5]
        assert ground.tick(by=5 * MINUTE) == []
        assert len(told(events, "schedule_occurrence_skipped")) == 2

    def test_taking_the_schedule_out_and_putting_it_back_adds_none(self, valkey):
        ground = Ground(valkey, schedule())
        assert ground.tick(by=3 * MINUTE) == ["03. 10:05"]
        for _ in range(3):
            ground.reconcile()
            # What passes meanwhile is nobody's.
            assert ground.tick(by=7 * MINUTE) == []
            ground.reconcile(schedule(pattern="*/5 * * * *", task="tidy more"))
            assert ground.tick() == ground.tick(by=5 * MINUTE) == []
        assert instants(valkey) == ["03. 10:05"]

        end_all(valkey)
        assert ground.tick(by=5 * MINUTE) == ["03. 10:45"]

    def test_on_another_queue_it_hinders_nobody(self, valkey):
        ground = Ground(valkey, schedule(), queues=(QUEUE, OTHER))
        assert ground.tick(QUEUE, by=3 * MINUTE) == ["03. 10:05"]
        assert ground.tick(OTHER) == []

        # Ours waits: this instant is the other host's, and then the next one, too.
        assert (ground.tick(QUEUE, by=5 * MINUTE), ground.tick(OTHER)) == ([], ["03. 10:10"])
        set_status(valkey, occurrence_id("tidy", instant=ground.clock.now), "started")
        # The other one first: then it is no skip of ours.
        assert (ground.tick(OTHER, by=5 * MINUTE), ground.tick(QUEUE)) == (["03. 10:15"], [])
        assert not read_acted(valkey.hget(keys.fired(QUEUE), "tidy")).waited
        # And ours waits still.
        assert (ground.tick(QUEUE, by=5 * MINUTE), instants(valkey)) == ([], ["03. 10:05"])

    @pytest.mark.parametrize(
        "note", ["", "[]", '{"instant":1,"at":1,"skipped":1,"job":"%s"}' % ("x" * 201), "[" * 10_000]
    )
    def test_a_note_that_says_nothing_hinders_nobody(self, valkey, note):
        ground = Ground(valkey, schedule())
        ground.tick(by=3 * MINUTE)
        valkey.hset(keys.fired(QUEUE), "tidy", note)

        assert ground.tick(by=5 * MINUTE) == ["03. 10:10"]


class TestAClockThatIsWrong:
    @pytest.mark.parametrize("back", [SECOND, HOUR, 20 * HOUR, 40 * HOUR], ids=str)
    def test_what_was_fired_before_it_went_back_is_not_again(self, valkey, events, back):
        ground = Ground(valkey, schedule(pattern="0 * * * *"))
        fired = []
        for _ in range(48):
            fired += ground.tick(by=HOUR)
            end_all(valkey)

        ground.clock.go(-back)
        for _ in range(45):
            fired += ground.tick(by=HOUR)
            end_all(valkey)

        assert len(fired) == len(set(fired))
        assert fired == sorted(fired)
        # No longer than until it is there again.
        assert len(fired) == (ground.clock.now.replace(minute=0, second=0) - START.replace(minute=0)) // HOUR
        seen_ms = (back - HOUR) // timedelta(milliseconds=1)
        assert [one["byMs"] for one in told(events, "schedule_clock_back")] == [seen_ms] * (seen_ms > 0)

    def test_an_instant_between_the_step_back_and_the_next_tick_is_not_lost(self, valkey):
        ground = Ground(valkey, schedule(pattern="0 * * * *"))
        ground.tick(by=4 * HOUR)
        end_all(valkey)

        # Right again a second after an instant: nobody has ticked since.
        ground.clock.go(-3 * HOUR - 2 * MINUTE + SECOND)

        assert ground.tick() == [f"{ground.clock.now:%d. %H:00}"]

    @pytest.mark.parametrize("restarted", [False, True])
    def test_one_that_was_years_ahead_for_a_moment_costs_no_years(self, valkey, restarted):
        ground = Ground(valkey, schedule(pattern="0 * * * *"))
        assert ground.tick(by=HOUR) == ["03. 11:00"]
        end_all(valkey)
        ground.tick(by=1000 * DAY)
        end_all(valkey)
        ground.clock.go(-1000 * DAY)
        if restarted:
            # A worker's boot looks after it.
            ground = Ground(valkey)
            ground.clock.go(HOUR)
            ground.reconcile(schedule(pattern="0 * * * *"))

        assert ground.tick(by=5 * MINUTE) == []
        assert ground.next_of() == "03. 12:00"
        assert ground.tick(by=HOUR) == ["03. 12:00"]
        end_all(valkey)
        assert ground.tick(by=HOUR) == ["03. 13:00"]

    @pytest.mark.parametrize("score", [float("-inf"), -5, 0, 1e300, 1_772_532_000_001])
    def test_a_next_instant_that_is_none_of_the_pattern_is_put_right(self, valkey, score):
        ground = Ground(valkey, schedule())
        valkey.zadd(keys.upcoming(QUEUE), {"tidy": score})
        if score == 1e300:
            ground.tick()
            ground.clock.go(-2 * SECOND)

        assert len(ground.tick()) <= 1
        assert ground.next_of() == "03. 10:05"
        assert set(instants(valkey)) <= {"03. 10:00"}


def test_an_edit_between_reading_and_firing_is_heeded(valkey):
    ground = Ground(valkey, schedule())
    edited = schedule(task="tidy more")
    hasty = ground.ticker(delays=lambda _: ground.reconcile(edited))
    ground.clock.go(3 * MINUTE)

    assert hasty.tick() == ()
    assert [one.schedule_id for one in hasty.tick()] == ["tidy"]
    job_id = occurrence_id("tidy", instant=START + 3 * MINUTE)
    claimed = Host(valkey, queue=QUEUE).claim()
    assert (claimed.job_id, claimed.job) == (job_id, edited.job())


def test_a_schedule_that_is_removed_meanwhile_does_not_fire(valkey):
    ground = Ground(valkey, schedule())
    ground.clock.go(3 * MINUTE)

    assert ground.ticker(delays=lambda _: ground.reconcile()).tick() == ()
    assert ground.tick() == instants(valkey) == []


def test_a_queue_that_may_not_fire_catches_up_when_it_may(valkey):
    ground = Ground(valkey, schedule(), queues=(QUEUE, OTHER))
    allowed = {QUEUE: False, OTHER: True}
    asked = []
    gated = ground.ticker(QUEUE, OTHER, may_fire=lambda queue: (asked.append(queue), allowed[queue])[1])
    assert (gated.tick(), asked) == ((), [])
    ground.clock.go(3 * MINUTE)
    assert [one.queue for one in gated.tick()] == [OTHER]
    assert asked == [QUEUE, OTHER]

    allowed[QUEUE] = True
    ground.clock.go(10 * MINUTE)
    assert [(one.queue, shown(one.instant_ms)) for one in gated.tick()] == [(QUEUE, "03. 10:15")]


class TestWhatCannotBeRead:
    @pytest.mark.parametrize(
        "text",
        [None, "", "{}", "[" * 100_000, b"\xff", schedule("other").text()],
        ids=["none", "empty", "object", "deep", "no text", "another"],
    )
    def test_one_definition_costs_no_other_and_is_told_once(self, valkey, events, text, monkeypatch):
        monkeypatch.setattr(ticker, "_MOST", 2)
        ground = Ground(valkey, *(schedule(f"s{number}") for number in range(5)))
        for number in (0, 1, 2):
            if text is None:
                valkey.hdel(keys.definitions(QUEUE), f"s{number}")
            else:
                valkey.hset(keys.definitions(QUEUE), f"s{number}", text)
        valkey.zadd(keys.upcoming(QUEUE), {b"\xff\n": 1, "x" * 9000: 2})

        assert ground.tick(by=3 * MINUTE) == ["03. 10:05"] * 2
        assert ground.tick(by=5 * MINUTE) == []
        end_all(valkey)
        assert ground.tick(by=5 * MINUTE) == ["03. 10:15"] * 2

        found = {"queue": QUEUE, "reason": "definition"}
        expected = [{**found, "schedulerId": f"s{number}"} for number in range(3)]
        said = told(events, "schedule_unreadable")
        assert sorted(map(sorted, (one.items() for one in said))) == sorted(
            map(sorted, (one.items() for one in [*expected, found]))
        )
        # Mended, it fires, and may be told again.
        ground.reconcile(schedule("s0"))
        assert ground.tick(by=5 * MINUTE) == ["03. 10:20"]

    @pytest.mark.parametrize(
        "key",
        [
            *(name(QUEUE) for name in (keys.upcoming, keys.definitions, keys.fired)),
            *(keys.occurred("tidy"), f"rq:queue:{QUEUE}"),
        ],
    )
    def test_a_key_of_another_type_costs_its_queue_and_is_told_once(self, valkey, events, key):
        ground = Ground(valkey, schedule(), queues=(QUEUE, OTHER))
        ground.reconcile(schedule("mine"), queue=OTHER)
        both = ground.ticker(QUEUE, OTHER)
        kept = valkey.dump(key)
        valkey.delete(key)
        valkey.hset(key, "a", "b") if key.startswith("sched:occurred") else valkey.set(key, "x")
        ground.clock.go(3 * MINUTE)
        assert [one.schedule_id for one in both.tick()] == ["mine"]
        assert both.tick() == ()

        valkey.delete(key)
        if kept:
            valkey.restore(key, 0, kept)
        assert [one.schedule_id for one in both.tick()] == ["tidy"]
        (said,) = told(events, "schedule_unreadable")
        assert (said["queue"], said["reason"]) == (QUEUE, "wrong-type")

    @pytest.mark.parametrize(
        "text",
        [
            "0-9999999999999999",
            f"0-{epoch_ms(START + 9 * DAY)}",
            "0-0,0-9999999999999999",
            f"0-{'9' * 99}",
            "nonsense",
            "5-",
        ],
    )
    @pytest.mark.parametrize("waits", [False, True])
    def test_what_cannot_have_occurred_silences_nothing_and_is_told(self, valkey, events, text, waits):
        ground = Ground(valkey, schedule(), schedule("other"))
        assert len(ground.tick(by=3 * MINUTE)) == 2
        if not waits:
            end_all(valkey)
        valkey.set(keys.occurred("tidy"), text)

        fired = ["03. 10:10"] * 2 if not waits else []
        assert ground.tick(by=5 * MINUTE) == fired
        end_all(valkey)
        assert ground.tick(by=5 * MINUTE) == ["03. 10:15"] * 2
        unreadable = {"queue": QUEUE, "schedulerId": "tidy", "reason": "occurred"}
        assert told(events, "schedule_unreadable") == [unreadable]

    def test_one_that_cannot_be_acted_on_costs_no_other_of_its_queue(self, valkey):
        ground = Ground(valkey, *(schedule(name) for name in "abc"))
        valkey.hset(keys.occurred("b"), "x", "y")
        ground.clock.go(3 * MINUTE)
        assert [one.schedule_id for one in ground.tickers[QUEUE].tick()] == ["a", "c"]


def test_what_is_due_at_once_is_one_round_trip_for_hundreds(valkey, valkey_url):
    ground = Ground(valkey, *(schedule(f"s{number}") for number in range(250)))
    wire = Wire(valkey_url)
    ticker = Ticker(wire.client(), [QUEUE], clock_ms=ground.clock)
    ticker.tick()
    wire.sent = 0
    ground.clock.go(3 * MINUTE)
    assert len(ticker.tick()) == 250
    # Two pages and an empty one; whether the server knows the script is asked and told besides.
    assert wire.sent <= 3 + 2 * 2 + 1


def test_a_server_that_is_away_is_a_fault_and_what_was_due_is_so_afterwards(valkey, tmp_path):
    ground = Ground(valkey, schedule())
    away = Ticker(state_client(f"unix://{tmp_path}/none"), [QUEUE], clock_ms=ground.clock)
    with pytest.raises(VALKEY_FAULTS):
        away.tick()

    valkey.config_set("maxmemory", 1)
    try:
        with pytest.raises(VALKEY_FAULTS):
            ground.tick(by=3 * MINUTE)
    finally:
        valkey.config_set("maxmemory", 0)
    assert ground.tick(by=MINUTE) == ["03. 10:05"]


def test_nothing_due_is_one_command_and_changes_nothing(valkey, monkeypatch):
    ground = Ground(valkey, *(schedule(f"s{number}") for number in range(300)), queues=(QUEUE, OTHER))
    both = ground.ticker(QUEUE, OTHER)
    both.tick()
    before, sent = everything(valkey), []
    send = redis.connection.AbstractConnection.send_packed_command
    monkeypatch.setattr(
        redis.connection.AbstractConnection,
        "send_packed_command",
        lambda self, *args, **more: (sent.append(args), send(self, *args, **more))[1],
    )

    assert both.tick() == ()
    assert len(sent) == 1
    monkeypatch.undo()
    assert everything(valkey) == before


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("go"), st.sampled_from([1, 3, 10, 60, 600, 1500])),
        st.tuples(st.just("go"), st.sampled_from([-2, -30, -300, -3000])),
        st.tuples(
            st.sampled_from(["tick"] * 4 + ["begin", "forget", "edit", "retime", "put back"]),
            st.sampled_from([QUEUE, OTHER]),
        ),
    ),
    min_size=10,
    max_size=60,
)
PATTERNS = ("*/5 * * * *", "*/7 * * * *")


class Fleet(Ground):
    """Two hosts with the same schedule, each with its own table; what is said of them always holds."""

    def __init__(self, client):
        super().__init__(client, schedule(), queues=(QUEUE, OTHER))
        self.fired, self.edits = [], 0
        self.patterns = dict.fromkeys(self.tables, PATTERNS[0])

    def do(self, what, value):
        match what:
            case "go":
                # A worker ticks each second: it sees every step back.
                for by in (0, value) if value < 0 else ():
                    self.clock.go(by * MINUTE)
                    for queue in self.tables:
                        self.watch(queue)
                self.clock.go(max(value, 0) * MINUTE)
            case "tick":
                self.watch(value)
            case "begin":
                for one in listed(self.client, value):
                    self.client.hset(f"rq:job:{one}", "status", "started")
            case "forget":
                end_all(self.client, value)
            case _:
                self.edit(what, value)

    def edit(self, what, queue):
        self.edits += 1
        if what == "put back":
            self.reconcile(queue=queue)
        self.patterns[queue] = PATTERNS[self.edits % 2 if what == "retime" else 0]
        self.reconcile(schedule(pattern=self.patterns[queue], task=f"{self.edits}"), queue=queue)

    def watch(self, queue):
        """Tick: what fires has passed, and the schedule goes on when its pattern says."""
        acted = self.tickers[queue].tick()
        self.fired += [one.job_id for one in acted]
        assert all(one.instant_ms <= self.clock() for one in acted)
        following = schedule(pattern=self.patterns[queue]).recurrence().after(self.clock.now)
        assert self.tables[queue].resident()["tidy"].next_ms == epoch_ms(following)

    def waiting(self, queue):
        return [
            one
            for one in listed(self.client, queue)
            if self.client.hget(f"rq:job:{one}", "status") == b"queued"
        ]


@settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=STEPS)
def test_whatever_happens_each_instant_is_once_and_nothing_piles_up_or_stands_still(valkey, steps):
    """Minutes go by, clocks go back, hosts tick, jobs begin and are forgotten, the file is edited."""
    valkey.flushall()
    fleet = Fleet(valkey)
    for what, value in steps:
        fleet.do(what, value)
        assert all(len(fleet.waiting(queue)) <= 1 for queue in fleet.tables)
    assert len(fleet.fired) == len(set(fleet.fired))
