"""Kinds of the console's pages that the tests which follow every link judge, so that others need not."""

from __future__ import annotations

#: As `console_person.Person.kinds` has them; `test_console` fails where it has not seen one of them.
CRAWLED: frozenset[str] = frozenset(
    {
        "admin Overview",
        "admin/dispatch/schedule/add Add an entry",
        "admin/dispatch/schedule/entry/* Edit an entry",
        "admin/dispatch/schedule/entry/*/remove Remove an entry: before and after",
        "admin/dispatch/schedule/restore/* Restore a schedule",
        "admin/dispatch/schedule/run/* Run a schedule now",
        "admin/fleet/host/*/drain Drain: *",
        "admin/fleet/host/*/reroute Reroute pi-jobs@*",
        "admin/fleet/host/*/undrain Undrain: *",
        "admin/log Log",
        "admin/settings/limits Scoped limits",
        "admin/settings/limits/* Edit a scoped limit",
        "admin/settings/limits/*/remove Remove a scoped limit: before and after",
        "admin/settings/windows Pause windows",
        "admin/settings/windows/* Edit a pause window",
        "admin/settings/windows/*/remove Remove a pause window: before and after",
        "admin/switch/pause Pause the whole fleet",
        "admin/switch/resume Resume everything",
        "admin/switch/resume Resume pi-jobs@*",
    }
)
