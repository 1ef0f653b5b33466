"""Every refusal of Q 5.1 in its words, and nothing else said beside it."""

from __future__ import annotations

import json

import pytest

from dispatch.operator_files.problems import OperatorFileError
from dispatch.schedules.patterns import problem_of
from dispatch.triggers.parse import parse

NAME = "/etc/pi/triggers.json"
AT = "trigger at index 0"
CRON = f'{AT} (cron trigger "nightly")'
GONE = object()


def without_gone(fields):
    return {name: value for name, value in fields.items() if value is not GONE}


def entry(on, run, **more):
    return {"on": without_gone(on), "run": without_gone(run), **more}


def cron(on=(), **run):
    schedule = {"type": "cron", "id": "nightly", "pattern": "0 3 * * *"}
    local = {"kind": "local", "folder": "/srv/site", "flow": "audit", "task": "look"}
    return entry({**schedule, **dict(on)}, {**local, **run})


def forge(on=(), **run):
    return entry({"type": "label", "any": ["ai"], **dict(on)}, {"kind": "github", "flow": "fix", **run})


def comment(on=(), **run):
    return entry({"type": "comment", "phrase": "@pi", **dict(on)}, {"kind": "github", "flow": "fix", **run})


def pull(*action, kind="github", run=(), **on):
    return entry(
        {"type": "pull_request", "action": list(action), **on}, {"kind": kind, "flow": "fix", **dict(run)}
    )


def issue(run=(), **on):
    return entry(
        {"type": "issue", "action": ["closed"], **on}, {"kind": "github", "flow": "fix", **dict(run)}
    )


def file_of(*rows):
    return json.dumps({"triggers": rows}).encode()


def said_of(content):
    with pytest.raises(OperatorFileError) as error:
        parse(content, name=NAME)
    return [problem.removeprefix(f"{NAME}: ") for problem in error.value.problems]


def problems_of(*rows):
    return said_of(file_of(*rows))


OBJECT = 'allowed is an object such as {"on": {"type": "cron", ...}, "run": {"kind": "local", ...}}'
TYPE = "allowed is one of cron, label, comment, pull_request, issue"
NAMED = "allowed is a name of letters, digits, dots, underscores and hyphens"
ID = f"{NAMED}, of at most 255"
TOKEN = "allowed is a name without spaces, of at most 200 printable ASCII characters"
ZONE = "allowed is an IANA time zone such as Europe/London, or no tz for the host's own"
PATTERN = "allowed is five or six fields such as 0 3 * * *, or a name such as @daily"
TURNED = "whose sign is the other way round"
CLOSING = "has no meaning here, since only rules about closing have it; take it out"
NO_LABELS = "has no meaning here, since the rule has no labels to choose by; take it out"
NO_REPOSITORY = (
    "has no meaning here, since only rules of azure about labels and comments have to name one; take it out"
)
NO_REVIEW = (
    "has no meaning here, since it belongs to the action review_submitted of pull requests; take it out"
)
POSITIVE = "needs at least one label in one of them"
LABELS = "allowed is a label's name"
ACTION = "one of labeled, opened, synchronize, reopened, review_submitted, closed"
STATES = "one of approved, changes_requested, commented"
NUMBER = "allowed is a whole number from 1 to 9007199254740991, or no number for every one"
FLAG = "allowed is true or false"
ONE = "allowed is one of the two"
FOLDER = "allowed is the path of a folder"
SKILL = "allowed is a skill's name: 1 to 64 of a-z, 0-9, - and _, a letter or digit at both ends"
LINE = "allowed is one line without a slash before it or blanks around it"
E_ACUTE = r"\xe9"
TASK = "allowed is a text of at most 262144 bytes, with no control characters but tabs and line ends"
REPOSITORY = "allowed is the name of a repository, without a slash: work items of azure belong to none"
AFTER = (
    "allowed is an existing date and time with its own zone, such as 2026-09-01T09:00:00Z or"
    " 2026-09-01T09:00+02:00"
)
SECRETS = 'allowed is an object of 1 to 16 references by variable, such as {"TOKEN": "op://vault/item"}'
VARIABLE = "allowed is a variable's name: letters, digits, underscores, no digit in front, not __proto__"
REFERENCE = (
    "has a reference that is not allowed; allowed is a text without blanks around it that does not begin with"
    " a hyphen"
)

