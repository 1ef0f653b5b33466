"""What every page that shows runs does: have those of other hosts fetched, and say which are missing."""

from __future__ import annotations

from django.conf import settings

from pidispatch_site.errors import PidispatchError
from runs import merging, mirror_import


def viewed() -> str:
    """Have the fleet's news fetched for the next look, and say what this one lacks; blank when nothing.

    Never waits.
    """
    try:
        importing = mirror_import.of_process(settings.PIDISPATCH)
    except PidispatchError:
        return "This host only: its configuration does not load (`manage.py doctor` says why)."
    if importing is None:
        return merging.sentence(merging.OFF, is_declared=False)
    importing.page_viewed()
    return importing.notice()
