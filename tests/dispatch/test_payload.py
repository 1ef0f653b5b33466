from __future__ import annotations

import tracemalloc
import zlib
from dataclasses import fields

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rq.job import Job
from rq.serializers import JSONSerializer

from dispatch.jobdata import JobData
from dispatch.jobrules import Flaw, Malformed
from dispatch.payload import CALLABLE, MAX_PAYLOAD_BYTES, decode, encode
from tests.dispatch.job_samples import FULL_FORGE, FULL_LOCAL, LOCAL, call


def changed(**members: object) -> bytes:
    """The call of the smallest job with some members set, or left out where they are `...`."""
    data = {**encode(LOCAL)["data"], **members}
    return call({name: value for name, value in data.items() if value is not ...})


def test_unset_fields_are_absent_on_the_wire():
    assert encode(LOCAL) == {"v": 1, "data": {"kind": "local", "folder": "/srv/site", "task": "do it"}}


def test_the_wire_names_are_those_of_the_specification():
    written = encode(FULL_LOCAL)["data"] | encode(FULL_FORGE)["data"]

    assert " ".join(written) == (
        "kind flow provider model maxTurns packages image skillsDir secrets secretsProfile waitFor trigger"
        " folder task chainDepth parentJobId github command resume repo projectId azure target instructions"
        " replica replicas"
    )
    assert len(written) == len(fields(JobData))
    assert written["trigger"]["deliveryId"] == "d-1"
    assert written["trigger"]["comment"] == {"body": "b", "author_association": "OWNER"}


@pytest.mark.parametrize(
    "job",
    [
        pytest.param(LOCAL, id="smallest"),
        pytest.param(FULL_LOCAL, id="every local field"),
        pytest.param(FULL_FORGE, id="every forge field"),
    ],
)
@pytest.mark.parametrize("pack", [pytest.param(bytes, id="plain"), pytest.param(zlib.compress, id="zlib")])
def test_a_job_comes_back_equal(job, pack):
    assert decode(pack(call(encode(job)["data"]))) == job


def test_what_rq_itself_stores_is_read(valkey):
    job = Job.create(
        CALLABLE, kwargs={"job": encode(FULL_LOCAL)}, connection=valkey, serializer=JSONSerializer, id="a"
    )
    job.save()

    assert decode(valkey.hget("rq:job:a", "data")) == FULL_LOCAL


