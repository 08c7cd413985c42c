"""Backups that cannot be made or restored: refused in words, with nothing half left or touched."""

import resource
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.db import connection

from ragsite import backup
from ragsite.backup import database
from ragsite.backup.database import find_program
from ragsite.backup.manifest import DUMP, FILES, NAME, FileRecord
from tests.backups import make_backup, quiet, rewrite

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("media_root")]

LETTER = "documents/2026/11/letter.txt"


@pytest.fixture
def archive(tmp_path: Path, media_root: Path) -> Path:
    """A backup of the empty site with one file."""
    (media_root / LETTER).parent.mkdir(parents=True)
    (media_root / LETTER).write_text("Dear Sir or Madam")
    make_backup(tmp_path / "backup")
    return tmp_path / "backup"


def change_byte(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


def cut(path: Path, count: int = 1) -> None:
    with path.open("r+b") as file:
        file.truncate(path.stat().st_size - count)


DAMAGES: dict[str, tuple[Callable[[Path], None], str]] = {
    "a byte of the dump": (lambda at: change_byte(at / DUMP), f"{DUMP} has another SHA-256"),
    "a byte of a file": (lambda at: change_byte(at / FILES / LETTER), "letter.txt has another SHA"),
    "the end of the dump": (lambda at: cut(at / DUMP), rf"{DUMP} has [\d,]+ bytes instead of"),
    "the end of a file": (lambda at: cut(at / FILES / LETTER), "has 16 bytes instead of 17"),
    "a file": (lambda at: (at / FILES / LETTER).unlink(), "letter.txt is missing"),
    "the dump": (lambda at: (at / DUMP).unlink(), f"{DUMP} is missing"),
    "the manifest": (lambda at: (at / NAME).unlink(), "is no backup"),
    "a byte of the manifest": (lambda at: change_byte(at / NAME), "manifest.json is damaged"),
    "the end of the manifest": (lambda at: cut(at / NAME, 2), "manifest.json is damaged"),
    "a link for a file": (
        lambda at: (at / FILES / LETTER).unlink() or (at / FILES / LETTER).symlink_to("/etc/hosts"),  # type: ignore[func-returns-value]
        "letter.txt has",
    ),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_backup_is_refused_before_anything_is_touched(archive: Path, damage: str) -> None:
    ruin, said = DAMAGES[damage]
    ruin(archive)
    with pytest.raises(backup.BackupError, match=said):
        backup.checked_manifest(archive, say=quiet)


def test_all_that_is_damaged_is_counted_and_the_first_named(archive: Path) -> None:
    lost = tuple(FileRecord(f"documents/{n}.txt", 1, "0" * 64) for n in range(9))
    rewrite(archive, files=lost)
    with pytest.raises(backup.BackupError, match=r"0\.txt is missing; .* and 4 more"):
        backup.checked_manifest(archive, say=quiet)


def test_no_path_of_a_manifest_leads_out_of_the_folder(archive: Path) -> None:
    record = backup.checked_manifest(archive, say=quiet).files[0]
    for path in ("../../etc/passwd", "/etc/passwd", "a/../../b"):
        rewrite(archive, files=(replace(record, path=path),))
        with pytest.raises(backup.BackupError, match="leads out of it"):
            backup.checked_manifest(archive, say=quiet)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"version": "99.1.0"}, r"made by ragsite 99\.1\.0, which is newer than this one"),
        ({"migrations": (("documents", "9999_later"),)}, r"without the migration documents\.9999"),
    ],
)
def test_a_backup_of_a_newer_version_is_refused(
    archive: Path, changes: dict[str, Any], said: str
) -> None:
    rewrite(archive, **changes)
    with pytest.raises(backup.BackupError, match=said):
        backup.checked_manifest(archive, say=quiet)


def test_a_newer_layout_is_refused(archive: Path) -> None:
    text = (archive / NAME).read_text()
    (archive / NAME).write_text(text.replace('"format": 1', '"format": 2'))
    with pytest.raises(backup.BackupError, match="made by a newer ragsite"):
        backup.checked_manifest(archive, say=quiet)


def test_the_command_says_it_and_ends_with_two(archive: Path) -> None:
    change_byte(archive / DUMP)
    with pytest.raises(CommandError, match="Nothing was restored") as caught:
        call_command("restore", str(archive), stderr=StringIO())
    assert caught.value.returncode == 2


def test_nothing_is_overwritten(archive: Path) -> None:
    before = (archive / NAME).read_bytes()
    with pytest.raises(CommandError, match="is there already") as caught:
        call_command("backup", str(archive))
    assert caught.value.returncode == 2
    assert (archive / NAME).read_bytes() == before


