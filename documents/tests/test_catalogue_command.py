"""`manage.py catalogue`: tables become documents that are found, and stay in step."""

import io
import json
import os
import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from documents.models import Chunk, Document, IngestionRun

pytestmark = pytest.mark.django_db


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    file = tmp_path / "shop.db"
    run_sql(
        file,
        "CREATE TABLE customers (id integer PRIMARY KEY, full_name text);"
        "CREATE TABLE customer_revenue (customer int REFERENCES customers, total numeric);",
    )
    return file


def run_sql(file: Path, script: str) -> None:
    with sqlite3.connect(file) as database:
        database.executescript(script)
    database.close()


def catalogue(*arguments: str, code: int = 0) -> dict[str, Any]:
    """What the command prints as JSON, after it ended with `code`."""
    out = io.StringIO()
    if code:
        with pytest.raises(SystemExit) as ended:
            call_command("catalogue", *arguments, "--collection", "c", "--json", stdout=out)
        assert ended.value.code == code
    else:
        call_command("catalogue", *arguments, "--collection", "c", "--json", stdout=out)
    return json.loads(out.getvalue())


def keys() -> set[str]:
    return set(Document.objects.values_list("key", flat=True))


def test_each_table_is_a_document_with_its_keys(shop: Path) -> None:
    report = catalogue("--dsn", f"sqlite:///{shop}")
    assert (report["documents"]["total"], report["documents"]["ready"]) == (2, 2)
    assert keys() == {"main.customers", "main.customer_revenue"}
    revenue = Document.objects.get(key="main.customer_revenue")
    assert revenue.title == "main.customer_revenue: customer revenue"
    assert revenue.metadata["kind"] == "table"
    assert revenue.metadata["foreign_keys"] == [
        {"columns": ["customer"], "references": "main.customers", "referenced_columns": ["id"]}
    ]
    assert "full_name (full name): TEXT" in Chunk.objects.get(document__key="main.customers").text


def test_a_second_run_leaves_unchanged_tables_alone(shop: Path) -> None:
    catalogue("--dsn", f"sqlite:///{shop}")
    chunk = Chunk.objects.get(document__key="main.customers").pk
    run_sql(shop, "ALTER TABLE customer_revenue ADD COLUMN currency text")
    report = catalogue("--dsn", f"sqlite:///{shop}")
    assert (report["documents"]["ready"], report["documents"]["skipped"]) == (1, 1)
    assert Chunk.objects.get(document__key="main.customers").pk == chunk
    assert "currency" in Chunk.objects.get(document__key="main.customer_revenue").text


def test_tables_that_vanished_are_reported_and_removed_only_when_asked(shop: Path) -> None:
    catalogue("--dsn", f"sqlite:///{shop}")
    catalogue("--ddl", write(shop.with_name("other.sql"), "CREATE TABLE other (a int)"))
    run_sql(shop, "DROP TABLE customer_revenue")
    report = catalogue("--dsn", f"sqlite:///{shop}")
    assert (report["vanished"], report["deleted"]) == (["main.customer_revenue"], False)
    assert len(keys()) == 3
    report = catalogue("--dsn", f"sqlite:///{shop}", "--delete")
    assert (report["vanished"], report["deleted"]) == (["main.customer_revenue"], True)
    assert keys() == {"main.customers", "other"}
    assert not Chunk.objects.filter(text__contains="revenue").exists()


def test_documents_that_are_no_tables_are_never_removed(shop: Path) -> None:
    note = write(shop.with_name("note.txt"), "A note that was here before.")
    call_command("ingest", note, "--collection", "c", "--json", stdout=io.StringIO())
    assert catalogue("--dsn", f"sqlite:///{shop}", "--delete")["vanished"] == []
    assert len(keys()) == 3


