from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hosts import row_reading
from hosts.rows import HostRow, KnownHost, Presence, UnreadableRow

NOW = 1_790_000_000_000
ID = "0123456789abcdef"
ROW = {
    "name": ("mac", "name", "mac"),
    "hostId": (ID, "host_id", ID),
    "boot": (f"{ID}-00000001", "boot", f"{ID}-00000001"),
    "beatAt": (str(NOW - 1_000), "beat_at_ms", NOW - 1_000),
    "startedAt": (str(NOW - 60_000), "started_at_ms", NOW - 60_000),
    "clockAt": (str(NOW + 9_000), "clock_at_ms", NOW + 9_000),
    "version": ("0.1.0", "version", "0.1.0"),
    "pid": ("4711", "pid", 4711),
    "image": ("pi-job:latest", "image", "pi-job:latest"),
    "imageDigest": ("sha256:ab", "image_digest", "sha256:ab"),
    "piVersion": ("0.80.1", "pi_version", "0.80.1"),
    "concurrency": ("3", "concurrency", 3),
    "slotsUsed": ("0", "slots_used", 0),
    "routes": ("true", "routes", True),
    "caps": ("s:prod,w:jira", "caps", frozenset({"s:prod", "w:jira"})),
    "tz": ("Europe/Berlin", "tz", "Europe/Berlin"),
    "blind": ("engine", "blind", "engine"),
    "cronCount": ("2", "cron_count", 2),
    "fpCron": ("c", "fp_cron", "c"),
    **{
        f"fp{what}": (what, f"fp_{what.lower()}", what)
        for what in ("Pause", "Limits", "Settings", "Spending", "Triggers")
    },
}
WHOLE = {field: text for field, (text, _, _) in ROW.items()}


def read(member="mac", draining=False, **changes):
    fields = {**WHOLE, **changes}
    values = {
        name: value if isinstance(value, bytes) else value.encode()
        for name, value in fields.items()
        if value is not None
    }
    member = member if isinstance(member, bytes) else member.encode()
    return row_reading.read_row(member, values, now_ms=NOW, draining=draining)


def test_a_whole_row():
    assert set(WHOLE) == set(row_reading.FIELDS)
    row = read(draining=True)
    expected = {attribute: value for _, attribute, value in ROW.values()}
    assert row == HostRow(**expected, stale_ms=1_000, draining=True)
    assert (row.skew_ms, row.presence) == (10_000, Presence.ALIVE)


@pytest.mark.parametrize("gone", [None, ""])
def test_what_is_missing_or_blank_is_unknown(gone):
    nothing = read(**dict.fromkeys(WHOLE, gone))
    assert nothing == HostRow(name="mac")
    assert (nothing.presence, nothing.skew_ms) == (Presence.GONE, None)


@pytest.mark.parametrize(
    ("age", "stale", "presence"),
    [
        (0, 0, Presence.ALIVE),
        (-7_000_000, 0, Presence.ALIVE),
        (45_000, 45_000, Presence.ALIVE),
        (45_001, 45_001, Presence.LATE),
        (90_000, 90_000, Presence.LATE),
        (90_001, 90_001, Presence.GONE),
    ],
)
def test_a_row_is_as_old_as_its_beat_and_one_from_the_future_is_new(age, stale, presence):
    row = read(beatAt=str(NOW - age))
    assert (row.stale_ms, row.presence) == (stale, presence)


@pytest.mark.parametrize(
    ("field", "value", "attribute", "found"),
    [
        ("routes", "TRUE", "routes", False),
        ("routes", "1", "routes", False),
        ("caps", "s:a, w:b,x:c,s:,w:../x,s:a@b,w:ok", "caps", frozenset({"s:a", "w:ok"})),
        ("tz", "Mars\x1b[31m/\u202eBase\n", "tz", "Mars\ufffd[31m/\ufffdBase\ufffd"),
        ("ofALaterVersion", "x" * 9_000, "name", "mac"),
        ("beatAt", "0", "stale_ms", NOW),
    ],
)
def test_what_is_taken_as_it_may_be(field, value, attribute, found):
    assert getattr(read(**{field: value}), attribute) == found


