"""Files below a directory, in a stable order, one directory in memory at a time."""

import os
import stat
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

from documents.parsers.base import ErrorCode

NO_FILE = "This is no file but a pipe, a socket or a device. Save what it gives as a file."


@dataclass(frozen=True, slots=True)
class Oddity:
    """Something that lies among the files and cannot be read as one; `reason` tells the cure."""

    path: Path
    code: ErrorCode
    reason: str


def walk(directory: Path, glob: str) -> Iterator[list[Path | Oddity]]:
    """What `glob` matches, directory by directory, those of a directory together and sorted.

    `*` matches within one name and `**` any number of directories. Hidden files and directories
    are passed over, and links to directories not followed.
    """
    pattern = glob.split("/")
    waiting: list[tuple[str, ...]] = [()]
    while waiting:
        below = waiting.pop()
        here = directory.joinpath(*below)
        try:
            names = sorted(name for name in os.listdir(here) if name[0] != ".")  # noqa: PTH208
        except OSError as error:
            yield [Oddity(here, "unreadable", _unreadable(error))]
            continue
        directories = [name for name in names if _is_directory(here / name)]
        if "**" in pattern or len(below) + 1 < len(pattern):
            inner = [name for name in directories if not (here / name).is_symlink()]
            waiting += [(*below, name) for name in reversed(inner)]
        matching = [
            here / name
            for name in names
            if name not in directories and _matches((*below, name), pattern)
        ]
        if matching:
            yield [look_at(path) for path in matching]


def matches(relative: str, glob: str) -> bool:
    """Whether a walk with `glob` would bring a file of that path in the directory."""
    return _matches(relative.split("/"), glob.split("/"))


def look_at(path: Path) -> Path | Oddity:
    """The path itself where a regular file is there to be read, else what is wrong with it."""
    try:
        mode = path.stat().st_mode
    except OSError as error:
        if path.is_symlink():
            return Oddity(path, "unreadable", _dead_link(path))
        return Oddity(path, "unreadable", _unreadable(error))
    if stat.S_ISREG(mode):
        return path
    return Oddity(path, "unsupported", NO_FILE)


def _matches(parts: Sequence[str], pattern: Sequence[str]) -> bool:
    if not pattern:
        return not parts
    if pattern[0] == "**":
        return any(_matches(parts[at:], pattern[1:]) for at in range(len(parts) + 1))
    return bool(parts) and fnmatchcase(parts[0], pattern[0]) and _matches(parts[1:], pattern[1:])


def _is_directory(path: Path) -> bool:
    try:
        return stat.S_ISDIR(path.stat().st_mode)
    except OSError:
        return False


def _dead_link(path: Path) -> str:
    target = os.fsencode(path.readlink()).decode(errors="replace")
    return f"This link leads nowhere, or in a circle (to {target}). Mend or remove it."


def _unreadable(error: OSError) -> str:
    return f"It cannot be read: {error.strerror}. Check its permissions."
