"""A folder of the server, or of a volume mounted there."""

import errno
import grp
import os
import pwd
from collections.abc import Iterator
from datetime import UTC, datetime
from os import stat_result
from pathlib import Path
from typing import Any, ClassVar

from pydantic import Field

from common.translation import gettext, gettext_noop
from documents.ingestion.sources import (
    SkippedFile,
    content_from_file,
    may_exist,
    storable_key,
    storable_name,
    walk,
)
from reading.parsers import ParseError
from sources.connectors.base import (
    Connector,
    ConnectorOptions,
    Glob,
    Item,
    ItemError,
    ItemGone,
    SourceError,
)


class FolderOptions(ConnectorOptions):
    path: str = Field(
        title=gettext_noop("Folder"), description=gettext_noop("The absolute path on the server.")
    )
    glob: Glob = "**/*"


class Folder(Connector):
    """Reads the files that `glob` matches; hidden ones and links to folders are passed over."""

    kind = "folder"
    label = gettext_noop("Folder on the server")
    Options: ClassVar[type[ConnectorOptions]] = FolderOptions
    tells_readers = True

    def __init__(self, options: FolderOptions) -> None:
        self._root, self._glob = Path(options.path), options.glob

    def list_items(self) -> Iterator[Item]:
        if not self._root.is_dir():
            raise SourceError(
                gettext(
                    "{root} is not a readable folder. Check that its volume is mounted."
                ).format(root=self._root)
            )
        permissions = Permissions(self._root)
        for siblings in walk(self._root, self._glob):
            for path in siblings:
                # What cannot be read stays as it was: `is_gone` says no.
                if isinstance(path, SkippedFile):
                    continue
                try:
                    found = path.stat()
                except OSError:
                    continue
                relative = str(path.relative_to(self._root))
                yield Item(
                    key=storable_key(relative),
                    version=_version(found),
                    name=storable_name(relative),
                    size=found.st_size,
                    modified_at=datetime.fromtimestamp(found.st_mtime, UTC),
                    readers=permissions.readers(path, found),
                )

    def fetch(self, item: Item, file: Path, *, max_bytes: int) -> dict[str, Any]:
        path = self._path(item.key)
        if not path.resolve().is_relative_to(self._root.resolve()):
            raise ItemError("This link leads out of the folder. Copy the file.")
        try:
            content = content_from_file(path, name=item.name, max_bytes=max_bytes)
            with content.open() as opened, file.open("wb") as copy:
                while piece := opened.read(1024 * 1024):
                    copy.write(piece)
        except FileNotFoundError as error:
            raise ItemGone(f"{item.name} is there no more.") from error
        except ParseError as error:
            raise ItemError(str(error)) from error
        except OSError as error:
            reason = f"It cannot be read: {error.strerror}. Check its permissions."
            raise ItemError(reason) from error
        return {}

    def is_gone(self, key: str) -> bool:
        return not may_exist(self._path(key)) and self._root.is_dir()

    def _path(self, key: str) -> Path:
        # The inverse of `storable_key`: names that are no UTF-8 are kept with escapes.
        if "\\" in key:
            for path in self._root.glob("**/*"):
                if storable_key(str(path.relative_to(self._root))) == key:
                    return path
        return self._root / key


def _version(found: stat_result) -> str:
    """Changes with every write, also where a clock is wrong or a program sets the time back."""
    return f"{found.st_size}-{found.st_mtime_ns}-{found.st_ctime_ns}"


#: The reader's name of a file that every account of the server may read.
EVERYBODY = "everybody"


class Permissions:
    """Who may read the files of a folder by POSIX permissions: the names of their owner and group,
    and `everybody`. All folders above, up to the root of the source, must let them through.

    When in doubt, nobody: a file or folder with a POSIX access control list has no readers, and
    groups that an owner is in are not looked at.
    """

    def __init__(self, root: Path) -> None:
        self._root = root
        self._folders: dict[Path, stat_result | None] = {}
        self._names: dict[tuple[str, int], str] = {}

    def readers(self, path: Path, found: stat_result) -> tuple[str, ...]:
        inside = path.parent
        above = [self._folder(inside)]
        while inside != self._root:
            inside = inside.parent
            above.append(self._folder(inside))
        if None in above or _has_access_list(path):
            return ()
        folders = [each for each in above if each is not None]
        names = []
        for kind, number in (("user", found.st_uid), ("group", found.st_gid)):
            if _allows(found, kind, number, _READ) and all(
                _allows(each, kind, number, _PASS) for each in folders
            ):
                names.append(self._name(kind, number))
        if found.st_mode & _READ and all(each.st_mode & _PASS for each in folders):
            names.append(EVERYBODY)
        return tuple(names)

    def _folder(self, path: Path) -> stat_result | None:
        if path not in self._folders:
            try:
                self._folders[path] = None if _has_access_list(path) else path.stat()
            except OSError:
                self._folders[path] = None
        return self._folders[path]

    def _name(self, kind: str, number: int) -> str:
        key = (kind, number)
        if key not in self._names:
            try:
                self._names[key] = (
                    pwd.getpwuid(number).pw_name if kind == "user" else grp.getgrgid(number).gr_name
                )
            except KeyError:
                self._names[key] = f"{kind} {number}"
        return self._names[key]


#: Bits of everybody; those of the group and the owner are 3 and 6 places higher.
_READ, _PASS = 0o4, 0o1


def _allows(found: stat_result, kind: str, number: int, bit: int) -> bool:
    """Whether the bit is set for this user, or for members of this group that own nothing else."""
    if kind == "user":
        return bool(found.st_mode & (bit << 6 if found.st_uid == number else bit))
    return bool(found.st_mode & (bit << 3 if found.st_gid == number else bit))


def _has_access_list(path: Path) -> bool:
    if not hasattr(os, "getxattr"):
        return False
    try:
        os.getxattr(path, "system.posix_acl_access")
    except OSError as error:
        return error.errno not in (errno.ENODATA, errno.ENOTSUP)
    return True
