"""A folder of the server, or of a volume mounted there."""

from collections.abc import Iterator
from datetime import UTC, datetime
from os import stat_result
from pathlib import Path
from typing import Any, ClassVar

from pydantic import Field

from common.translation import gettext_noop
from documents.ingestion.sources import (
    SkippedFile,
    content_from_file,
    storable_key,
    storable_name,
    walk,
)
from documents.parsers import ParseError
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
        title=gettext_noop("Folder"), description=gettext_noop("Its whole path on the server.")
    )
    glob: Glob = "**/*"


class Folder(Connector):
    """Reads the files that `glob` matches; hidden ones and links to folders are passed over."""

    kind = "folder"
    label = gettext_noop("Folder on the server")
    Options: ClassVar[type[ConnectorOptions]] = FolderOptions

    def __init__(self, options: FolderOptions) -> None:
        self._root, self._glob = Path(options.path), options.glob

    def list_items(self) -> Iterator[Item]:
        if not self._root.is_dir():
            raise SourceError(f"{self._root} is no folder that can be read. Is its volume there?")
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
        try:
            self._path(key).lstat()
        except (FileNotFoundError, NotADirectoryError):
            return self._root.is_dir()
        except OSError:
            return False
        return False

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
