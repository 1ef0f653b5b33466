"""The operator's files of a large user as one host has them, and what the hosts of its fleet tell of them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from dispatch.console.adoption import digest_of
from dispatch.console.triggers_file import TriggersFile, loaded
from dispatch.operator_files import overlay, pause_windows, scoped_limits
from dispatch.schedules.fingerprint import fingerprint
from tests.harness.long_history import SCHEDULES, schedule_id

#: Schedules make up the triggers file, with those that are served nowhere, and rules for forges.
UNSERVED, RULES, WINDOWS, LIMITS = 10, 50, 100, 200
_FOLDERS, _PROFILES = 40, 20
_VARIABLES = {
    "triggers": "PI_TRIGGERS_FILE",
    "windows": "PI_PAUSE_WINDOWS_FILE",
    "limits": "PI_SCOPED_LIMITS_FILE",
    "settings": "PI_SETTINGS_FILE",
}


class Files:
    """They stand in `folder`; `environment` is what a host is told of them."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir()
        self._paths = {name: folder / f"{name}.json" for name in _VARIABLES}
        self._places = [folder / f"repository-{number:02}" for number in range(_FOLDERS)]
        for place in self._places:
            place.mkdir()
        contents = {
            "triggers": {"triggers": [*self._schedules(), *map(_rule, range(RULES))]},
            "windows": {"windows": [self._window(number) for number in range(WINDOWS)]},
            "limits": {"version": 1, "limits": [self._limit(number) for number in range(LIMITS)]},
            "settings": _SETTINGS,
        }
        for name, content in contents.items():
            self._paths[name].write_text(json.dumps(content, indent=2) + "\n")
        pause_windows.parse(self._paths["windows"].read_bytes(), name="windows")
        scoped_limits.parse(self._paths["limits"].read_bytes(), name="limits")
        overlay.parse(self._paths["settings"].read_bytes(), name="settings")

    @property
    def environment(self) -> dict[str, str]:
        return {variable: str(self._paths[name]) for name, variable in _VARIABLES.items()}

    def triggers(self, host: str) -> TriggersFile:
        """Load the triggers file as this host does; AssertionError if it does not load."""
        found = loaded(self._paths["triggers"], zone="UTC", name=host)
        assert not found.trouble, (found.problems, found.unservable)
        return found

    def told(self, host: str) -> Mapping[str, str]:
        """What the beats of a host that has taken them over tell of them, by the registry's names."""
        file = self.triggers(host)
        digests = {name: digest_of(path.read_bytes()) for name, path in self._paths.items()}
        return {
            "fpTriggers": file.digest,
            "fpCron": fingerprint(file.triggers.cron if file.triggers else None, zone="UTC"),
            "cronCount": str(SCHEDULES + UNSERVED),
            "fpPause": digests["windows"],
            "fpLimits": digests["limits"],
            "fpSettings": digests["settings"],
        }

    def _schedules(self) -> Iterator[dict[str, Any]]:
        """Most of each few minutes or hours; the last ones on folders that are not on this host."""
        for number in range(SCHEDULES + UNSERVED):
            is_here = number < SCHEDULES
            folder = str(self._places[number % _FOLDERS]) if is_here else f"/srv/elsewhere-{number}"
            minute, every = number % 60, (f"*/{5 + number % 20}", "*", f"{number % 24}")[number % 3]
            pattern = f"{every} * * * *" if every.startswith("*/") else f"{minute} {every} * * *"
            yield {
                "on": {"type": "cron", "id": schedule_id(number), "pattern": pattern, "tz": "UTC"},
                "run": {"kind": "local", "folder": folder, "flow": "audit", "task": "Look through it."},
            }

    def _window(self, number: int) -> dict[str, Any]:
        scope = str(self._places[number % _FOLDERS]) if number % 2 else f"octo/repository-{number}"
        hours: dict[str, Any] = {"allDay": True} if number % 5 == 0 else {"from": "22:30", "to": "06:00"}
        days = {"days": ["sat", "sun"]} if number % 3 == 0 else {"dateFrom": "2026-01-01"}
        return {"scope": scope, **hours, **days, "tz": "Europe/London"}

    def _limit(self, number: int) -> dict[str, Any]:
        if number < _FOLDERS:
            return {"scope": str(self._places[number]), "day": 20, "week": 100, "month": 300}
        return {"scope": f"octo/repository-{number}", "day": 5 + number % 9, "concurrent": 1 + number % 4}


_SETTINGS = {
    "maxTurns": 40,
    "secretProfiles": {f"profile-{number}": f"/srv/secrets/{number}" for number in range(_PROFILES)},
}


def _rule(number: int) -> dict[str, Any]:
    """A rule for a forge; of each five one is for one issue, once."""
    if number % 5 == 0:
        on: dict[str, Any] = {"type": "issue", "action": ["closed"], "number": number + 1, "once": True}
    else:
        on = {"type": "label", "any": [f"agent-{number}", "please"]}
    return {"on": on, "run": {"kind": "github", "flow": f"fix-{number}"}}
