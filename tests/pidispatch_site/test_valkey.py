from __future__ import annotations

import io
import shutil
import tempfile
from pathlib import Path

import pytest
from django.core.management import call_command

from pidispatch_site import embedded
from pidispatch_site.errors import OperationalError
from pidispatch_site.places import StateDirectory


@pytest.fixture
def state(settings):
    home = Path(tempfile.mkdtemp(prefix="pd-vc-"))
    settings.PIDISPATCH_ENVIRONMENT = {"PI_STATE_DIR": str(home / "s")}
    state = StateDirectory(home / "s")
    yield state
    embedded.stop(state)
    shutil.rmtree(home)


def said(action):
    out = io.StringIO()
    call_command("valkey", action, stdout=out)
    return out.getvalue()


def test_the_server_is_shown_and_ended(state):
    embedded.start(state)
    pid = embedded.pid(state)

    assert said("status") == f"Running: process {pid}, unix://{state.path}/valkey/valkey.sock\n"
    assert said("stop") == f"The embedded Valkey server of {state.path} ended.\n"
    assert said("stop") == f"The embedded Valkey server of {state.path} was not running.\n"


def test_no_server_is_an_error_to_a_script_and_none_is_started(state):
    with pytest.raises(OperationalError, match="not running"):
        said("status")
    assert not state.path.exists()
