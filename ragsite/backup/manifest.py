"""What a backup says of itself: `manifest.json`, with a digest over all that it says."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Self

from ragsite.backup import files
from ragsite.backup.contents import Table
from ragsite.backup.errors import BackupError
from ragsite.backup.files import Record

NAME = "manifest.json"
DUMP = "database.dump"
SECRET_KEY = "secret-key"  # noqa: S105 (the name of a file)
FILES = "files"
#: Of the layout of the folder. A change that older versions cannot read takes the next number.
FORMAT = 1
_DIGEST = "sha256"

Migration = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Manifest:
    """`tables` by name, `settings` by name as JSON; `files` are those of MEDIA_ROOT. `lost` are
    files that rows name and that were not there, `links` what was there and is no file."""

    version: str
    made_at: str
    postgresql: str
    extensions: Mapping[str, str]
    migrations: tuple[Migration, ...]
    tables: dict[str, Table]
    settings: Mapping[str, Any]
    dump: Record
    files: tuple[Record, ...]
    secret_key: Record | None = None
    lost: tuple[str, ...] = ()
    links: tuple[str, ...] = ()

    @property
    def records(self) -> tuple[Record, ...]:
        """Everything that must be in the folder, by its path below it."""
        kept = [self.dump, *([self.secret_key] if self.secret_key else [])]
        return (
            *kept,
            *(Record(f"{FILES}/{file.path}", file.size, file.sha256) for file in self.files),
        )

    @property
    def postgresql_major(self) -> int:
        return int(self.postgresql.split(".")[0])

    @property
    def rows(self) -> int:
        return sum(table.rows for table in self.tables.values())

    @property
    def size(self) -> int:
        """Bytes of the files and the dump."""
        return sum(record.size for record in self.records)

    def write(self, folder: Path) -> None:
        """Raises OSError."""
        said = {"format": FORMAT, **asdict(self)}
        text = json.dumps({**said, _DIGEST: _digest(said)}, ensure_ascii=False, indent=1)
        files.write(folder / NAME, f"{text}\n".encode())

    @classmethod
    def read(cls, folder: Path) -> Self:
        """Raises BackupError where there is none, or one that is damaged or too new."""
        try:
            said = json.loads((folder / NAME).read_bytes())
        except (FileNotFoundError, NotADirectoryError) as error:
            raise BackupError(
                f"{folder} is no backup: it has no {NAME}. Name the folder that `manage.py backup`"
                " wrote."
            ) from error
        except OSError as error:
            raise BackupError(f"{folder / NAME}: {error.strerror}.") from error
        except ValueError as error:
            raise _damaged(folder) from error
        if not isinstance(said, dict):
            raise _damaged(folder)
        digest = said.pop(_DIGEST, None)
        number = said.pop("format", None)
        if isinstance(number, int) and number > FORMAT:
            raise BackupError(
                f"{folder} was made by a newer ragsite, {said.get('version')}: restore it with"
                " that version or a later one."
            )
        if digest != _digest({"format": number, **said}):
            raise _damaged(folder)
        return cls._of(said)

    @classmethod
    def _of(cls, said: dict[str, Any]) -> Self:
        key = said.pop("secret_key")
        return cls(
            dump=Record(**said.pop("dump")),
            files=tuple(Record(**record) for record in said.pop("files")),
            secret_key=Record(**key) if key else None,
            tables={name: Table(**table) for name, table in said.pop("tables").items()},
            migrations=tuple((app, name) for app, name in said.pop("migrations")),
            lost=tuple(said.pop("lost")),
            links=tuple(said.pop("links")),
            **said,
        )


def _digest(said: Mapping[str, Any]) -> str:
    text = json.dumps(said, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def _damaged(folder: Path) -> BackupError:
    return BackupError(
        f"{folder / NAME} is damaged: it is not what `manage.py backup` wrote. Take another copy"
        " of this backup, or an earlier one."
    )