def test_scripts_are_read_with_their_broken_parts_named(tmp_path: Path) -> None:
    script = write(tmp_path / "a.sql", "CREATE TABLE good (a int);\nCREATE TABLE bad (((;")
    report = catalogue("--ddl", script, code=1)
    assert keys() == {"good"}
    assert report["failures"][0]["name"] == "bad"
    assert "line 2" in report["failures"][0]["reason"]


def test_a_table_that_can_no_longer_be_read_is_not_taken_for_gone(tmp_path: Path) -> None:
    script = tmp_path / "a.sql"
    catalogue("--ddl", write(script, "CREATE TABLE a (b int); CREATE TABLE c (d int);"))
    report = catalogue(
        "--ddl", write(script, "CREATE TABLE a (b int); CREATE TABLE c (((;"), "--delete", code=1
    )
    assert report["vanished"] == []
    assert keys() == {"a", "c"}


def test_the_address_may_come_from_the_environment_and_stays_there(
    shop: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SHOP_DSN", f"sqlite:///{shop}")
    assert catalogue("--dsn-env", "SHOP_DSN")["documents"]["ready"] == 2
    run = IngestionRun.objects.get()
    assert run.source == "catalogue of sqlite:///shop.db"
    assert str(shop.parent) not in json.dumps(
        list(Document.objects.values("key", "source", "declared", "metadata")), default=str
    )


def test_samples_are_shown_only_when_asked_for(shop: Path) -> None:
    run_sql(shop, "INSERT INTO customers VALUES (1, 'Ada')")
    catalogue("--dsn", f"sqlite:///{shop}")
    assert not Chunk.objects.filter(text__contains="Ada").exists()
    catalogue("--dsn", f"sqlite:///{shop}", "--samples", "3")
    assert Chunk.objects.filter(text__contains="Such as Ada.").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--dsn", "postgresql://u:hunter2@127.0.0.1:1/x"], "does not answer"),
        (["--dsn", "nonsense"], "Write it as"),
        (["--dsn-env", "NOT_SET_ANYWHERE"], "NOT_SET_ANYWHERE is not set"),
        (["--ddl", "/no/such/file.sql"], "No such file"),
        (["--dsn", "sqlite:///x.db", "--samples", "1000"], "0 to 20"),
        (["--ddl", "x.sql", "--samples", "3"], "hold no values"),
    ],
)
def test_what_cannot_be_done_ends_with_2_and_the_cure(arguments: list[str], message: str) -> None:
    with pytest.raises(CommandError, match=message) as caught:
        call_command("catalogue", *arguments, "--collection", "c")
    assert caught.value.returncode == 2
    assert "hunter2" not in str(caught.value)
    assert not Document.objects.exists()


def test_scripts_without_tables_end_with_2(tmp_path: Path) -> None:
    script = write(tmp_path / "a.sql", "CREATE TABLE shop.a (b int); SELECT 1;")
    with pytest.raises(CommandError, match="no tables of schema crm"):
        call_command("catalogue", "--ddl", script, "--schema", "crm", "--collection", "c")


def test_a_schema_keeps_the_others_out(tmp_path: Path) -> None:
    script = write(tmp_path / "a.sql", "CREATE TABLE shop.a (b int); CREATE TABLE crm.b (c int);")
    catalogue("--ddl", script)
    assert catalogue("--ddl", script, "--schema", "crm", "--delete")["vanished"] == []
    assert keys() == {"shop.a", "crm.b"}


def test_sqlalchemy_and_sqlglot_are_only_loaded_by_the_command() -> None:
    loaded = subprocess.run(
        [
            sys.executable,
            "-c",
            "import django, sys; django.setup(); import documents.tasks, documents.services,"
            " documents.urls; print([m for m in ('sqlalchemy', 'sqlglot') if m in sys.modules])",
        ],
        env={**os.environ, "DJANGO_SETTINGS_MODULE": "ragsite.settings"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert loaded.stdout.strip() == "[]"


def write(path: Path, text: str) -> str:
    path.write_text(text)
    return str(path)
