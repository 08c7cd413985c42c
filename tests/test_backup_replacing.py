"""A restore into what holds something already: whole, or as if it had never been tried."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import psycopg
import pytest

from ragsite import backup
from ragsite.backup import RestoreMismatch
from ragsite.backup.database import ASIDE_SCHEMA
from ragsite.backup.manifest import Manifest
from tests.backups import make_backup, restore, rewrite, rows, scratch, server_of


@pytest.fixture
def elsewhere(db: None, media_root: Path) -> Iterator[str]:
    """An empty database; its name."""
    with scratch("elsewhere") as database:
        yield database


@pytest.fixture
def archive(tmp_path: Path, media_root: Path, db: None) -> Path:
    media_root.mkdir()
    (media_root / "new.txt").write_text("new")
    make_backup(tmp_path / "backup")
    return tmp_path / "backup"


@pytest.fixture
def occupied(elsewhere: str, tmp_path: Path) -> tuple[str, Path]:
    """A database and a folder that hold something already, of the same names as a backup's."""
    with server_of(elsewhere).connect() as connection:
        connection.execute(
            "CREATE FUNCTION ragsite_is_letter(word text) RETURNS boolean RETURN true;"
            "CREATE TABLE accounts_user (id int PRIMARY KEY, is_letter boolean"
            " GENERATED ALWAYS AS (ragsite_is_letter('a')) STORED);"
            "CREATE TABLE other (user_id int REFERENCES accounts_user, n serial);"
            "INSERT INTO accounts_user VALUES (7); INSERT INTO other VALUES (7)"
        )
    (tmp_path / "taken/old").mkdir(parents=True)
    (tmp_path / "taken/old/kept.txt").write_text("old")
    return elsewhere, tmp_path / "taken"


def is_untouched(database: str, media: Path) -> bool:
    """Whether all is as `occupied` made it."""
    found = "SELECT u.id, u.is_letter, o.n FROM accounts_user u JOIN other o ON user_id = u.id"
    schemas = f"SELECT FROM pg_namespace WHERE nspname = '{ASIDE_SCHEMA}'"
    return (
        rows(database, found) == [(7, True, 1)]
        and rows(database, schemas) == []
        and [path.name for path in media.rglob("*")] == ["old", "kept.txt"]
    )


def test_what_is_there_is_not_replaced_unless_asked_for(
    archive: Path, occupied: tuple[str, Path], tmp_path: Path
) -> None:
    database, media = occupied
    with pytest.raises(backup.BackupError, match=r"is not empty: it has 2 tables.*--replace"):
        restore(archive, database, tmp_path / "empty")
    with server_of(database).connect() as connection:
        connection.execute("DROP TABLE other, accounts_user")
    with pytest.raises(backup.BackupError, match=r"is not empty: old is there.*--replace"):
        restore(archive, database, media)


def test_asked_for_it_is_replaced_whole(archive: Path, occupied: tuple[str, Path]) -> None:
    database, media = occupied
    restore(archive, database, media, replacing=True)
    assert rows(database, "SELECT to_regclass('other'), count(*) FROM accounts_user") == [(None, 0)]
    assert [path.name for path in media.rglob("*")] == ["new.txt"]
    assert rows(database, f"SELECT FROM pg_namespace WHERE nspname = '{ASIDE_SCHEMA}'") == []
    # and once more, over tables that triggers and functions belong to
    restore(archive, database, media, replacing=True)


def test_one_that_turns_out_different_changes_nothing(
    archive: Path, occupied: tuple[str, Path]
) -> None:
    noted = Manifest.read(archive)
    other = {
        **noted.tables,
        "documents_embeddingspace": replace(
            noted.tables["documents_embeddingspace"], hash="f" * 32
        ),
    }
    rewrite(archive, tables=other)
    with pytest.raises(RestoreMismatch, match=r"1 of \d+ tables") as caught:
        restore(archive, *occupied, replacing=True)
    (said,) = caught.value.differences
    assert said.startswith("documents_embeddingspace: 1 row with hash ffffffff… in the backup, 1 ")
    assert is_untouched(*occupied)


def test_one_that_fails_half_way_changes_nothing(archive: Path, occupied: tuple[str, Path]) -> None:
    with server_of(occupied[0]).connect() as connection:
        # which is none of the tables that are set aside, and stands in the way
        connection.execute("CREATE TYPE documents_chunk AS ENUM ('in the way')")
    with pytest.raises(backup.BackupError, match=r'(?s)pg_restore failed.*"documents_chunk"'):
        restore(archive, *occupied, replacing=True)
    assert is_untouched(*occupied)


def test_one_that_was_killed_is_made_good_by_the_next(
    archive: Path, occupied: tuple[str, Path]
) -> None:
    database, media = occupied
    with server_of(database).connect() as connection:
        connection.execute(
            f"CREATE SCHEMA {ASIDE_SCHEMA}; ALTER TABLE other SET SCHEMA {ASIDE_SCHEMA};"
            "CREATE TABLE half (id int)"
        )
    (media / ".restoring").mkdir()
    restore(archive, database, media, replacing=True)
    found = "SELECT relname FROM pg_class WHERE relname IN ('half', 'other', 'accounts_user')"
    assert rows(database, found) == [("accounts_user",)]
    assert [path.name for path in media.rglob("*")] == ["new.txt"]


def test_a_site_that_runs_is_not_restored_into(
    archive: Path, elsewhere: str, tmp_path: Path
) -> None:
    options = {**server_of(elsewhere).options, "application_name": "ragsite"}
    with (
        psycopg.connect(backup.Server(options).address),
        pytest.raises(backup.BackupError, match=r"The site is running: 1 connection \(ragsite\)"),
    ):
        restore(archive, elsewhere, tmp_path / "empty")
