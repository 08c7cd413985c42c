"""Backed up, destroyed and restored: the same rows, files and answers, on another server."""

import json
import os
import shutil
import subprocess
import sys
from io import StringIO
from pathlib import Path
from typing import Any

import psycopg
import pytest
from django.conf import settings
from django.core.files.uploadedfile import SimpleUploadedFile
from django.core.management import call_command

from accounts.services import get_or_create_workspace
from documents.ingestion import pipeline
from documents.models import Collection, Document
from documents.services import Upload, ingest_uploads
from documents.tests.factories import CollectionFactory, MembershipFactory
from graph.tests.factories import make_edge, make_node
from memory.tests.factories import make_scope, remember
from rag.context import RagContext
from rag.services.conversations import start_conversation
from ragsite import embedded
from ragsite.backup.database import table_differences
from ragsite.backup.manifest import Manifest
from tables.models import Table
from tables.services import correct_column
from tests.backups import WORKER, make_backup, restore, rows, scratch, server_of
from tests.instances import instance_dir
from tests.plugin import WorkerProcess, wait_until

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


def site_of(database: str, media: Path, *, user: str = "ragsite") -> dict[str, str]:
    """The environment of a site in another database of the test's own PostgreSQL."""
    url = embedded.database_url(settings.VAR_DIR, database).replace("ragsite@", f"{user}@", 1)
    return {"DATABASE_URL": url, "MEDIA_ROOT": str(media)}


def upload(collection: Collection, name: str, text: str) -> Document:
    """A stored file that waits for a worker."""
    file = SimpleUploadedFile(name, text.encode())
    ingest_uploads(collection=collection, uploads=[Upload(name=name, file=file)])
    return Document.objects.get(collection=collection, key=name)


def printed(*words: str) -> Any:
    """What a command prints as JSON."""
    written = StringIO()
    call_command(*words, "--json", stdout=written)
    return json.loads(written.getvalue())


def fill() -> Document:
    """Documents, one with a table, memory, graph and a conversation; and an upload that waits,
    which is given."""
    member = MembershipFactory(workspace=get_or_create_workspace(), role="owner")
    collection = CollectionFactory(workspace=member.workspace, slug="notes")
    ready = upload(collection, "harbour.md", "# Harbour\n\nIt lies behind the lighthouse.\n" * 9)
    pipeline.embed_documents(pipeline.parse_documents([ready.pk]))
    remember(make_scope(str(member.user.pk), workspace=member.workspace), MEMORY)
    nodes = [make_node(workspace=member.workspace, form=form) for form in ("mira", "bowl")]
    make_edge(nodes[0], "OWNS", nodes[1])
    prices = "Bike,Price\nTrail,4500\nCity,799\n"
    table = upload(collection, "prices.csv", prices)
    pipeline.embed_documents(pipeline.parse_documents([table.pk]))
    correct_column(table=Table.objects.get(), column="Price", name="Net price", unit="EUR")
    start_conversation(context=RagContext(user=member.user, workspace=member.workspace))
    return upload(collection, "waiting.md", WAITING)


@pytest.mark.django_db(transaction=True)
def test_backup_destroy_and_restore_elsewhere_give_the_same_answers(
    media_root: Path, tmp_path: Path
) -> None:
    waiting = fill()
    before = printed("search", "lighthouse harbour")["hits"]
    assert before
    summed = "What is the sum of the net prices?"
    computed = printed("ask", summed)
    assert "5,299 EUR" in computed["answer"], computed
    made = make_backup(tmp_path / "backup", secret_key="kept-secret")
    assert made.tables["documents_document"].rows == 3
    assert len(made.files) == 3
    shutil.rmtree(media_root)

    with instance_dir() as var:
        site = {"RAGSITE_VAR_DIR": str(var), "MEDIA_ROOT": str(tmp_path / "restored")}
        restored = manage("restore", str(tmp_path / "backup"), "--json", **site)
        assert restored.returncode == 0, restored.stderr
        said = json.loads(restored.stdout)
        assert (said["rows"], said["files"]) == (made.rows, 3)
        assert said["validation"]["clean"]
        assert (var / "secret-key").read_text() == "kept-secret"
        # from the restored site itself, tables and files of which are compared once more
        again = manage("backup", str(tmp_path / "again"), **site)
        assert again.returncode == 0, again.stderr
        second = Manifest.read(tmp_path / "again")
        assert second.files == made.files
        assert table_differences(made.tables, second.tables) == []

        found = manage("search", "lighthouse harbour", "--json", **site)
        assert json.loads(found.stdout)["hits"] == before
        asked = manage("ask", summed, "--json", **site)
        again_computed = json.loads(asked.stdout)
        for part in ("answer", "citations"):
            assert again_computed[part] == computed[part]

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


@pytest.mark.nightly
@pytest.mark.django_db
def test_an_older_backup_is_compared_then_migrated_also_by_an_owner_with_no_rights(
    media_root: Path, tmp_path: Path
) -> None:
    role = f"plain_{WORKER}"
    make_backup(tmp_path / "now")
    with scratch("older") as older:
        restore(tmp_path / "now", older, tmp_path / "empty")
        with server_of(older).connect() as connection:
            # what `migrate dashboard zero` comes to
            connection.execute("DROP TABLE dashboard_sample")
            undone = "DELETE FROM django_migrations WHERE app = 'dashboard'"
            count = connection.execute(undone).rowcount
        before = make_backup(tmp_path / "before", server=server_of(older))
    assert "dashboard_sample" not in before.tables
    with scratch("owned", owner=role) as owned:
        site = site_of(owned, tmp_path / "media", user=role)
        done = manage("restore", str(tmp_path / "before"), "--json", **site)
        assert done.returncode == 0, done.stderr
        assert json.loads(done.stdout)["migrations_applied"] == count > 0
        assert rows(owned, "SELECT count(*) FROM dashboard_sample") == [(0,)]
        owner = "SELECT DISTINCT tableowner FROM pg_tables WHERE schemaname = 'public'"
        assert rows(owned, owner) == [(role,)]


@pytest.mark.nightly
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
    assert made.lost == (lost.file.name,)
    assert [file.path for file in made.files] == [kept.file.name]
    assert made.tables["documents_document"].rows == 2
    with scratch("lost") as database:
        restored = manage(
            "restore", str(tmp_path / "backup"), **site_of(database, tmp_path / "media-2")
        )
    assert restored.returncode == 3, restored.stderr
    assert f"not in the backup: {lost.file.name}\n" in restored.stdout
    assert "have a stored file that is not there" in restored.stdout
