from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runs.outcome import Reason, Refusal
from runs.request import JobUser
from runs.workspace.jobuser import Account, file_owner, git_account, job_user, mend_unmappable

ROOT = Account(0, 0)
IDS = st.integers(min_value=0, max_value=2**31)
ACCOUNTS = st.builds(Account, IDS, IDS)


@pytest.mark.parametrize(
    ("worker", "owner", "expected"),
    [
        pytest.param(Account(1000, 1000), Account(1000, 1000), JobUser(1000, 1000), id="worker's own folder"),
        pytest.param(Account(1000, 1000), Account(5, 5), JobUser(1000, 1000), id="worker, another's folder"),
        pytest.param(Account(1001, 1001), Account(1001, 1001), None, id="worker is the image's user"),
        pytest.param(Account(1001, 50), ROOT, None, id="worker is the image's user with another group"),
        pytest.param(ROOT, Account(1002, 1003), JobUser(1002, 1003), id="root worker, ordinary owner"),
        pytest.param(ROOT, Account(1001, 1001), None, id="root worker, the image's user owns it"),
    ],
)
def test_the_job_runs_as(worker: Account, owner: Account, expected: JobUser | None) -> None:
    assert job_user(worker=worker, owner=owner) == expected


@pytest.mark.parametrize(
    ("worker", "owner"),
    [
        pytest.param(ROOT, ROOT, id="root's folder under a root worker"),
        pytest.param(ROOT, Account(1000, 0), id="root's group under a root worker"),
        pytest.param(Account(1000, 0), Account(1000, 0), id="worker in root's group"),
    ],
)
def test_nothing_runs_as_root_and_the_person_is_told_what_to_do(worker: Account, owner: Account) -> None:
    assert job_user(worker=worker, owner=owner) == Refusal(Reason.JOB_USER_UNMAPPABLE)

    sentence = mend_unmappable("/srv/site", worker=worker, owner=owner)

    assert "chown" in sentence if worker == ROOT else "run the worker as" in sentence


@given(ACCOUNTS, ACCOUNTS)
def test_no_account_makes_a_job_run_as_root(worker: Account, owner: Account) -> None:
    user = job_user(worker=worker, owner=owner)

    if not isinstance(user, Refusal):
        assert file_owner(user).uid != 0
        assert file_owner(user).gid != 0


@given(ACCOUNTS, ACCOUNTS)
def test_git_gives_up_root_and_nothing_else(worker: Account, owner: Account) -> None:
    account = git_account(worker=worker, owner=owner)

    assert account == (owner if worker.uid == 0 and owner.uid != 0 else None)
