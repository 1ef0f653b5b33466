from __future__ import annotations

import pytest

from hosts.zone import zone_name


@pytest.mark.parametrize(
    ("environment", "link", "named", "zone"),
    [
        pytest.param({"TZ": "Europe/Paris"}, "Asia/Tokyo", None, "Europe/Paris", id="TZ wins"),
        pytest.param({"TZ": ":Europe/Paris"}, None, None, "Europe/Paris", id="TZ with its colon"),
        pytest.param({"TZ": "/etc/canary"}, "Asia/Tokyo", None, "", id="TZ names a file"),
        pytest.param({"TZ": "Factory"}, "Asia/Tokyo", None, "", id="TZ names no zone of the database's"),
        pytest.param({"TZ": "localtime"}, "Asia/Tokyo", None, "", id="TZ names what differs by machine"),
        pytest.param({"TZ": ""}, "Asia/Tokyo", None, "Asia/Tokyo", id="an empty TZ says nothing"),
        pytest.param({}, "posix/Asia/Tokyo", None, "Asia/Tokyo", id="a link into a variant"),
        pytest.param({}, None, "Asia/Tokyo\n", "Asia/Tokyo", id="a name in a file"),
        pytest.param({}, None, "nonsense\n", "UTC", id="no zone in the file"),
        pytest.param({}, None, None, "UTC", id="nothing is set up"),
    ],
)
def test_the_zone_of_a_machine(tmp_path, environment, link, named, zone):
    localtime, file = tmp_path / "localtime", tmp_path / "timezone"
    if link:
        target = tmp_path / "zoneinfo" / link
        target.parent.mkdir(parents=True)
        target.touch()
        localtime.symlink_to(target)
    if named:
        file.write_text(named)

    assert zone_name(environment, localtime=localtime, named=file) == zone


def test_a_copied_zone_without_a_name_is_not_taken_for_utc(tmp_path):
    localtime = tmp_path / "localtime"
    localtime.touch()

    assert zone_name({}, localtime=localtime, named=tmp_path / "none") == ""
