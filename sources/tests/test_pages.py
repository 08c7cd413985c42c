"""A person adds a source in the browser, tries it, reads it and removes it."""

from pathlib import Path
from typing import Any

import pytest
from django.test import Client

from accounts.models import Membership, Role
from documents.models import Document
from documents.tests.factories import CollectionFactory, MembershipFactory
from documents.tests.web_server import running
from sources import runs
from sources.checks import check_connectors
from sources.connectors import connector_class, kinds
from sources.connectors.folder import Folder
from sources.models import DataSource
from sources.tests.sites import Site

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("media_root")]


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
    assert "files include: rail.md" in kept

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
    assert "The source lists no files, but" in client.get(f"/sources/{source.pk}/").content.decode()
    assert (
        "Confirm the deletions and run"
        in client.get(f"/sources/{source.pk}/preview/").content.decode()
    )
    client.post(f"/sources/{source.pk}/run/", {"deletions": "any"})
    runs.work_on(source.pk)
    assert not Document.objects.exists()


def test_a_web_site_is_added_by_its_address_and_few_options(
    client: Client, ann: Membership, settings: Any, tmp_path: Path
) -> None:
    settings.SOURCES_DIR = tmp_path
    page = client.get("/sources/new/web/").content.decode()
    assert (
        page.index("option_url") < page.index('<details class="more"') < page.index("option_depth")
    )
    assert 'value="1440"' in page
    form = {"name": "Site", "collection": "team", "schedule": "", "option_depth": "two"}
    with running(Site()) as site:
        site.page("/", "Trains are booked by the office.", "/plan.pdf")
        site.file("/plan.pdf", b"%PDF-1.7", "application/pdf")
        form |= {"option_url": site.url(), "option_delay": "0"}
        refused = client.post("/sources/new/web/", form)
        assert refused.status_code == 400
        assert '<details class="more" open>' in refused.content.decode()
        kept = client.post("/sources/new/web/", form | {"option_depth": "2"}, follow=True)
        assert "files include: index.html" in kept.content.decode()  # and no file, unticked
    source = DataSource.objects.get()
    assert source.options["files"] is False
    page = client.get(f"/sources/{source.pk}/change/").content.decode()
    assert 'name="option_files" id="id_option_files"' in page.replace("checked ", "")
    assert "checked" not in page[page.index('name="option_files"') :].partition(">")[0]
    assert "delete_missing" not in client.get("/sources/new/feed/").content.decode()


class Attic(Folder):
    """A kind of somebody's own."""

    kind = "attic"
    label = "The attic"


def test_kinds_of_ones_own_are_offered_and_wrong_ones_named(
    client: Client, ann: Membership, settings: Any
) -> None:
    settings.CONNECTORS = {"attic": f"{__name__}.Attic"}
    assert kinds()[0] == "attic"
    assert connector_class("attic") is Attic
    assert "The attic" in client.get("/sources/").content.decode()
    assert list(check_connectors(None)) == []
    settings.CONNECTORS = {"loft": f"{__name__}.Attic", "cellar": "nowhere.Cellar"}
    first, second = check_connectors(None)
    assert "kind is “loft”" in first.msg
    assert "nowhere" in second.msg


def test_options_are_asked_for_by_their_types(client: Client, ann: Membership) -> None:
    page = client.get("/sources/new/imap/").content.decode()
    assert '<option value="starttls">' in page
    assert 'type="date" name="option_since"' in page
    form = {"name": "Mail", "collection": "team", "schedule": "", "option_host": "imap.example.org"}
    form |= {"option_username": "ann", "option_password": "secret", "option_folders": "**"}
    refused = client.post(
        "/sources/new/imap/", form | {"option_security": "tls", "option_port": "99999"}
    ).content.decode()
    assert ">Input should be less than or equal to 65535" in refused
    assert "secret" not in refused
