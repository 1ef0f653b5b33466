"""Removes a folder that a job could write to: whatever it left there, and nothing outside (F29).

What a job may leave: folders of mode 0000, files of other users, links to anywhere, names of any bytes,
trees thousands of levels deep. So nothing is followed, nothing recurses, and the number of open files is
fixed: each inner folder is first moved up beside the others, then emptied.
"""

from __future__ import annotations

import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

# Linux opens a folder without any right on it; elsewhere the mode is changed by name.
_O_PATH: int = getattr(os, "O_PATH", 0)
_FOLDER = os.O_DIRECTORY | os.O_CLOEXEC


def remove_tree(path: Path) -> int:
    """Remove `path` and all below it; answers how many entries could not be removed (0 = gone). Never raises.

    Not there counts as gone. A link in the place of the folder is removed itself.
    """
    try:
        with _opened(path.parent) as parent:
            if not _is_folder(path.name, parent):
                os.unlink(path.name, dir_fd=parent)
                return 0
            return _remove_folder(path.name, parent)
    except FileNotFoundError:
        return 0
    except OSError:
        return 1


def _remove_folder(name: str, parent: int) -> int:
    _make_accessible(name, parent)
    stuck: set[str] = set()
    with _opened(name, parent) as top:
        while _empty_once(top, stuck):
            pass
    if not stuck:
        os.rmdir(name, dir_fd=parent)
    return len(stuck)


def _empty_once(top: int, stuck: set[str]) -> bool:
    """Go through the folder once; answers whether another round may find something to do.

    A listing read while entries come and go may miss some, so rounds go on until one finds only stuck ones.
    """
    found = False
    with os.scandir(top) as entries:
        for entry in entries:
            if entry.name in stuck:
                continue
            found = True
            try:
                if entry.is_dir(follow_symlinks=False):
                    _remove_inner(entry.name, top)
                else:
                    os.unlink(entry.name, dir_fd=top)
            except OSError:
                stuck.add(entry.name)
    return found


def _remove_inner(name: str, top: int) -> None:
    """Empty one folder, its own folders moved up into `top`, and remove it; raises when something is left."""
    _make_accessible(name, top)
    with _opened(name, top) as inner:
        moved = True
        while moved:
            moved = False
            with os.scandir(inner) as entries:
                for entry in entries:
                    moved |= _move_or_unlink(entry, inner, top)
    os.rmdir(name, dir_fd=top)


def _move_or_unlink(entry: os.DirEntry[str], inner: int, top: int) -> bool:
    """Take one entry out of `inner`; answers whether that worked."""
    with suppress(OSError):
        if entry.is_dir(follow_symlinks=False):
            # A folder can only be moved by who may write it: its `..` changes.
            _make_accessible(entry.name, inner)
            os.rename(entry.name, f"{secrets.token_hex(8)}.moved", src_dir_fd=inner, dst_dir_fd=top)
        else:
            os.unlink(entry.name, dir_fd=inner)
        return True
    return False


def _make_accessible(name: str, parent: int) -> None:
    """Give this process every right on a folder; whose it is not keeps its mode."""
    with suppress(OSError):
        if not _O_PATH:
            os.chmod(name, 0o700, dir_fd=parent, follow_symlinks=False)
            return
        # Through the descriptor, so that a link put in its place meanwhile changes nobody else's mode.
        with _opened(name, parent, flags=_O_PATH) as folder:
            Path(f"/proc/self/fd/{folder}").chmod(0o700)


def _is_folder(name: str, parent: int) -> bool:
    return stat.S_ISDIR(os.stat(name, dir_fd=parent, follow_symlinks=False).st_mode)


@contextmanager
def _opened(place: str | Path, parent: int | None = None, *, flags: int = os.O_RDONLY) -> Iterator[int]:
    """Open a folder; only one given without `parent` may be reached through a link."""
    no_follow = 0 if parent is None else os.O_NOFOLLOW
    descriptor = os.open(place, flags | _FOLDER | no_follow, dir_fd=parent)
    try:
        yield descriptor
    finally:
        os.close(descriptor)
