"""Backed up, destroyed and restored: the same rows, files and answers, on another server."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from io import StringIO
from pathlib import Path
from typing import Any

import psycopg
import pytest
from django.conf import settings
from django.core.files.uploadedfile import SimpleUploadedFile
from django.core.management import call_command

from accounts.services import get_or_create_workspace
from documents.ingestion import stages
from documents.models import Collection, Document
from documents.services import Upload, ingest_uploads
from documents.tests.factories import CollectionFactory, MembershipFactory
from graph.tests.factories import make_edge, make_node
from memory.tests.factories import make_scope, remember
from rag.context import RagContext
from rag.services.conversations import start_conversation
from ragsite import backup, embedded
from ragsite.backup.contents import differences
from ragsite.backup.manifest import Manifest
from ragsite.backup.restoring import NotTheSame
from ragsite.backup.target import ASIDE
from ragsite.testing import WorkerProcess, wait_until
from tests.backups import make_backup, quiet, rewrite, scratch, server_of
from tests.instances import instance_dir

REPOSITORY = Path(__file__).resolve().parent.parent
WAITING = "The ferry waits for nobody."
MEMORY = "Mira keeps her keys in the blue bowl"


def manage(*words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """manage.py as a person runs it, on services that only `environment` names."""
    ours = {k: v for k, v in os.environ.items() if k not in ("DATABASE_URL", "REDIS_URL")}
    return subprocess.run(
        [sys.executable, "manage.py", *words],
        cwd=REPOSITORY,
        env=ours | {"RAGSITE_REDIS_DB": "0"} | environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=180,
        check=False,
    )


def upload(collection: Collection, name: str, text: str) -> Document:
    """A stored file that waits for a worker."""
    file = SimpleUploadedFile(name, text.encode())
    ingest_uploads(collection=collection, uploads=[Upload(name=name, file=file)])
    return Document.objects.get(collection=collection, key=name)


def searched(question: str) -> Any:
    """The hits with all their scores."""
    written = StringIO()
    call_command("search", question, "--json", stdout=written)
    return json.loads(written.getvalue())["hits"]


def fill() -> Document:
    """A document, memory, graph and a conversation; and an upload that waits, which is given."""
    member = MembershipFactory(workspace=get_or_create_workspace(), role="owner")
    collection = CollectionFactory(workspace=member.workspace, slug="notes")
    ready = upload(collection, "harbour.md", "# Harbour\n\nIt lies behind the lighthouse.\n" * 9)
    stages.embed_documents(stages.parse_documents([ready.pk]))
    remember(make_scope(str(member.user.pk), workspace=member.workspace), MEMORY)
    nodes = [make_node(workspace=member.workspace, form=form) for form in ("mira", "bowl")]
    make_edge(nodes[0], "OWNS", nodes[1])
    start_conversation(context=RagContext(user=member.user, workspace=member.workspace))
    return upload(collection, "waiting.md", WAITING)


@pytest.mark.django_db(transaction=True)
def test_backup_destroy_and_restore_elsewhere_give_the_same_answers(
    media_root: Path, tmp_path: Path
) -> None:
    waiting = fill()
    before = searched("lighthouse harbour")
    assert before
    made = make_backup(tmp_path / "backup", secret_key="kept-secret")
    assert made.manifest.tables["documents_document"].rows == 2
    assert len(made.manifest.files) == 2
    shutil.rmtree(media_root)

    with instance_dir() as var:
        site = {"RAGSITE_VAR_DIR": str(var), "MEDIA_ROOT": str(tmp_path / "restored")}
        restored = manage("restore", str(made.path), "--json", **site)
        assert restored.returncode == 0, restored.stderr
        said = json.loads(restored.stdout)
        assert (said["rows"], said["files"]) == (made.manifest.rows, 2)
        assert said["validation"]["clean"]
        assert (var / "secret-key").read_text() == "kept-secret"
        # from the restored site itself, tables and files of which are compared once more
        again = manage("backup", str(tmp_path / "again"), **site)
        assert again.returncode == 0, again.stderr
        second = Manifest.read(tmp_path / "again")
        assert second.files == made.manifest.files
        assert differences(made.manifest.tables, second.tables) == []

        found = manage("search", "lighthouse harbour", "--json", **site)
        assert json.loads(found.stdout)["hits"] == before

        worker = WorkerProcess(
            {
                **os.environ,
                **site,
                "RAGSITE_REDIS_DB": "0",
                "SCHEDULE": str(tmp_path / "beat"),
                "RAGSITE_RECOVERY_SECONDS": "1",
                "RAGSITE_INGESTION_LEASE_SECONDS": "1",
            }
        )
        worker.start()
        try:
            with psycopg.connect(embedded.libpq_url(var), autocommit=True) as database:
                state = "SELECT status FROM documents_document WHERE id = %s"
                wait_until(
                    lambda: database.execute(state, [waiting.pk]).fetchall() == [("ready",)],
                    what="what waited when it was backed up is ready",
                )
                text = "SELECT text FROM documents_chunk WHERE document_id = %s"
                assert database.execute(text, [waiting.pk]).fetchall() == [(WAITING,)]
        finally:
            worker.stop()


@pytest.fixture
def elsewhere(db: None, media_root: Path) -> Iterator[str]:
    """An empty database; its name."""
    with scratch("elsewhere") as database:
        yield database


def restore(path: Path, database: str, media: Path, *, replacing: bool = False) -> backup.Restored:
    return backup.restore(
        folder=path,
        noted=backup.checked(path, say=quiet),
        server=server_of(database),
        media_root=media,
        replace=replacing,
        say=quiet,
    )


def rows(database: str, statement: str) -> list[Any]:
    with server_of(database).connect() as connection:
        return connection.execute(statement).fetchall()  # type: ignore[arg-type]


@pytest.fixture
def archive(tmp_path: Path, media_root: Path, db: None) -> Path:
    media_root.mkdir()
    (media_root / "new.txt").write_text("new")
    return make_backup(tmp_path / "backup").path


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
    schemas = f"SELECT FROM pg_namespace WHERE nspname = '{ASIDE}'"
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
    assert rows(database, f"SELECT FROM pg_namespace WHERE nspname = '{ASIDE}'") == []
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
    with pytest.raises(NotTheSame, match="1 of 4") as caught:
        restore(archive, *occupied, replacing=True)
    (said,) = caught.value.differences
    assert said.startswith("documents_embeddingspace: 1 rows with hash ffffffff… in the backup, 1 ")
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
            f"CREATE SCHEMA {ASIDE}; ALTER TABLE other SET SCHEMA {ASIDE};"
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
        pytest.raises(backup.BackupError, match=r"The site is running: 1 connections \(ragsite\)"),
    ):
        restore(archive, elsewhere, tmp_path / "empty")


def test_an_older_backup_is_compared_then_migrated_also_by_an_owner_with_no_rights(
    elsewhere: str, media_root: Path, tmp_path: Path
) -> None:
    role = f"plain_{elsewhere}"
    made = make_backup(tmp_path / "now")
    with scratch("older") as older:
        restore(made.path, older, tmp_path / "empty")
        with server_of(older).connect() as connection:
            # what `migrate dashboard zero` comes to
            connection.execute("DROP TABLE dashboard_sample")
            undone = "DELETE FROM django_migrations WHERE app = 'dashboard'"
            count = connection.execute(undone).rowcount
        before = make_backup(tmp_path / "before", server=server_of(older))
    assert "dashboard_sample" not in before.manifest.tables
    with scratch("owned", owner=role) as owned:
        url = embedded.database_url(settings.VAR_DIR, owned).replace("ragsite@", f"{role}@", 1)
        done = manage(
            "restore",
            str(before.path),
            "--json",
            DATABASE_URL=url,
            MEDIA_ROOT=str(tmp_path / "media"),
        )
        assert done.returncode == 0, done.stderr
        assert json.loads(done.stdout)["migrations_applied"] == count > 0
        assert rows(owned, "SELECT count(*) FROM dashboard_sample") == [(0,)]
        owner = "SELECT DISTINCT tableowner FROM pg_tables WHERE schemaname = 'public'"
        assert rows(owned, owner) == [(role,)]


@pytest.mark.django_db(transaction=True)
def test_a_file_deleted_meanwhile_is_named_and_the_rest_is_kept(
    media_root: Path, tmp_path: Path
) -> None:
    collection = CollectionFactory(workspace=get_or_create_workspace())
    kept, lost = (upload(collection, name, name) for name in ("kept.txt", "lost.txt"))

    def delete(said: str) -> None:
        if "rows of" in said:  # the dump is written
            Document.objects.get(pk=lost.pk).file.delete(save=False)

    made = make_backup(tmp_path / "backup", say=delete)
    assert made.manifest.lost == (lost.file.name,)
    assert [file.path for file in made.manifest.files] == [kept.file.name]
    assert made.manifest.tables["documents_document"].rows == 2
