"""Secrets of sources, keys of models and passwords of databases leave the site only encrypted."""

import subprocess
from pathlib import Path

import pytest
from django.db import connection

from documents.tests.factories import CollectionFactory
from model_servers.options import ConnectionOptions
from model_servers.services import connect_model
from model_servers.tests.servers import KEY
from rag.models import DatabaseConnection
from rag.sql.connections import encrypted_password
from ragsite.backup.database import find_program
from ragsite.backup.manifest import DUMP
from sources.services import create_source, make_webhook_secret
from sources.tests.places import PASSWORD
from tests.backups import make_backup

DATABASE_PASSWORD = "correct horse battery"


@pytest.mark.django_db(transaction=True)
@pytest.mark.usefixtures("media_root")
def test_a_backup_holds_no_secret_in_plain_text(tmp_path: Path) -> None:
    source = create_source(
        collection=CollectionFactory(),
        name="Cloud",
        connector="webdav",
        options={"url": "https://cloud.example.org/", "username": "ann", "password": PASSWORD},
    )
    secret = make_webhook_secret(source=source)
    given = {"kind": "openai", "address": "https://models.example.org", "model": "m", "key": KEY}
    model = connect_model(options=ConnectionOptions.from_text(given))
    database = DatabaseConnection.objects.create(
        workspace=source.workspace,
        collection=source.collection,
        name="Shop",
        address="postgresql://db.example.org/shop",
        username="reader",
        credentials=encrypted_password(DATABASE_PASSWORD),
        seconds=10,
        max_rows=10,
    )
    make_backup(tmp_path / "backup")
    program, _ = find_program("pg_restore", major=connection.pg_version // 10000)
    dump = subprocess.run(
        [program, "--file=-", str(tmp_path / "backup" / DUMP)], capture_output=True, check=True
    ).stdout
    assert b"cloud.example.org" in dump
    assert b"models.example.org" in dump
    assert b"db.example.org" in dump
    for plain in (PASSWORD, KEY, DATABASE_PASSWORD, secret, secret.removeprefix("whsec_")):
        assert plain.encode() not in dump
        assert plain.encode().hex().encode() not in dump  # as a column of bytes is written
    for stored in (source.credentials, model.credentials, database.credentials):
        assert bytes(stored).hex().encode() in dump
