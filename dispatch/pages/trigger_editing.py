"""One change of the triggers file from the browser: shown first, then written as it was shown."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dispatch.console.trigger_changes import Asked, Kind, difference
from dispatch.console.trigger_edit import Edited, carry_out
from dispatch.console.trigger_places import Machine, machine
from dispatch.console.trigger_privilege import privileged_of, refusal, touched
from dispatch.console.triggers_file import VARIABLE
from dispatch.operator_files import strict_json
from dispatch.pages.change import lock_of, require_same
from dispatch.triggers import writing
from dispatch.triggers.editing import EMPTY
from dispatch.triggers.parse import PART, place_of
from pidispatch_site import conf
from pidispatch_site.errors import ConfigurationError

NO_FILE = (
    f"{VARIABLE} is not set for this site, so there is no triggers file to edit. Set it to the path of the"
    " file that the worker of this host reads, in the environment or the .env file of both."
)
_FOLLOWED = "Running workers of this host follow the file within seconds."
_MOVED = "The entries behind it move up by one; records name rules for forges by their place."
_LAYOUT = "The rest of the file means the same and will be written anew, indented by two spaces."
_SAME = "Nothing to change: the entry is like that already."
_ENTRY = "The entry"


@dataclass(slots=True)
class Locked(Asked):
    """A change of the file as it was when somebody looked; `lock` None: as it is.

    Without `is_privileged` it is refused where it touches what is privileged of the entry that it replaces.
    `seen` digests the file, `others` counts the entries behind, once it has been worked out.
    """

    lock: str | None = None
    is_privileged: bool = False
    seen: str = ""
    others: int = 0

    def change(self, document: Any) -> Any | None:
        """As `Asked.change`; ChangedMeanwhileError where the file is another one.

        What is judged here is what is written.
        """
        self.seen = lock_of(document)
        if self.lock is not None:
            require_same(document, self.lock, what="triggers file")
        # Not super(): a class with slots is made anew.
        changed = Asked.change(self, document)
        self.others = len(document[PART]) - self.index - 1
        keys = touched(self.before, self.after)
        if keys and not self.is_privileged and self.kind is not Kind.REMOVED:
            raise ConfigurationError(refusal(keys, of_privileged=bool(privileged_of(self.before))))
        return changed


@dataclass(frozen=True, slots=True, kw_only=True)
class Editor:
    """The triggers file of this host, as somebody edits it.

    Errors are ConfigurationError, with everything that is wrong, or OperationalError: nothing was changed.
    """

    path: Path
    this: Machine
    is_privileged: bool

    @property
    def is_there(self) -> bool:
        """Whether there is a file; one that cannot be looked at is told when it is read."""
        try:
            return self.path.exists()
        except OSError:
            return True

    def document(self) -> Any:
        """Read the file's JSON; of a file that is not there an empty one."""
        return writing.document_of(self.path) if self.is_there else EMPTY

    def entry(self, index: int) -> tuple[Any, str]:
        """Find an entry by its place, with the lock of the file that it stands in."""
        document = writing.document_of(self.path)
        entries = document.get(PART) if isinstance(document, dict) else None
        if not isinstance(entries, list) or index >= len(entries):
            raise ConfigurationError(
                f"The triggers file has no entry at place {index}; look at the list again."
            )
        return entries[index], lock_of(document)

    def keeps_run(self, before: Any) -> bool:
        """Tell whether only `on` of this entry may be changed."""
        return not self.is_privileged and bool(privileged_of(before))

    def change(self, kind: Kind, index: int | None, entry: Any, *, lock: str | None) -> Locked:
        """Ask for a change of the entry at this place; None: of a new one."""
        place = None if index is None else f"index:{index}"
        return Locked(kind, place, entry, lock=lock, is_privileged=self.is_privileged)

    def shown(self, asked: Locked, *, create: bool = False) -> Edited:
        """Tell what it would be; writes nothing."""
        return carry_out(asked, self.path, self.this, is_written=False, create=create)

    def written(self, asked: Locked, *, create: bool = False) -> Edited:
        """Write it."""
        return carry_out(asked, self.path, self.this, is_written=True, create=create)


def editor_of(environment: Mapping[str, str], *, is_privileged: bool) -> Editor:
    """Find the file to edit; ConfigurationError where none is named."""
    path = conf.one(VARIABLE, environment)
    if path is None:
        raise ConfigurationError(NO_FILE)
    return Editor(path=path, this=machine(environment), is_privileged=is_privileged)


def entry_of_json(text: str) -> dict[str, Any]:
    """Read an entry as it was typed; ConfigurationError for what is none."""
    entry = strict_json.load(text.encode("utf-8", "surrogatepass"), name=_ENTRY)
    if not isinstance(entry, dict):
        raise ConfigurationError(f'{_ENTRY} is no object; allowed is {{"on": …, "run": …}}')
    return entry


def difference_of(asked: Asked, edited: Edited, path: Path) -> tuple[str, tuple[str, ...]]:
    """Write the file before and after, blank where it stays the same; and sentences on its layout."""
    if not asked.is_other:
        return "", ()
    text = difference(edited.written.before, edited.written.after, name=str(path))
    # A blank line of the file has a sign before it.
    lines, _, layout = text.partition("\n\n")
    return lines, (_LAYOUT,) if layout else ()


def said_before(asked: Locked) -> tuple[str, ...]:
    """Say what will be done, and whom it affects."""
    if not asked.is_other:
        return (_SAME,)
    what = place_of(asked.index, asked.before if asked.kind is Kind.REMOVED else asked.after)
    said = [f"{what[0].upper()}{what[1:]} will be {asked.kind.value}.", _FOLLOWED]
    said += [_MOVED] if asked.kind is Kind.REMOVED and asked.others else []
    return tuple(said)
