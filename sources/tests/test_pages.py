"""A person adds a source in the browser, tries it, reads it and removes it."""

from pathlib import Path
from typing import Any

import pytest
from django.test import Client

from accounts.models import Membership, Role
from documents.models import Document
from documents.tests.factories import CollectionFactory, MembershipFactory
from sources import runs
from sources.models import DataSource

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("media_root")]


@pytest.fixture
def folder(tmp_path: Path, settings: Any) -> Path:
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "rail.md").write_text("Trains are booked by the office.")
    settings.INGEST_ROOTS = [str(folder)]
    return folder


@pytest.fixture
def ann(client: Client) -> Membership:
    member: Membership = MembershipFactory(role=Role.EDITOR)
    CollectionFactory(workspace=member.workspace, slug="team")
    client.force_login(member.user)
    return member


def test_a_source_is_tried_kept_read_and_removed(
    client: Client, ann: Membership, folder: Path
) -> None:
    form = {"name": "Team", "option_path": str(folder), "option_glob": "**/*", "schedule": "15"}
    form |= {"collection": "team", "delete_missing": "on"}
    refused = client.post("/sources/new/folder/", form | {"option_path": "/etc"})
    assert refused.status_code == 400
    assert "RAGSITE_INGEST_ROOTS" in refused.content.decode()
    kept = client.post("/sources/new/folder/", form, follow=True).content.decode()
    assert "among others: rail.md" in kept

    source = DataSource.objects.get()
    assert "1 new" in client.get(f"/sources/{source.pk}/preview/").content.decode()
    client.post(f"/sources/{source.pk}/run/")
    run = runs.work_on(source.pk)
    assert run is not None
    assert run.user == ann.user
    assert "Up to date" in client.get("/sources/").content.decode()
    assert Document.objects.get().source == "rail.md"

    client.post(f"/sources/{source.pk}/change/", form | {"schedule": "0 6 * * *"})
    source.refresh_from_db()
    assert source.schedule == "0 6 * * *"
    assert client.post(f"/sources/{source.pk}/change/", form | {"schedule": "x"}).status_code == 400
    client.post(f"/sources/{source.pk}/remove/", {"documents": "delete"})
    assert not DataSource.objects.exists()
    assert not Document.objects.exists()


def test_what_was_stopped_is_done_once_it_is_confirmed(
    client: Client, ann: Membership, folder: Path
) -> None:
    form = {"name": "Team", "option_path": str(folder), "option_glob": "**/*", "schedule": ""}
    client.post("/sources/new/folder/", form | {"collection": "team", "delete_missing": "on"})
    source = DataSource.objects.get()
    client.post(f"/sources/{source.pk}/run/")
    runs.work_on(source.pk)
    (folder / "rail.md").unlink()
    client.post(f"/sources/{source.pk}/run/")
    runs.work_on(source.pk)
    assert "It lists nothing" in client.get(f"/sources/{source.pk}/").content.decode()
    assert "That is meant: do it" in client.get(f"/sources/{source.pk}/preview/").content.decode()
    client.post(f"/sources/{source.pk}/run/", {"deletions": "any"})
    runs.work_on(source.pk)
    assert not Document.objects.exists()


def test_options_are_asked_for_by_their_types(client: Client, ann: Membership) -> None:
    page = client.get("/sources/new/imap/").content.decode()
    assert '<option value="starttls">' in page
    assert 'type="date" name="option_since"' in page
    form = {"name": "Mail", "collection": "team", "schedule": "", "option_host": "imap.example.org"}
    form |= {"option_username": "ann", "option_password": "secret", "option_folders": "**"}
    refused = client.post(
        "/sources/new/imap/", form | {"option_security": "tls", "option_port": "99999"}
    ).content.decode()
    assert "port: Input should be less than or equal to 65535" in refused
    assert "secret" not in refused
