"""Directories of the server that the API may read: those below RAGSITE_INGEST_ROOTS.

Commands are not bound by them: who has a shell has the files.
"""

from dataclasses import dataclass
from pathlib import Path

from django.conf import settings

from common.errors import Forbidden, InvalidInput


@dataclass(frozen=True, slots=True)
class Allowed:
    """A directory without links in its path, and the root that it lies below."""

    path: Path
    root: Path


def allowed_directory(directory: str) -> Allowed:
    """The directory, resolved. Raises Forbidden, which does not tell whether it exists, unless it
    lies below a root, and InvalidInput where it is none."""
    roots = [Path(root).resolve() for root in settings.INGEST_ROOTS]
    if not roots:
        raise Forbidden(
            "Directories of the server are not read for requests here. Upload the files, or ask"
            " the operator to name their directory in RAGSITE_INGEST_ROOTS."
        )
    path = Path(directory)
    if not path.is_absolute() or ".." in path.parts or "\0" in directory:
        raise InvalidInput(
            "Name the directory by its whole path, from / on and without “..”.", field="directory"
        )
    resolved = path.resolve()
    root = next((root for root in roots if resolved.is_relative_to(root)), None)
    if root is None:
        raise Forbidden(
            f"{directory} is not below a directory that may be read here. The operator names those"
            " in RAGSITE_INGEST_ROOTS."
        )
    if not resolved.is_dir():
        raise InvalidInput(f"{directory} is no directory. Check the path.", field="directory")
    return Allowed(resolved, root)