REFUSED = [
    (5, f" is 5; {OBJECT}"),
    ({"run": {"kind": "github", "flow": "fix"}}, f": on is missing; {OBJECT}"),
    ({"on": {"type": "label", "any": ["a"]}}, f": run is missing; {OBJECT}"),
    ({"on": [], "run": {"kind": "github", "flow": "fix"}}, f": on is a list of 0; {OBJECT}"),
    (forge({"type": "Label"}), f": on.type is 'Label'; {TYPE}"),
    (forge({"type": GONE}), f": on.type is missing; {TYPE}"),
    (forge({"type": ["cron"]}), f": on.type is ['cron']; {TYPE}"),
    (forge({"type": "disarmed"}), f": on.type is 'disarmed', and what is spent keeps its type; {TYPE}"),
    (cron(kind="github"), ": run.kind is 'github'; allowed is local where on.type is cron"),
    (
        forge(kind="local"),
        ": run.kind is 'local'; allowed is one of github, gitlab, forgejo, azure where on.type is label",
    ),
    (
        entry({"type": "issue", "action": ["closed"]}, {"kind": "azure", "flow": "fix"}),
        ": run.kind is 'azure'; allowed is one of github, gitlab, forgejo where on.type is issue",
    ),
    (
        forge(kind=GONE),
        ": run.kind is missing; allowed is one of github, gitlab, forgejo, azure where on.type is label",
    ),
    (cron({"id": GONE}), f": on.id is missing; {ID}"),
    (cron({"id": ""}), f": on.id is ''; {ID}"),
    (cron({"id": "a:b"}), f": on.id is 'a:b'; {ID}"),
    (cron({"id": "x" * 256}), f": on.id is '{'x' * 96}...; {ID}"),
    (cron({"id": "a\n"}), f": on.id is 'a\\n'; {ID}"),
    (cron({"id": "a\u0663"}), f": on.id is 'a\\u0663'; {ID}"),
    (
        cron({"pattern": " "}),
        f": on.pattern is ' '; {PATTERN}",
    ),
    (
        cron({"pattern": GONE, "patern": "0 3 * * *"}),
        f": on.pattern is missing (is 'patern' a slip for it?); {PATTERN}",
    ),
    (cron({"tz": "Mars/Phobos"}), f": on.tz is 'Mars/Phobos'; {ZONE}"),
    (cron({"tz": None}), f": on.tz is null; {ZONE}"),
    (cron({"tz": "UTC+2"}), f": on.tz is 'UTC+2'; {ZONE}; for a fixed distance Etc/GMT-2, {TURNED}"),
    (cron({"tz": "-05:00"}), f": on.tz is '-05:00'; {ZONE}; for a fixed distance Etc/GMT+5, {TURNED}"),
    (cron({"tz": "GMT-14"}), f": on.tz is 'GMT-14'; {ZONE}"),
    (cron({"tz": "+05:30"}), f": on.tz is '+05:30'; {ZONE}"),
    (cron({"none": []}), f": on.none {NO_LABELS}"),
    (cron({"once": False}), f": on.once {CLOSING}"),
    (
        forge({"any": [], "none": ["a"]}),
        f": on.any is missing or empty, and so is all; a rule about labels {POSITIVE}",
    ),
    (forge({"any": "ai"}), ": on.any is 'ai'; allowed is a list, each item a label's name"),
    (forge({"any": ["a", " "]}), f": on.any[1] is ' '; {LABELS}"),
    (
        forge({"reviewState": ["approved"]}),
        f": on.reviewState {NO_REVIEW}",
    ),
    (forge({"disarmed": {"at": "x"}}), f": on.disarmed {CLOSING}"),
    (comment({"phrase": " "}), ": on.phrase is ' '; allowed is a text that calls, such as \"@pi\""),
    (pull("opened", "merged"), f": on.action[1] is 'merged'; allowed is {ACTION}"),
    (pull(action=GONE), f": on.action is missing; allowed is a list, each item {ACTION}"),
    (pull(action="opened"), f": on.action is 'opened'; allowed is a list, each item {ACTION}"),
    (pull(), f": on.action is an empty list; allowed is at least {ACTION}"),
    (
        pull("opened", "closed"),
        ": on.action is ['opened', 'closed']; closed stands alone, in a rule of its own",
    ),
    (pull("closed", kind="azure"), ": on.action[0] is 'closed'; allowed is one of created, updated"),
    (
        pull("labeled", "opened", none=["a"]),
        f": on.any is missing or empty, and so is all; the action labeled {POSITIVE}",
    ),
    (
        pull("label_updated", kind="forgejo"),
        f": on.any is missing or empty, and so is all; the action label_updated {POSITIVE}",
    ),
    (pull("created", kind="azure", all=["a"]), f": on.all {NO_LABELS}"),
    (pull("closed", any=["a"]), f": on.any {NO_LABELS}"),
    (issue(all=None), f": on.all {NO_LABELS}"),
    (
        pull("approved", kind="gitlab", reviewState=["approved"]),
        ": on.reviewState has no meaning here, since only github tells the state of a review; take it out",
    ),
    (
        pull("opened", reviewState=["approved"]),
        ": on.reviewState has no meaning here, since it belongs to the action review_submitted; take it out",
    ),
    (
        pull("review_submitted", reviewState=["APPROVED"]),
        f": on.reviewState[0] is 'APPROVED'; allowed is {STATES}",
    ),
    (
        pull("review_submitted", reviewState=[]),
        f": on.reviewState is an empty list; allowed is at least {STATES}, or no reviewState",
    ),
    (issue(number=True), f": on.number is true; {NUMBER}"),
    (issue(number=2**53), f": on.number is 9007199254740992; {NUMBER}"),
    (pull("opened", number=4), f": on.number {CLOSING}"),
    (issue(number=4, once=1), f": on.once is 1; {FLAG}"),
    (issue(once=True), ": on.once is true without a number; add the number of the one that it waits for"),
    (issue({"replicas": 2}, number=4, once=True), f": on.once stands beside run.replicas; {ONE}"),
    (
        issue({"waitFor": [{"profile": "a"}]}, number=4, once=True),
        f": run.waitFor stands beside on.once; {ONE}",
    ),
    (
        issue(number=4, once=False, disarmed={"at": "x"}),
        ': on.disarmed stands without "once": true; only what runs once can be spent',
    ),
    (issue(number=4, once=True, disarmed=[]), ': on.disarmed is []; allowed is {"at": INSTANT, "jobId": ID}'),
    (
        issue(number=4, once=True, disarmed={"at": " "}),
        ": on.disarmed.at is ' '; allowed is the instant at which it was spent",
    ),
    (
        issue(number=4, once=True, disarmed={"at": "x", "jobId": None}),
        ": on.disarmed.jobId is null; allowed is the id of the job that it was spent by, or no jobId",
    ),
    (
        issue(number=4, once=True, disarmed={"at": "x", "by": "me"}),
        ": on.disarmed has the key 'by'; allowed are at and jobId",
    ),
    (cron(folder=GONE), f": run.folder is missing; {FOLDER}"),
    (cron(folder=" "), f": run.folder is ' '; {FOLDER}"),
    (cron(folder="/srv/\0"), f": run.folder is '/srv/\\x00', which holds half a character or NUL; {FOLDER}"),
    (cron(flow=GONE), ": run.flow is missing; add a flow, or a command instead"),
    (forge(command="x"), f": run.flow stands beside command; {ONE}"),
    (cron(flow=" audit"), ": run.flow is ' audit'; allowed is one line without blanks around it"),
    (forge(flow="Fix"), f": run.flow is 'Fix'; {SKILL}"),
    (forge(flow="fix\n"), f": run.flow is 'fix\\n'; {SKILL}"),
    (
        forge(flow="x" * 65),
        f": run.flow is 'xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx'; {SKILL}",
    ),
    (forge(flow=GONE, command="/x"), f": run.command is '/x'; {LINE}"),
    (forge(flow=GONE, command="a\x1bb"), f": run.command is 'a\\x1bb'; {LINE}"),
    (cron(flow=GONE, command="x"), f": run.task stands beside command; {ONE}"),
    (forge(flow=GONE, command="x", instructions="y"), f": run.instructions stands beside command; {ONE}"),
    (forge(flow=GONE, command="x", resume=True), f': run.command stands beside "resume": true; {ONE}'),
    (cron(task=GONE), f": run.task is missing; {TASK}"),
    (
        cron(task="\u00e9" * 131073),
        f": run.task is '{E_ACUTE * 24}...; {TASK}",
    ),
    (cron(task="a\x07"), f": run.task is 'a\\x07'; {TASK}"),
    (cron(task=None), f": run.task is null; {TASK}"),
    (cron(github="true"), f": run.github is 'true'; {FLAG}"),
    (cron(provider="a b"), f": run.provider is 'a b'; {TOKEN}"),
    (cron(model=None), f": run.model is null; {TOKEN}"),
    (cron(maxTurns=True), ": run.maxTurns is true; allowed is a whole number from 1 to 2147483647"),
    (forge(packages=0), f": run.packages is 0; {FLAG}"),
    (
        forge(image="--privileged"),
        ": run.image is '--privileged'; allowed is an image reference such as pi-job:latest",
    ),
    (forge(skillsDir=" /x"), f": run.skillsDir is ' /x'; {FOLDER}, without blanks around it"),
    (
        cron(instructions="x"),
        ": run.instructions has no meaning here, since a schedule has a task instead; take it out",
    ),
    (
        forge(instructions="x" * 2001),
        f": run.instructions is '{'x' * 96}...; allowed is a text of at most 2000 characters",
    ),
    (cron(resume=True), ": run.resume is true; allowed is false, since a schedule has no session to resume"),
    (cron(resume="false"), f": run.resume is 'false'; {FLAG}"),
    (forge(resume=True, replicas=2), f': run.replicas stands beside "resume": true; {ONE}'),
    (forge(resume=True, secrets={"A": "r"}), f': run.secrets stands beside "resume": true; {ONE}'),
    (
        cron(replicas=2),
        ": run.replicas has no meaning here, since one folder has one job at a time; take it out",
    ),
    (forge(replicas=4), ": run.replicas is 4; allowed is 2 or 3"),
    (forge(replicas=True), ": run.replicas is true; allowed is 2 or 3"),
    (forge(replicas=2, waitFor=[{"profile": "a"}]), f": run.waitFor stands beside run.replicas; {ONE}"),
    (forge(kind="azure"), f": run.repository is missing; {REPOSITORY}"),
    (forge(kind="azure", repository="a/b"), f": run.repository is 'a/b'; {REPOSITORY}"),
    (forge(repository="a"), f": run.repository {NO_REPOSITORY}"),
    (pull("created", kind="azure", run={"repository": "a"}), f": run.repository {NO_REPOSITORY}"),
    (
        cron(repository="a"),
        ": run.repository has no meaning here, since a schedule works in a folder; take it out",
    ),
    (forge(secrets={}), f": run.secrets has 0 entries; {SECRETS}"),
    (forge(secrets={f"S{i}": "r" for i in range(17)}), f": run.secrets has 17 entries; {SECRETS}"),
    (forge(secrets="op://x"), f": run.secrets is no object; {SECRETS}"),
    (forge(secrets={"1A": "r"}), f": run.secrets[0] has a name that is not allowed; {VARIABLE}"),
    (forge(secrets={"A\n": "r"}), f": run.secrets[0] has a name that is not allowed; {VARIABLE}"),
    (forge(secrets={"A\u0663": "r"}), f": run.secrets[0] has a name that is not allowed; {VARIABLE}"),
    (forge(secrets={"__proto__": "r"}), f": run.secrets[0] has a name that is not allowed; {VARIABLE}"),
    (forge(secrets={"A": "-r"}), f": run.secrets.A {REFERENCE}"),
    (forge(secrets={"A": " r"}), f": run.secrets.A {REFERENCE}"),
    (forge(secrets={"A": 5}), f": run.secrets.A {REFERENCE}"),
    (
        forge(secretsProfile="prod"),
        ": run.secretsProfile stands without secrets; add secrets, or take it out",
    ),
    (forge(secrets={"A": "r"}, secretsProfile="a b"), f": run.secretsProfile is 'a b'; {NAMED}"),
    (
        forge(waitFor=[{"profile": x} for x in "abcde"]),
        ": run.waitFor has 5 conditions; allowed are 1 to 4; leave the field out to wait for nothing",
    ),
    (cron(wait_for=[{"profile": "a"}]), ": run has the key 'wait_for'; it is spelled waitFor"),
    (cron({"WaitFor": []}), ": on has the key 'WaitFor'; conditions to wait for stand in run.waitFor"),
    (
        cron(waitFor=[{"after": "2026-02-30T09:00Z"}]),
        f": run.waitFor[0] has after '2026-02-30T09:00Z'; {AFTER}",
    ),
    (forge({"any": ["\ud800"]}), f": on.any[0] is '\\ud800', which holds half a character or NUL; {LABELS}"),
    (cron(task="\udfff"), f": run.task is '\\udfff', which holds half a character or NUL; {TASK}"),
]


