from __future__ import annotations

import pytest

from dispatch.gates.scopes import ScopeSlots


def test_a_folder_is_held_by_one_job_at_a_time():
    scopes = ScopeSlots()

    assert scopes.try_take("a", 1) is True
    assert scopes.try_take("a", 1) is False
    assert scopes.try_take("b", 1) is True


def test_a_refused_place_counts_nothing():
    scopes = ScopeSlots()
    scopes.try_take("a", 1)
    scopes.try_take("a", 1)

    scopes.give_back("a")

    assert scopes.held == {}


def test_a_place_given_back_twice_is_refused():
    scopes = ScopeSlots()
    scopes.try_take("a", 1)
    scopes.give_back("a")

    with pytest.raises(RuntimeError, match="twice"):
        scopes.give_back("a")


def test_a_leftover_container_keeps_its_folder_busy():
    scopes = ScopeSlots()

    scopes.hold(["a"])

    assert scopes.try_take("a", 1) is False


@pytest.mark.parametrize(("limit", "taken"), [(1, 1), (2, 2), (None, 5)])
def test_as_many_places_as_the_limit_says(limit, taken):
    scopes = ScopeSlots()

    assert [scopes.try_take("a", limit) for _ in range(5)].count(True) == taken
    assert scopes.has_room("a", limit) is (limit is None)
    scopes.give_back("a")
    assert scopes.has_room("a", limit)
