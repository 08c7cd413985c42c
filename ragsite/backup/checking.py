"""Is a backup whole, and can it be restored here? Looked at before anything is touched."""

from pathlib import Path

from common.wording import counted
from ragsite.backup import files, product
from ragsite.backup.errors import BackupError
from ragsite.backup.files import OnProgress, Record, is_inside
from ragsite.backup.manifest import Manifest

_NAMED = 5


def checked(folder: Path, *, say: OnProgress) -> Manifest:
    """The manifest of a backup that is whole, byte by byte, and that this version can restore.
    Raises BackupError, which names what is wrong."""
    noted = Manifest.read(folder)
    _check_version(folder, noted)
    say(f"checking {counted(len(noted.records), 'file')}, {counted(noted.size, 'byte')}")
    wrong = [f"{file.path} leads out of it" for file in noted.files if not is_inside(file.path)]
    wrong = wrong or [said for record in noted.records if (said := _wrong(folder, record))]
    if wrong:
        more = [f"and {len(wrong) - _NAMED:,} more"] if len(wrong) > _NAMED else []
        raise BackupError(
            f"{folder} is damaged: {'; '.join([*wrong[:_NAMED], *more])}. Nothing was restored:"
            " take another copy of this backup, or an earlier one."
        )
    return noted


def _wrong(folder: Path, record: Record) -> str:
    try:
        size = (folder / record.path).lstat().st_size
        if size != record.size:
            return f"{record.path} has {size:,} bytes instead of {record.size:,}"
        found = files.look_at(folder / record.path, name=record.path)
    except FileNotFoundError:
        return f"{record.path} is missing"
    except OSError as error:
        return f"{record.path} cannot be read ({error.strerror})"
    return "" if found == record else f"{record.path} has another SHA-256"


def _check_version(folder: Path, noted: Manifest) -> None:
    unknown = sorted(set(noted.migrations) - product.known_migrations())
    ours = product.version()
    if unknown or _number(noted.version) > _number(ours):
        lacking = f", without the migration {'.'.join(unknown[0])}" if unknown else ""
        raise BackupError(
            f"{folder} was made by ragsite {noted.version}, which is newer than this one"
            f" ({ours}{lacking}). Restore it with that version, or a later one."
        )


def _number(version: str) -> tuple[int, ...]:
    return tuple(int(part) if part.isdecimal() else 0 for part in version.split("."))