@pytest.mark.parametrize(("row", "text"), REFUSED, ids=[text for _, text in REFUSED])
def test_what_is_refused_is_said_in_words_and_nothing_else(row, text):
    on = row.get("on") if isinstance(row, dict) else None
    is_named = isinstance(on, dict) and (on.get("type"), on.get("id")) == ("cron", "nightly")

    assert problems_of(row) == [f"{CRON if is_named else AT}{text}"]


@pytest.mark.parametrize("pattern", ["61 3 * * *", "0 0 30 2 *", "0 0 3 * * * *", "x", "@rarely"])
def test_what_is_wrong_with_a_pattern_is_said_as_schedules_do(pattern):
    text = problem_of(pattern, schedule_id="nightly", tz=None)

    assert text
    assert problems_of(cron({"pattern": pattern})) == [f"{CRON}: on.pattern {text}"]


def test_no_two_schedules_have_one_id():
    (said,) = problems_of(cron(), forge(), cron({"pattern": "@daily"}))

    found = "on.id is 'nightly', as that of the trigger at index 0"
    assert said == f"{CRON.replace('0', '2')}: {found}; allowed is an id of its own for each schedule"


def test_no_forge_has_two_rules_about_comments():
    (said,) = problems_of(comment(kind="gitlab"), comment(), comment({"phrase": "@other"}))

    found = "run.kind is 'github', as that of the trigger at index 1"
    assert said == f"trigger at index 2: {found}; allowed is one rule about comments for each forge"


