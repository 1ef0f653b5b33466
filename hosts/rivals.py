"""Who else goes by this host's name, or by its host-id, as its beats meet them."""

from __future__ import annotations

from pidispatch_site import log


class Rivals:
    """Keeps what the beats met and says so once each way; heard by one thread at a time, read by any.

    One state directory has one living boot, by its lock: another boot of our host-id that lives is that of a
    copy, under whatever name. Its beats fall between ours, so that it counts for `lasting_ms` after one.
    """

    def __init__(self, *, lasting_ms: int) -> None:
        self._lasting_ms = lasting_ms
        self._boot_met_at_ms = 0
        self._has_our_name = ""
        self._has_our_id = ""

    @property
    def is_contested(self) -> bool:
        """Whether another machine has our name or our host-id."""
        return bool(self._has_our_name or self._has_our_id)

    @property
    def boot(self) -> str:
        """The boot that has our host-id, blank when there is none."""
        return self._has_our_id

    def met(self, *, host_id: bytes, boot: bytes, now_ms: int) -> None:
        """Hear what a beat met: the other host-id that has our name, the other boot of ours; blank: none."""
        self._note_name(host_id.decode())
        if boot:
            self._boot_met_at_ms = now_ms
            self._note_id(boot.decode())
        elif not 0 <= now_ms - self._boot_met_at_ms <= self._lasting_ms:
            self._note_id("")

    def _note_name(self, host_id: str) -> None:
        before, self._has_our_name = self._has_our_name, host_id
        if host_id and not before:
            log.event("host_name_taken", otherHostId=host_id)
        elif before and not host_id:
            log.event("host_name_restored")

    def _note_id(self, boot: str) -> None:
        before, self._has_our_id = self._has_our_id, boot
        if boot and not before:
            log.event("host_id_taken", otherBoot=boot)
        elif before and not boot:
            log.event("host_id_restored")
