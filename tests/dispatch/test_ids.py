from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rq.job import validate_job_id

from dispatch.ids import (
    MAX_ID_BYTES,
    Kind,
    TargetType,
    chained_id,
    delivery_id,
    is_closing,
    local_id,
    manual_id,
    natural_id,
    occurrence_id,
    rq_id,
    slot_of,
    window_key,
)

CASES = json.loads((Path(__file__).parents[1] / "vectors" / "job-ids.json").read_text())["cases"]
# A quirk is no requirement: the reference adds `closed:` for any forge's word, we for the forge's own.
QUIRKS = {"window-007", "window-013", "window-021", "window-027", "window-028"}
NOW = datetime(2026, 3, 4, 5, 6, 7, tzinfo=UTC)

# Valid Unicode of a bounded length; the blacklist is the lone surrogates.
well_formed = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=60).filter(
    lambda text: len(text.encode()) <= MAX_ID_BYTES
)


def answer(question: dict) -> dict:
    match question["op"]:
        case "local":
            return {
                "id": local_id(
                    question["folder"],
                    flow=question.get("flow"),
                    command=question.get("command"),
                    task=question.get("task"),
                    now=datetime.fromisoformat(question["now"]),
                )
            }
        case "chained":
            return {"id": chained_id(question["parentJobId"], flow=question["flow"], task=question["task"])}
        case "delivery":
            try:
                id_ = delivery_id(question["kind"], question["deliveryId"], replica=question.get("replica"))
            except ValueError:
                return {"accept": False}
            return {"accept": True, "id": id_}
        case "window":
            return {"key": key_of(question)}
        case other:
            raise AssertionError(other)


def key_of(question: dict) -> str:
    kind = Kind(question["kind"])
    matched = question.get("matched")
    return window_key(
        kind,
        repo=question["repo"],
        target=TargetType(question["target"]["type"]),
        number=question["target"]["number"],
        slot=slot_of(flow=question.get("flow"), command=question.get("command")),
        closing=matched is not None
        and is_closing(kind, matched_type=matched["type"], matched_action=matched.get("action")),
        replica=question.get("replica"),
    )


@pytest.mark.parametrize(
    "case", [pytest.param(case, id=case["name"]) for case in CASES if not case.get("quirk")]
)
def test_an_id_is_what_the_reference_makes_of_it(case):
    assert answer(case["in"]) == case["out"]


def test_only_the_quirks_of_closing_words_are_left_out():
    assert {case["name"] for case in CASES if case.get("quirk")} == QUIRKS
    assert len(CASES) - len(QUIRKS) == 57


@pytest.mark.parametrize(
    ("kind", "word", "closing"),
    [
        pytest.param(Kind.GITHUB, "closed", True, id="github closed"),
        pytest.param(Kind.GITHUB, "close", False, id="github does not say close"),
        pytest.param(Kind.GITLAB, "close", True, id="gitlab close"),
        pytest.param(Kind.GITLAB, "closed", False, id="gitlab does not say closed"),
        pytest.param(Kind.FORGEJO, "closed", True, id="forgejo closed"),
        pytest.param(Kind.AZURE, "closed", False, id="azure has no word"),
        pytest.param(Kind.AZURE, None, False, id="azure without an action"),
        pytest.param(Kind.LOCAL, "closed", False, id="no forge"),
    ],
)
def test_a_pull_request_is_closing_only_in_its_own_forges_word(kind, word, closing):
    assert is_closing(kind, matched_type="pull_request", matched_action=word) is closing


def test_an_id_of_a_run_does_not_depend_on_the_time_zone_it_is_asked_in():
    there = NOW.astimezone(timezone(timedelta(hours=5, minutes=30)))

    assert local_id("/a", task="x", now=there) == local_id("/a", task="x", now=NOW)


def test_a_naive_instant_is_refused():
    with pytest.raises(ValueError, match="time zone"):
        local_id("/a", task="x", now=datetime(2026, 1, 1))  # noqa: DTZ001