@pytest.mark.parametrize(
    "nested",
    [
        lambda entry: [entry],
        lambda entry: {"triggers": entry},
        lambda entry: {"triggers": [[entry]]},
        lambda entry: {"triggers": [{**entry, "run": [entry["run"]]}]},
        lambda entry: {"triggers": [{**entry, "on": [entry]}]},
    ],
)
def test_of_what_stands_in_a_wrong_place_nothing_is_shown(nested):
    """A list or an object too many: the reference of a secret may be in it, or the secret itself."""
    content = json.dumps(nested({"run": {"secrets": {"T": "canary"}}, "on": {"type": "label"}})).encode()

    with pytest.raises(OperatorFileError, match=r"is a list of 1;|is an object;|holds a list of 1;") as error:
        parse(content, name=NAME)
    assert "canary" not in str(error.value)


NO_FILE = {
    "null": (b"null", 'holds null; allowed is an object such as {"triggers": []}'),
    "list": (b"[]", 'holds a list of 0; allowed is an object such as {"triggers": []}'),
    "empty": (b"{}", 'triggers is missing; add "triggers": [], with an object for each in it'),
    "no list": (b'{"triggers": {}}', "triggers is an object; allowed is a list of objects"),
    "too many": (
        b'{"triggers": [' + b"5," * 10_000 + b"5]}",
        "triggers has 10001 entries; allowed are 10000",
    ),
    "a key twice": (
        b'{"triggers": [{"on": {"type": "label"}, "run": {"flow": "a", "\\u0066low": "b"}}]}',
        "has the key 'flow' twice in one object; write it once (triggers[0].run)",
    ),
    "no number": (b'{"triggers": [NaN]}', "holds NaN, which is no number of JSON"),
    "digits": (b'{"triggers": [' + b"9" * 5000 + b"]}", "holds a number that is too long"),
    "deep": (b'{"triggers": ' + b"[" * 100_000 + b"]" * 100_000 + b"}", "is nested deeper than 32 levels"),
    "latin-1": (b'{"triggers": ["\xff"]}', "is not UTF-8 text (byte 15); save it as UTF-8"),
    "50 MB": (b"[" * 50_000_000, "has 50000000 bytes; allowed are 8388608"),
}


