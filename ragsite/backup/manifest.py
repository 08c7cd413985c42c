"""`manifest.json` of a backup: its files with hashes, tables, settings; and checking it."""

import hashlib
import json
import os
import stat
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path, PurePosixPath
from typing import Any, Self

from django.apps import apps
from django.conf import settings
from django.db.migrations.loader import MigrationLoader
from django.db.models import FileField

from common.text import pluralized
from ragsite.backup.database import BackupError, TableState

_BLOCK = 1024 * 1024

OnProgress = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class FileRecord:
    """A file: path below its folder, with `/`; size in bytes and SHA-256."""

    path: str
    size: int
    sha256: str


def files_below(folder: Path) -> Iterator[tuple[str, bool]]:
    """Every path below `folder` in order, and whether it is a regular file; links are not
    followed.
    """
    try:
        entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
    except FileNotFoundError:
        return
    for entry in entries:
        if entry.is_dir(follow_symlinks=False):
            for name, is_plain in files_below(Path(entry.path)):
                yield f"{entry.name}/{name}", is_plain
        else:
            yield entry.name, entry.is_file(follow_symlinks=False)


def copy_file(source: Path, target: Path, *, path: str, mode: int = 0o600) -> FileRecord:
    """Copy a file and fsync it. Raises OSError; FileNotFoundError where there is no source."""
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
    return FileRecord(path, size, digest.hexdigest())


