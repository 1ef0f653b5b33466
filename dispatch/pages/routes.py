"""Where the console's pages are, below the admin's own address: route, name and view, a line a page."""

from __future__ import annotations

from dispatch.pages import (
    banner,
    cancel,
    fleet,
    fleet_actions,
    fleet_reroute,
    log,
    operation_page,
    overview,
    queue,
    rerun,
    schedule_actions,
    switch,
    switch_forms,
    triggers,
)
from dispatch.pages.access import View

ROUTES: tuple[tuple[str, str, View], ...] = (
    ("fleet/", "console_fleet", fleet.show),
    ("fleet/live/", "console_fleet_live", fleet.show_live),
    ("fleet/host/<str:host>/", "console_fleet_host", fleet.show_host),
    ("fleet/host/<str:host>/live/", "console_fleet_host_live", fleet.show_host_live),
    ("fleet/host/<str:host>/drain/", "console_host_drain", fleet_actions.ask_drain),
    ("fleet/host/<str:host>/undrain/", "console_host_undrain", fleet_actions.ask_undrain),
    ("fleet/host/<str:host>/reroute/", "console_host_reroute", fleet_reroute.show),
    ("switch/", "console_switch", switch.show),
    ("switch/state/", "console_switch_state", switch.state),
    ("switch/pause/", "console_switch_pause", switch_forms.pause),
    ("switch/resume/", "console_switch_resume", switch_forms.resume),
    ("switch/stop/", "console_switch_stop", switch_forms.stop),
    ("log/", "console_log", log.show),
    ("banner/", "console_banner", banner.show),
    ("overview/<slug:name>/", "console_overview_part", overview.part),
    ("operations/<str:operation_id>/", "console_operation", operation_page.show),
    ("operations/<str:operation_id>/progress/", "console_operation_progress", operation_page.progress),
    ("queue/", "console_queue", queue.show),
    ("queue/lists/", "console_queue_lists", queue.lists),
    ("queue/tabs/", "console_queue_tabs", queue.tabs),
    ("queue/cancel/", "console_cancel", cancel.cancel_jobs),
    ("queue/rerun/", "console_rerun", rerun.rerun),
    ("queue/job/<slug:token>/", "console_why", queue.why),
    ("queue/job/<slug:token>/now/", "console_why_now", queue.why_now),
    ("dispatch/schedule/add/", "console_trigger_add", triggers.add),
    ("dispatch/schedule/entry/<int:index>/", "console_trigger_edit", triggers.edit),
    ("dispatch/schedule/entry/<int:index>/remove/", "console_trigger_remove", triggers.remove),
    ("dispatch/schedule/run/<str:schedule_id>/", "console_schedule_run", schedule_actions.run_now),
    ("dispatch/schedule/restore/<str:schedule_id>/", "console_schedule_restore", schedule_actions.put_back),
)