def test_one_that_was_cut_off_is_told_from_a_whole_one(tmp_path: Path) -> None:
    (tmp_path / "new.unfinished").mkdir()
    with pytest.raises(backup.BackupError, match=r"was cut off\. Remove it"):
        make_backup(tmp_path / "new")


def test_a_backup_does_not_hold_itself(media_root: Path) -> None:
    with pytest.raises(backup.BackupError, match="which is backed up"):
        make_backup(media_root / "backup")


@contextmanager
def room_for(size: int) -> Iterator[None]:
    """No file of this process, or of one that it starts, may grow beyond `size` bytes."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_a_disk_too_small_for_the_dump_leaves_nothing(tmp_path: Path) -> None:
    with room_for(8 * 1024), pytest.raises(backup.BackupError, match="File too large"):
        make_backup(tmp_path / "backup")
    assert [path.name for path in tmp_path.iterdir() if "backup" in path.name] == []


def test_a_disk_too_small_for_a_file_leaves_nothing(tmp_path: Path, media_root: Path) -> None:
    media_root.mkdir()
    (media_root / "film.mp4").write_bytes(bytes(4 * 1024 * 1024))
    with room_for(2 * 1024 * 1024), pytest.raises(backup.BackupError, match=r"^No room for .*Free"):
        make_backup(tmp_path / "backup")
    assert [path.name for path in tmp_path.iterdir() if "backup" in path.name] == []


def test_programs_that_are_too_old_are_named() -> None:
    assert find_program("pg_dump", major=18)[1].startswith("18.")
    with pytest.raises(backup.BackupError, match=r"pg_dump 99 or newer.*the newest here is \d"):
        find_program("pg_dump", major=99)


def test_only_the_owner_is_let_into_a_backup(archive: Path) -> None:
    assert archive.stat().st_mode & 0o777 == 0o700
    kept = [path for path in archive.rglob("*") if path.is_file()]
    assert len(kept) == 3
    assert all(path.stat().st_mode & 0o777 == 0o600 for path in kept)


def test_links_among_the_files_are_left_out_and_named(tmp_path: Path, media_root: Path) -> None:
    media_root.mkdir()
    (media_root / "hosts").symlink_to("/etc/hosts")
    (media_root / "etc").symlink_to("/etc")
    made = make_backup(tmp_path / "backup")
    assert made.links == ("etc", "hosts")
    assert made.files == ()


def test_no_secret_is_written_unless_asked_for(
    tmp_path: Path, settings: Any, media_root: Path
) -> None:
    chat = {"default": {"BACKEND": "b", "OPTIONS": {"model": "m", "api_key": "sk-hidden"}}}
    settings.INFERENCE = {**settings.INFERENCE, "chat": chat}
    make_backup(tmp_path / "plain")
    files = (path for path in (tmp_path / "plain").rglob("*") if path.is_file())
    said = b"".join(path.read_bytes() for path in files)
    assert b'"model": "m"' in said
    assert b"sk-hidden" not in said
    assert settings.SECRET_KEY.encode() not in said
    make_backup(tmp_path / "keyed", secret_key=settings.SECRET_KEY)
    assert (tmp_path / "keyed" / "secret-key").read_text() == settings.SECRET_KEY


# --- hashes ------------------------------------------------------------------------------------


def hash_of(*rows: str) -> database.TableState:
    """Of a table with these rows, in this order."""
    with connection.cursor() as cursor:
        cursor.execute(
            "CREATE TABLE public.hashed (a text, b text, v vector(2), c int"
            " GENERATED ALWAYS AS (length(a)) STORED)"
        )
        for row in rows:
            cursor.execute(f"INSERT INTO hashed VALUES ({row})")
        found = database.read_tables(connection.connection)["hashed"]
        cursor.execute("DROP TABLE hashed")
    return found


def test_a_hash_asks_for_what_is_in_a_table_not_for_its_order() -> None:
    first, second = "'x', NULL, '[1,2]'", "'y', 'z', NULL"
    assert hash_of(first, second) == hash_of(second, first)
    assert hash_of(first, second).rows == 2
    others = [
        (first,),
        (first, second, second),
        (first, first, second),
        (first, "'y', NULL, NULL"),
        (first, "'y', '', NULL"),
        (first, "'yz', '', NULL"),
        ("'x', NULL, '[1,2.0000002]'", second),
        ("'x', '[1,2]', NULL", second),
        (),
    ]
    hashes = {hash_of(*rows).hash for rows in [(first, second), *others]}
    assert len(hashes) == 1 + len(others)