def write_file(path: Path, content: bytes) -> None:
    """Write a new private file and fsync it. Raises OSError."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
    with os.fdopen(os.open(path, flags, 0o600), "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def file_record(path: Path, *, name: str) -> FileRecord:
    """The record of an existing file. Raises OSError, also for anything but a regular file."""
    with os.fdopen(os.open(path, os.O_RDONLY | os.O_NOFOLLOW), "rb") as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise OSError(0, "is no plain file", str(path))
        digest = hashlib.file_digest(file, "sha256")
        return FileRecord(name, file.tell(), digest.hexdigest())


def sync_folders(folder: Path) -> None:
    """Fsync `folder` and all folders below it."""
    for path, _, _ in os.walk(folder):
        sync_folder(Path(path))


def sync_folder(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


NAME = "manifest.json"
DUMP = "database.dump"
SECRET_KEY = "secret-key"  # noqa: S105 (the name of a file)
FILES = "files"
#: Version of the folder's layout, raised by a change that older versions cannot read.
FORMAT = 1
_DIGEST = "sha256"

Migration = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Manifest:
    """`tables` by name, `settings` by name as JSON; `files` are those of MEDIA_ROOT. `lost` are
    files that rows refer to and that were missing, `links` paths that are no regular files.
    """

    version: str
    made_at: str
    postgresql: str
    extensions: Mapping[str, str]
    migrations: tuple[Migration, ...]
    tables: dict[str, TableState]
    settings: Mapping[str, Any]
    dump: FileRecord
    files: tuple[FileRecord, ...]
    secret_key: FileRecord | None = None
    lost: tuple[str, ...] = ()
    links: tuple[str, ...] = ()

    @property
    def records(self) -> tuple[FileRecord, ...]:
        """All files of the backup, by path below its folder."""
        kept = [self.dump, *([self.secret_key] if self.secret_key else [])]
        return (
            *kept,
            *(FileRecord(f"{FILES}/{file.path}", file.size, file.sha256) for file in self.files),
        )

    @property
    def postgresql_major(self) -> int:
        return int(self.postgresql.split(".")[0])

    @property
    def rows(self) -> int:
        return sum(table.rows for table in self.tables.values())

    @property
    def size(self) -> int:
        """Total bytes of the files and the dump."""
        return sum(record.size for record in self.records)

    def write(self, folder: Path) -> None:
        """Write `manifest.json` into the folder. Raises OSError."""
        said = {"format": FORMAT, **asdict(self)}
        text = json.dumps({**said, _DIGEST: _digest(said)}, ensure_ascii=False, indent=1)
        write_file(folder / NAME, f"{text}\n".encode())

    @classmethod
    def read(cls, folder: Path) -> Self:
        """Read the manifest. Raises BackupError where it is missing, damaged or too new."""
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
        key = said.pop("secret_key")
        return cls(
            dump=FileRecord(**said.pop("dump")),
            files=tuple(FileRecord(**record) for record in said.pop("files")),
            secret_key=FileRecord(**key) if key else None,
            tables={name: TableState(**table) for name, table in said.pop("tables").items()},
            migrations=tuple((app, name) for app, name in said.pop("migrations")),
            lost=tuple(said.pop("lost")),
            links=tuple(said.pop("links")),
            **said,
        )


def _digest(data: Mapping[str, Any]) -> str:
    text = json.dumps(data, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def _damaged(folder: Path) -> BackupError:
    return BackupError(
        f"{folder / NAME} is damaged: it is not what `manage.py backup` wrote. Take another copy"
        " of this backup, or an earlier one."
    )


#: Numbers and names by which the site works, none of them secret: tests compare.
_PREFIXES = ("EVALUATION_", "GRAPH_", "INGESTION_", "MEMORY_", "PARSER_", "RAG_")
_NAMES = ("EXACT_SCAN_CHUNKS", "FALLBACK_LANGUAGE", "HISTORY_DAYS", "SEARCH_LOG_DAYS", "TIME_ZONE")
#: Recorded options of a model: never its key, nor an address, which may contain one.
_OPTIONS = ("model", "model_name", "dimensions", "revision")


def product_version() -> str:
    """Version of ragsite, such as `0.1.0`."""
    return str(settings.RAGSITE_VERSION)


def known_migrations() -> frozenset[Migration]:
    """All migrations that this version can have applied, including squashed ones."""
    loader = MigrationLoader(None)
    disk = loader.disk_migrations or {}
    replaced = {name for migration in disk.values() for name in migration.replaces}
    return frozenset((app, name) for app, name in {*disk, *replaced})


def recorded_settings() -> dict[str, Any]:
    """Settings that affect answers, by name, as JSON."""
    models = {
        kind: {
            alias: {"BACKEND": model["BACKEND"]}
            | {k: v for k, v in model.get("OPTIONS", {}).items() if k in _OPTIONS}
            for alias, model in models.items()
        }
        for kind, models in settings.INFERENCE.items()
    }
    return {
        name: getattr(settings, name)
        for name in sorted(dir(settings))
        if name in _NAMES or name.startswith(_PREFIXES)
    } | {"INFERENCE": models}


def file_columns() -> list[tuple[str, str]]:
    """Table and column of every reference to stored files."""
    return [
        (model._meta.db_table, str(field.column))
        for model in apps.get_models()
        for field in model._meta.local_concrete_fields
        if isinstance(field, FileField)
    ]


_MAX_NAMED = 5


def checked_manifest(folder: Path, *, say: OnProgress) -> Manifest:
    """The manifest of a backup that is complete, byte by byte, and can be restored by this version.
    Raises BackupError, which names what is wrong.
    """
    noted = Manifest.read(folder)
    unknown = sorted(set(noted.migrations) - known_migrations())
    ours = product_version()
    if unknown or _number(noted.version) > _number(ours):
        lacking = f", without the migration {'.'.join(unknown[0])}" if unknown else ""
        raise BackupError(
            f"{folder} was made by ragsite {noted.version}, which is newer than this one"
            f" ({ours}{lacking}). Restore it with that version, or a later one."
        )
    say(f"checking {pluralized(len(noted.records), 'file')}, {pluralized(noted.size, 'byte')}")
    wrong = []
    for file in noted.files:
        parts = PurePosixPath(file.path).parts
        if not parts or parts[0] == "/" or ".." in parts or "\0" in file.path:
            wrong.append(f"{file.path} leads out of it")
    wrong = wrong or [said for record in noted.records if (said := _file_problem(folder, record))]
    if wrong:
        more = [f"and {len(wrong) - _MAX_NAMED:,} more"] if len(wrong) > _MAX_NAMED else []
        raise BackupError(
            f"{folder} is damaged: {'; '.join([*wrong[:_MAX_NAMED], *more])}. Nothing was restored:"
            " take another copy of this backup, or an earlier one."
        )
    return noted


def _file_problem(folder: Path, record: FileRecord) -> str:
    try:
        size = (folder / record.path).lstat().st_size
        if size != record.size:
            return f"{record.path} has {size:,} bytes instead of {record.size:,}"
        found = file_record(folder / record.path, name=record.path)
    except FileNotFoundError:
        return f"{record.path} is missing"
    except OSError as error:
        return f"{record.path} cannot be read ({error.strerror})"
    return "" if found == record else f"{record.path} has another SHA-256"


def _number(version: str) -> tuple[int, ...]:
    return tuple(int(part) if part.isdecimal() else 0 for part in version.split("."))