@pytest.mark.parametrize(("content", "text"), NO_FILE.values(), ids=NO_FILE)
def test_a_file_that_is_none(content, text):
    assert said_of(content) == [text]


def test_a_number_beyond_all_is_refused_like_another():
    content = file_of(issue(number=7)).replace(b"7", b"1e999")

    assert said_of(content) == [f"{AT}: on.number is inf; {NUMBER}"]


def test_all_that_is_wrong_is_said_at_once_each_with_its_entry():
    rows = [
        5,
        forge({"type": "labels"}, flow="A", image=" "),
        cron({"pattern": "x"}, folder=5, packages=1, waitfor=[]),
        {"on": {"type": "issue", "action": []}},
        pull("opened", kind="bitbucket", number=0, reviewState=[1], run={"resume": "no"}),
        cron(),
        cron(),
        cron({"type": "Cron"}, folder=GONE, github=5, instructions="x"),
    ]
    with pytest.raises(OperatorFileError) as error:
        parse(file_of(*rows), name=NAME)

    third = 'trigger at index 2 (cron trigger "nightly")'
    assert error.value.exit_code == 2
    assert error.value.places == (
        AT,
        *("trigger at index 1: on.type", "trigger at index 1: run.flow", "trigger at index 1: run.image"),
        *(f"{third}: {field}" for field in ("run", "on.pattern", "run.folder", "run.packages")),
        *("trigger at index 3: run", "trigger at index 3: on.action"),
        *(f"trigger at index 4: {field}" for field in ("run.kind", "on.reviewState", "run.resume")),
        *(
            f"trigger at index 7: {field}"
            for field in ("on.type", "run.instructions", "run.folder", "run.github")
        ),
        *(f'trigger at index {index} (cron trigger "nightly"): on.id' for index in (5, 6)),
    )


