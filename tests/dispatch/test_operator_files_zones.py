from __future__ import annotations

import zoneinfo
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest

from dispatch.operator_files import zones
from dispatch.operator_files.zones import clock_time, zone_named


@pytest.mark.parametrize(
    ("name", "key"),
    [
        ("Europe/London", "Europe/London"),
        ("america/argentina/BUENOS_AIRES", "America/Argentina/Buenos_Aires"),
        ("utc", "UTC"),
        ("us/eastern", "US/Eastern"),
        ("Asia/Calcutta", "Asia/Calcutta"),
        ("etc/gmt+12", "Etc/GMT+12"),
        ("EST", "EST"),
        ("PST", "America/Los_Angeles"),
        ("cst", "America/Chicago"),
        *(
            (name, None)
            for name in ("IST", "BST", "Factory", "localtime", "posixrules", "UTC+2", "GMT+02:00")
        ),
        *(
            (name, None)
            for name in ("", "Europe", "Europe/", "/etc/localtime", "../UTC", "UTC ", "Asia/To\u212ayo")
        ),
    ],
)
def test_a_zone_is_found_by_any_of_its_names_in_any_case(name, key):
    found = zone_named(name)

    assert (found and found.key) == key
    assert found is zone_named(name)


def test_the_disk_is_looked_at_once(monkeypatch):
    zone_named("UTC")
    monkeypatch.setattr(zones, "available_timezones", None)

    assert zone_named("asia/tokyo") == ZoneInfo("Asia/Tokyo")


def test_zones_do_not_depend_on_the_machines_own_database():
    before = zoneinfo.TZPATH
    try:
        zoneinfo.reset_tzpath(to=())
        ZoneInfo.clear_cache()
        zones._names.cache_clear()

        zone = zone_named("europe/london")

        assert zone
        assert clock_time(datetime(2026, 7, 1, 12, tzinfo=UTC), zone).hour == 13
    finally:
        zoneinfo.reset_tzpath(to=before)
        ZoneInfo.clear_cache()
        zones._names.cache_clear()