@pytest.mark.parametrize(
    ("field", "value", "why"),
    [
        *(
            (field, value, f"{field} is not an instant")
            for field in ("beatAt", "startedAt", "clockAt")
            for value in ("soon", "-1", "1.5", "1e12", "9" * 16, " 1", "1\n", "٣", "nan")
        ),
        *(
            (field, value, f"{field} is not a count")
            for field in ("pid", "concurrency", "slotsUsed", "cronCount")
            for value in ("many", "-1", "0x10", "9" * 10, "3.0")
        ),
        ("hostId", ID.upper(), "hostId is not 16 hexadecimal digits"),
        ("hostId", ID + "\n", "hostId is not 16 hexadecimal digits"),
        ("boot", ID, "boot is not the id of a boot"),
        ("image", b"pi-job\xff", "image is not text"),
        ("beatAt", b"\xff", "beatAt is not an instant"),
        ("image", "x" * 10_000, "image is longer than 4096 bytes"),
        ("caps", b"\xff" * 10_000, "caps is longer than 4096 bytes"),
        ("name", "other", "calls itself by another name"),
        ("name", b"mac\xff", "calls itself by another name"),
    ],
)
def test_what_cannot_be_right_makes_the_row_unreadable(field, value, why):
    assert read(**{field: value}) == UnreadableRow(shown="mac", why=why)


@pytest.mark.parametrize(
    ("member", "shown"),
    [
        ("mac:1", "mac:1"),
        ("pi-jobs@mac", "pi-jobs@mac"),
        ("my mac", "my mac"),
        ("..", ".."),
        ("", '""'),
        ("x" * 65, "x" * 65),
        ("n" * 10_000, "n" * 80 + "…"),
        ("m\u00e4c", "m\u00e4c"),
        ("mac\n", "mac\ufffd"),
        ("\x1b[2J", "\ufffd[2J"),
        (b"\xff\x00", "\ufffd\ufffd"),
    ],
)
def test_a_name_that_is_none_is_shown_short_and_steers_no_terminal(member, shown):
    values = {"name": member if isinstance(member, str) else ""}
    assert read(member, **values) == UnreadableRow(shown=shown, why="is no worker name")


ENTRY = b'{"name":"mac","beat":1790000000000,"later":[]}'


@pytest.mark.parametrize(
    ("member", "entry", "why"),
    [
        ("mac", ENTRY, "is no known host"),
        (b"\xff", ENTRY, "is no known host"),
        (ID, b"", "is no known host"),
        (ID, b"[" * 5_000, "is no known host"),
        (ID, b"\xff\xfe", "is no known host"),
        (ID, b"3", "is no known host"),
        (ID, b'["name","beat"]', "is no known host"),
        (ID, b'{"name":"mac"}', "is no known host"),
        (ID, b'{"name":"a@b","beat":1}', "is known by what is no worker name"),
        (ID, b'{"name":["mac"],"beat":1}', "is known by what is no worker name"),
        *(
            (ID, b'{"name":"mac","beat":%s}' % beat, "is known with what is no instant")
            for beat in (b"-1", b"1.5", b"1e99", b"NaN", b"true", b'"1"', b"null", b"9" * 16)
        ),
    ],
)
def test_an_entry_of_the_known_hosts_that_is_none(member, entry, why):
    found = row_reading.read_known(member if isinstance(member, bytes) else member.encode(), entry)
    assert (type(found), found.why) == (UnreadableRow, why)


def test_an_entry_of_the_known_hosts():
    assert row_reading.read_known(ID.encode(), ENTRY) == KnownHost(host_id=ID, name="mac", beat_at_ms=NOW)


@given(
    member=st.sampled_from([b"mac"]) | st.binary(max_size=90),
    values=st.dictionaries(
        st.sampled_from(row_reading.FIELDS), st.binary(max_size=20) | st.integers().map(lambda n: b"%d" % n)
    ),
    entry=st.binary(max_size=40) | st.sampled_from([ENTRY, ENTRY[:-9], b"[[{}]]", b'{"name":{},"beat":{}}']),
)
def test_nothing_that_a_peer_writes_raises(member, values, entry):
    for found in (
        row_reading.read_row(member, values, now_ms=NOW, draining=False),
        row_reading.read_known(member, entry),
    ):
        texts = [found.shown, found.why] if isinstance(found, UnreadableRow) else [found.name]
        assert all(text.isprintable() and len(text) < 200 for text in texts)