FLAWS = [
    pytest.param(b"", Malformed(Flaw.NOT_JSON), id="empty"),
    pytest.param(b"\x80\x04\x95", Malformed(Flaw.NOT_JSON), id="a pickle"),
    pytest.param(b"[1", Malformed(Flaw.NOT_JSON), id="cut JSON"),
    pytest.param(b"\xff\xfe", Malformed(Flaw.NOT_JSON), id="no UTF-8"),
    pytest.param(zlib.compress(b"[]")[:-3], Malformed(Flaw.NOT_JSON), id="cut zlib"),
    pytest.param(zlib.compress(b"[]") + b"x", Malformed(Flaw.NOT_JSON), id="bytes after zlib"),
    pytest.param(b"[" * 100_000, Malformed(Flaw.NOT_JSON), id="brackets without end"),
    pytest.param(b"[" + b"9" * 5000 + b"]", Malformed(Flaw.NOT_JSON), id="an endless integer"),
    pytest.param(b"[NaN]", Malformed(Flaw.NOT_JSON), id="NaN"),
    pytest.param(b"[-Infinity]", Malformed(Flaw.NOT_JSON), id="Infinity"),
    pytest.param(b"[1e999]", Malformed(Flaw.NOT_JSON), id="a number beyond every float"),
    pytest.param(b'{"a":1,"a":1}', Malformed(Flaw.DUPLICATE_KEY), id="duplicate key"),
    pytest.param(b" " * (MAX_PAYLOAD_BYTES + 1), Malformed(Flaw.TOO_LARGE), id="too large"),
    pytest.param(b"{}", Malformed(Flaw.NOT_A_CALL), id="an object"),
    pytest.param(b"[1,2,3]", Malformed(Flaw.NOT_A_CALL), id="three parts"),
    pytest.param(call({}, function="os.system"), Malformed(Flaw.FOREIGN_CALLABLE), id="foreign function"),
    pytest.param(call({}, function=["dispatch.jobs.run"]), Malformed(Flaw.FOREIGN_CALLABLE), id="a list"),
    pytest.param(b'["dispatch.jobs.run",1,[],{}]', Malformed(Flaw.FOREIGN_CALLABLE), id="a method"),
    pytest.param(
        changed().replace(b"null, []", b"null, [1]"), Malformed(Flaw.WRONG_ARGUMENTS), id="positional"
    ),
    pytest.param(b'["dispatch.jobs.run",null,[],{}]', Malformed(Flaw.WRONG_ARGUMENTS), id="no arguments"),
    pytest.param(b'["dispatch.jobs.run",null,[],[]]', Malformed(Flaw.WRONG_ARGUMENTS), id="no keywords"),
    pytest.param(
        b'["dispatch.jobs.run",null,[],{"job":{"v":1,"data":{}},"x":1}]',
        Malformed(Flaw.WRONG_ARGUMENTS),
        id="a second keyword",
    ),
    pytest.param(
        b'["dispatch.jobs.run",null,[],{"job":{"v":1}}]', Malformed(Flaw.WRONG_ARGUMENTS), id="no data"
    ),
    pytest.param(
        b'["dispatch.jobs.run",null,[],{"job":[]}]', Malformed(Flaw.WRONG_ARGUMENTS), id="no envelope"
    ),
    pytest.param(call({}, version=2), Malformed(Flaw.UNKNOWN_VERSION), id="version 2"),
    pytest.param(call({}, version=True), Malformed(Flaw.UNKNOWN_VERSION), id="version True"),
    pytest.param(call({}, version=1.0), Malformed(Flaw.UNKNOWN_VERSION), id="version 1.0"),
    pytest.param(call({}, version="1"), Malformed(Flaw.UNKNOWN_VERSION), id="version as text"),
    pytest.param(call([]), Malformed(Flaw.FIELD_TYPE), id="data is a list"),
    pytest.param(call({}), Malformed(Flaw.FIELD_MISSING, "kind"), id="no kind"),
    pytest.param(changed(extra=1), Malformed(Flaw.FIELD_UNKNOWN), id="unknown field"),
    pytest.param(changed(max_turns=1), Malformed(Flaw.FIELD_UNKNOWN), id="a name of ours, not of the wire"),
    pytest.param(changed(kind="svn"), Malformed(Flaw.FIELD_VALUE, "kind"), id="unknown kind"),
    pytest.param(changed(kind=["local"]), Malformed(Flaw.FIELD_TYPE, "kind"), id="kind is a list"),
    pytest.param(changed(task=None), Malformed(Flaw.FIELD_TYPE, "task"), id="null"),
    pytest.param(changed(task=5), Malformed(Flaw.FIELD_TYPE, "task"), id="a number for a text"),
    pytest.param(changed(maxTurns=True), Malformed(Flaw.FIELD_TYPE, "maxTurns"), id="True for an integer"),
    pytest.param(changed(maxTurns=3.0), Malformed(Flaw.FIELD_TYPE, "maxTurns"), id="a float"),
    pytest.param(changed(maxTurns="3"), Malformed(Flaw.FIELD_TYPE, "maxTurns"), id="digits as a text"),
    pytest.param(changed(maxTurns=10**30), Malformed(Flaw.FIELD_VALUE, "maxTurns"), id="endless turns"),
    pytest.param(changed(projectId=2**53 + 1), Malformed(Flaw.FIELD_VALUE, "projectId"), id="beyond 2^53"),
    pytest.param(changed(github=1), Malformed(Flaw.FIELD_TYPE, "github"), id="1 for True"),
    pytest.param(changed(secrets={"A": 1}), Malformed(Flaw.FIELD_TYPE, "secrets"), id="secrets of numbers"),
    pytest.param(changed(secrets=[]), Malformed(Flaw.FIELD_TYPE, "secrets"), id="secrets as a list"),
    pytest.param(changed(waitFor={}), Malformed(Flaw.FIELD_TYPE, "waitFor"), id="waitFor as an object"),
    pytest.param(changed(task="\ud800"), Malformed(Flaw.FIELD_VALUE, "task"), id="a lone surrogate"),
    pytest.param(changed(trigger={}), Malformed(Flaw.FIELD_TYPE, "trigger"), id="a trigger of no kind"),
    pytest.param(changed(trigger=1), Malformed(Flaw.FIELD_TYPE, "trigger"), id="a trigger that is a number"),
    pytest.param(
        changed(trigger={"id": "a", "pattern": "b", "x": 1}),
        Malformed(Flaw.FIELD_UNKNOWN, "trigger"),
        id="an unknown member of a trigger",
    ),
    pytest.param(
        changed(target={"type": "issue"}), Malformed(Flaw.FIELD_MISSING, "target"), id="half a target"
    ),
    pytest.param(changed(folder=...), Malformed(Flaw.FIELD_MISSING, "folder"), id="no folder"),
    pytest.param(changed(folder="."), Malformed(Flaw.FIELD_VALUE, "folder"), id="a relative folder"),
]


@pytest.mark.parametrize(("raw", "malformed"), FLAWS)
def test_what_is_no_job_is_named_by_a_word(raw, malformed):
    assert decode(raw) == malformed


@pytest.mark.parametrize(("raw", "malformed"), FLAWS)
def test_compression_hides_nothing(raw, malformed):
    assert decode(zlib.compress(raw)) == malformed


def test_a_zip_bomb_costs_no_memory():
    bomb = zlib.compress(b" " * (128 * 1024 * 1024), 9)[:MAX_PAYLOAD_BYTES]
    tracemalloc.start()

    got = decode(bomb)

    assert got == Malformed(Flaw.TOO_LARGE)
    assert tracemalloc.get_traced_memory()[1] < 4 * MAX_PAYLOAD_BYTES
    tracemalloc.stop()


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(sorted(encode(FULL_FORGE)["data"])), inner, max_size=3)
    ),
    max_leaves=8,
)


@given(st.binary(max_size=200))
def test_no_bytes_raise(raw):
    assert isinstance(decode(raw), Malformed)
    assert isinstance(decode(zlib.compress(raw)), Malformed)


@given(st.sampled_from([FULL_LOCAL, FULL_FORGE]), st.data())
def test_no_value_in_any_place_raises_or_slips_through_as_another_job(job, data):
    members = encode(job)["data"]
    name = data.draw(st.sampled_from(sorted(members)))
    members[name] = data.draw(json_values)

    got = decode(call(members))

    assert isinstance(got, Malformed) or encode(got)["data"] == members
