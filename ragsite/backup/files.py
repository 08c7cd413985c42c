"""Files of a backup: copied with their hashes, written so that a power cut takes nothing."""

import hashlib
import os
import stat
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

_BLOCK = 1024 * 1024

OnProgress = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Record:
    """A file by its path below its folder, with `/`; its bytes and their SHA-256."""

    path: str
    size: int
    sha256: str


def below(folder: Path) -> Iterator[tuple[str, bool]]:
    """Every file below `folder` in order, and whether it is a plain one: links are not followed,
    for what they lead to lies elsewhere."""
    try:
        entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
    except FileNotFoundError:
        return
    for entry in entries:
        if entry.is_dir(follow_symlinks=False):
            for name, is_plain in below(Path(entry.path)):
                yield f"{entry.name}/{name}", is_plain
        else:
            yield entry.name, entry.is_file(follow_symlinks=False)


def copy(source: Path, target: Path, *, path: str, mode: int = 0o600) -> Record:
    """Copy a file to the disk. Raises OSError; FileNotFoundError where there is no source."""
    with source.open("rb") as reading:
        target.parent.mkdir(parents=True, exist_ok=True)
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
        with os.fdopen(os.open(target, flags, mode), "wb") as writing:
            digest = hashlib.sha256()
            while block := reading.read(_BLOCK):
                digest.update(block)
                writing.write(block)
            size = writing.tell()
            writing.flush()
            os.fsync(writing.fileno())
    return Record(path, size, digest.hexdigest())


def write(path: Path, content: bytes) -> None:
    """A new private file, on the disk. Raises OSError."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
    with os.fdopen(os.open(path, flags, 0o600), "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def look_at(path: Path, *, name: str) -> Record:
    """The record of a file that is there. Raises OSError, also for what is no plain file."""
    with os.fdopen(os.open(path, os.O_RDONLY | os.O_NOFOLLOW), "rb") as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise OSError(0, "is no plain file", str(path))
        digest = hashlib.file_digest(file, "sha256")
        return Record(name, file.tell(), digest.hexdigest())


def sync_folders(folder: Path) -> None:
    """Have the names of all that lies below `folder` on the disk, and those of folders."""
    for path, _, _ in os.walk(folder):
        sync_folder(Path(path))


def sync_folder(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def is_inside(path: str) -> bool:
    """Whether a path from a manifest stays below its folder."""
    parts = PurePosixPath(path).parts
    return bool(parts) and parts[0] != "/" and ".." not in parts and "\0" not in path