def test_a_lone_surrogate_counts_as_the_replacement_character():
    assert local_id("/a", task="x\ud83dy", now=NOW) == local_id("/a", task="x\ufffdy", now=NOW)


def test_two_halves_of_one_character_count_as_that_character():
    assert local_id("/a", task="\ud83d\ude00", now=NOW) == local_id("/a", task="😀", now=NOW)


def test_an_occurrence_carries_its_instant_in_milliseconds():
    instant = datetime(2025, 1, 1, tzinfo=UTC) + timedelta(milliseconds=7)

    assert occurrence_id("nightly", instant=instant) == "repeat:nightly:1735689600007"
    assert manual_id("nightly", instant=instant) == "manual:nightly:1735689600007"


@pytest.mark.parametrize(
    ("delivery", "replica"),
    [
        pytest.param("x" * (MAX_ID_BYTES - 2), None, id="too long with its prefix"),
        pytest.param("\ud800", None, id="lone surrogate"),
        pytest.param(True, None, id="a boolean"),
        pytest.param("x", 0, id="replica 0"),
        pytest.param("x", -1, id="replica -1"),
        pytest.param("x", True, id="replica True"),
    ],
)
def test_an_unusable_delivery_is_an_error_that_repeats_nothing_of_it(delivery, replica):
    with pytest.raises(ValueError, match=r"deliver|replica|job id") as raised:
        delivery_id("github", delivery, replica=replica)

    assert str(delivery) not in str(raised.value)


@given(well_formed)
def test_an_id_comes_back_from_rqs_alphabet(natural):
    encoded = rq_id(natural)

    validate_job_id(encoded)
    assert natural_id(encoded) == natural


@given(st.text("abz09-_AF~\n", max_size=20))
def test_what_is_read_back_is_written_the_same_and_anything_else_is_no_id(rq):
    natural = natural_id(rq)

    assert natural is None or rq_id(natural) == rq


@given(well_formed, well_formed)
def test_different_ids_stay_different(one, other):
    assert (rq_id(one) == rq_id(other)) == (one == other)


@pytest.mark.parametrize(
    ("natural", "encoded"),
    [
        pytest.param("local-f9acf5ec8f0855df", "local-f9acf5ec8f0855df", id="nothing to do"),
        pytest.param("repeat:a.b_c:17", "repeat_3aa_2eb_5fc_3a17", id="punctuation"),
        pytest.param("é", "_c3_a9", id="two bytes"),
    ],
)
def test_an_id_is_written_byte_by_byte(natural, encoded):
    assert rq_id(natural) == encoded


@pytest.mark.parametrize(
    "rq",
    [
        pytest.param("", id="empty"),
        pytest.param("a_3A", id="upper-case digits"),
        pytest.param("a_3", id="cut short"),
        pytest.param("a_zz", id="no digits"),
        pytest.param("_61", id="an escape that was not needed"),
        pytest.param("_c3", id="no UTF-8"),
        pytest.param("_ed_a0_80", id="a surrogate in UTF-8"),
        pytest.param("a:b", id="outside the alphabet"),
        pytest.param("a\n", id="a newline at the end"),
        pytest.param("é", id="no ASCII"),
        pytest.param("٣", id="a digit of another script"),
        pytest.param("a" * (MAX_ID_BYTES + 1), id="too long"),
    ],
)
def test_a_string_that_is_no_encoding_is_no_id(rq):
    assert natural_id(rq) is None


@pytest.mark.parametrize(
    "natural",
    [
        pytest.param("", id="empty"),
        pytest.param("a" * (MAX_ID_BYTES + 1), id="one byte too many"),
        pytest.param("é" * (MAX_ID_BYTES // 2) + "a", id="counted in bytes"),
        pytest.param("a\ud800", id="a lone surrogate"),
    ],
)
def test_an_id_that_no_file_could_be_named_by_is_refused(natural):
    with pytest.raises(ValueError, match="job id"):
        rq_id(natural)


def test_the_longest_id_is_allowed():
    assert natural_id(rq_id("a" * MAX_ID_BYTES)) == "a" * MAX_ID_BYTES
