"""The canonical scope of a job (Q 5.3): the name under which a folder or a repository is counted and locked.

Purely textual: symbolic links and case are not resolved.
"""

from __future__ import annotations

import hashlib
import posixpath
import unicodedata

# What JavaScript's `trim` removes, which is what scopes in existing files and keys were made with.
_BLANKS = "\t\n\v\f\r \xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a"
BLANKS = _BLANKS + "\u2028\u2029\u202f\u205f\u3000\ufeff"


def canonical_folder(folder: str, *, base: str = "/") -> str | None:
    """Make a folder absolute, `..`-collapsed, without a trailing slash, NFC; None when it is blank.

    A relative folder is taken from `base`, which is absolute.
    """
    trimmed = folder.strip(BLANKS)
    if not trimmed:
        return None
    # POSIX lets two leading slashes mean something else, and normpath keeps them; here they are one place.
    path = "/" + posixpath.normpath(posixpath.join(base, trimmed)).lstrip("/")
    return unicodedata.normalize("NFC", path)


def canonical_repository(repository: str) -> str | None:
    """Make a forge's display path NFC, without trimming; None when it is blank."""
    if not repository.strip(BLANKS):
        return None
    return unicodedata.normalize("NFC", repository)


def canonical_scope(*, kind: str, folder: object, repository: object, base: str = "/") -> str | None:
    """Derive the scope of a job from its data; None when it has none (wrong type, blank, missing)."""
    if kind == "local":
        return canonical_folder(folder, base=base) if isinstance(folder, str) else None
    return canonical_repository(repository) if isinstance(repository, str) else None


def hash16(scope: str) -> str:
    """Hash a scope to the 16 hex digits (SHA-256) that name it in keys, labels and records.

    A path that is not UTF-8 (lone surrogates) still has a hash of its own.
    """
    return hashlib.sha256(scope.encode("utf-8", "surrogatepass")).hexdigest()[:16]
