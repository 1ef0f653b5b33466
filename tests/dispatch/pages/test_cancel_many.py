"""Lists of many jobs to tick, and their form. `acceptance/test_console_plain.py` cancels a thousand."""

from __future__ import annotations

import re

import pytest
from django.test import override_settings

from dispatch.pages.queue_asked import Asked
from tests.dispatch.pages.people import member
from tests.dispatch.queuekit import Host, everything

QUEUE = "/admin/queue/"
COUNT = 60


@pytest.fixture
def there(db, valkey, valkey_url):
    """Jobs that wait; the settings name their server."""
    Host(valkey).enqueue(*(f"local-{number:02}" for number in range(COUNT)))
    with override_settings(PIDISPATCH_ENVIRONMENT={"VALKEY_URL": valkey_url}):
        yield


@pytest.mark.parametrize(
    ("group", "asked", "rows", "other"),
    [
        pytest.param("operator", "section=waiting", 50, "1000 a page", id="offered"),
        pytest.param("operator", "section=waiting&rows=1000", COUNT, "50 a page", id="taken, and back"),
        pytest.param("operator", "section=waiting&rows=60", 50, "1000 a page", id="no other length"),
        pytest.param("operator", "rows=1000", 10, None, id="of one section only"),
        pytest.param("operator", "section=running", 0, None, id="not where one page has all"),
        pytest.param("viewer", "section=waiting&rows=1000", 50, None, id="not as it refreshes itself"),
        pytest.param("viewer", "section=waiting&rows=1000&live=0", COUNT, "50 a page", id="once it stands"),
    ],
)
def test_a_page_of_a_section_has_as_many_rows_as_are_asked_for(there, group, asked, rows, other):
    page = member(group).get(f"{QUEUE}?{asked}").content.decode()

    assert len(re.findall(r'id="queue-job-', page)) == rows
    assert re.findall(r">(\d+ a page)<", page) == ([other] if other else [])


def test_an_address_keeps_how_long_its_pages_are():
    given = {"section": "waiting", "rows": "1000", "page": "3"}
    asked = Asked.of(given)

    assert asked.address(page=3) == "?section=waiting&page=3&rows=1000"
    assert asked.address(standing=None) == "?"
    assert Asked.of({**given, "live": "1"}).address() == "?section=waiting&live=1"


def hidden(page):
    return dict(re.findall(r'<input type="hidden" name="(\w+)" value="([^"]*)"', page))


@pytest.mark.parametrize(
    "asked",
    [
        pytest.param("section=waiting&rows=1000", id="long page"),
        pytest.param("queue=pi-jobs&section=waiting&id=local&page=2", id="second page of a filter"),
    ],
)
def test_whoever_cancels_comes_back_to_the_same_page(there, asked):
    operator, here = member("operator"), f"{QUEUE}?{asked}"
    chosen = {"which": "chosen", "job": "local-55"}
    listed = operator.get(here).content.decode()
    shown = operator.post(f"{QUEUE}cancel/", {**hidden(listed), **chosen}).content.decode()
    way_out = re.search(r'<a href="([^"]*)">Change nothing<', shown)

    assert way_out[1].replace("&amp;", "&") == here
    assert operator.post(f"{QUEUE}cancel/", hidden(shown)).url == here
    # Without scripts both say that they stand still; only what was asked for by address is loaded again.
    assert ("Scripts are off" in listed, "Load it again" in listed) == (True, True)
    assert ("Scripts are off" in shown, "Load it again" in shown) == (True, False)


@pytest.mark.parametrize(
    ("asked", "other"),
    [
        pytest.param("section=waiting&rows=1000&page=3", "section=waiting&live=1", id="from a long page"),
        pytest.param("section=waiting&page=2", "section=waiting&page=2&live=1", id="from a short one"),
        pytest.param("section=waiting&page=2&live=1", "section=waiting&page=2", id="and back"),
    ],
)
def test_a_list_that_refreshes_itself_begins_with_the_same_jobs(there, asked, other):
    page = member("operator").get(f"{QUEUE}?{asked}").content.decode()

    assert f'href="{QUEUE}?{other.replace("&", "&amp;")}"' in re.search(r'<a id="queue-way"[^>]*>', page)[0]


@pytest.mark.parametrize(("count", "status"), [(2_000, 200), (10_001, 400)])
def test_a_form_of_very_many_boxes_is_taken_and_one_beyond_all_lists_is_not(there, valkey, count, status):
    operator, before = member("operator"), everything(valkey)
    ticked = [f"local-{number:02}" for number in range(count)]

    response = operator.post(f"{QUEUE}cancel/", {"which": "chosen", "job": ticked})

    assert response.status_code == status
    assert everything(valkey) == before