def test_a_secret_is_not_shown():
    with pytest.raises(OperatorFileError) as error:
        parse(
            file_of(
                forge(secrets={"A": "-hunter2", "B": ["hunter2"], "hunter2://": "C"}),
                forge(secrets="hunter2"),
            ),
            name=NAME,
        )

    assert len(error.value.problems) == 4
    assert "hunter2" not in str(error.value)


@pytest.mark.parametrize(
    "name",
    [
        *(
            "GITHUB_TOKEN",
            "GITLAB_HOST",
            "FORGEJO_HOST",
            "AZURE_DEVOPS_ORG_URL",
            "WEBHOOK_SECRET",
            "https_proxy",
        ),
        *(
            "PI_MODEL",
            "HOME",
            "GOOGLE_APPLICATION_CREDENTIALS",
            "OPENAI_BASE_URL",
            "ANTHROPIC_CUSTOM_HEADERS",
        ),
        "AWS_ENDPOINT_URL_S3",
    ],
)
def test_a_secret_takes_no_name_that_means_something(name):
    (said,) = problems_of(cron(secrets={name: "op://vault/item"}))

    assert (
        said
        == f"{CRON}: run.secrets.{name} is a name that the worker or the job uses itself; choose another one"
    )
    assert parse(file_of(cron(secrets={f"MY_{name}X": "op://vault/item"})), name=NAME)
