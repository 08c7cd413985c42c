"""Documents of a source are seen by those who may read them there."""

import grp
import os
import pwd
from pathlib import Path
from typing import Any

import pytest
from django.test import Client

from accounts.groups import add_members, create_group, update_group
from accounts.members import set_external_names
from accounts.models import Membership, Role
from common.errors import InvalidInput
from documents.models import Document
from documents.tests.factories import CollectionFactory, MembershipFactory
from sources import runs, services
from sources.connectors.folder import EVERYBODY, Folder, FolderOptions
from sources.models import DataSource, DataSourceItem

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("media_root")]
OWNER, GROUP = pwd.getpwuid(os.getuid()).pw_name, grp.getgrgid(os.getgid()).gr_name


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A folder with a file for all, one for its group, one for its owner, and one that everybody
    could read if they came into its folder."""
    place = tmp_path / "place"
    place.mkdir()
    place.chmod(0o755)
    for name, mode in (("all.md", 0o644), ("team.md", 0o640), ("own.md", 0o600)):
        file = place / name
        file.write_text(f"This is {name}.")
        file.chmod(mode)
        os.chown(file, os.getuid(), os.getgid())
    folder = place / "closed"
    folder.mkdir(mode=0o750)
    folder.chmod(0o750)
    os.chown(folder, os.getuid(), os.getgid())
    (folder / "in.md").write_text("This is in a folder.")
    (folder / "in.md").chmod(0o644)
    os.chown(folder / "in.md", os.getuid(), os.getgid())
    return place


@pytest.fixture
def owner() -> Membership:
    member: Membership = MembershipFactory(role=Role.OWNER)
    return member


def read(source: DataSource) -> None:
    services.start_run(source=source, enqueue=False)
    runs.work_on(source.pk)


def lists() -> dict[str, list[str] | None]:
    return dict(Document.objects.values_list("source", "access"))


def test_readers_of_a_file_are_those_whom_all_folders_above_let_through(place: Path) -> None:
    with Folder(FolderOptions(path=str(place))) as folder:
        found = {item.name: set(item.readers or ()) for item in folder.list_items()}
    assert found == {
        "all.md": {OWNER, GROUP, EVERYBODY},
        "team.md": {OWNER, GROUP},
        "own.md": {OWNER},
        "closed/in.md": {OWNER, GROUP},
    }


def test_readers_become_groups_and_members_and_unknown_ones_nobody_but_owners(
    owner: Membership, place: Path
) -> None:
    workspace = owner.workspace
    team = create_group(workspace=workspace, name="Team", external_names=[GROUP])
    firm = create_group(workspace=workspace, name=EVERYBODY.upper())
    source = services.create_source(
        collection=CollectionFactory(workspace=workspace, default_language="en"),
        name="Share",
        connector="folder",
        options={"path": str(place)},
        maps_readers=True,
        access_rules=[{"glob": "own.*", "access": [f"user:{owner.user_id}"]}],
    )
    read(source)
    assert lists() == {
        "all.md": sorted([team.principal, firm.principal]),
        "team.md": [team.principal],
        "own.md": [f"user:{owner.user_id}"],
        "closed/in.md": [team.principal],
    }
    # A group that is called otherwise gives nothing more; nobody is left but the owners.
    update_group(group=team, external_names=["another"])
    read(source)
    assert lists()["team.md"] == [f"user:{owner.user_id}"]
    assert lists()["all.md"] == [firm.principal]


def test_what_changes_at_the_source_changes_who_sees_it_though_the_text_does_not(
    owner: Membership, place: Path
) -> None:
    bob = MembershipFactory(workspace=owner.workspace)
    set_external_names(membership=bob, names=[OWNER.upper()])
    everybody = create_group(workspace=owner.workspace, name=EVERYBODY)
    source = services.create_source(
        collection=CollectionFactory(workspace=owner.workspace, default_language="en"),
        name="Share",
        connector="folder",
        options={"path": str(place)},
        maps_readers=True,
    )
    read(source)
    assert lists()["closed/in.md"] == [f"user:{bob.user_id}"]
    fetched = dict(DataSourceItem.objects.values_list("name", "fetched_version"))
    (place / "closed").chmod(0o755)
    read(source)
    assert lists()["closed/in.md"] == sorted([f"user:{bob.user_id}", everybody.principal])
    assert dict(DataSourceItem.objects.values_list("name", "fetched_version")) == fetched


def test_a_kind_that_tells_no_readers_cannot_map_them(owner: Membership) -> None:
    with pytest.raises(InvalidInput, match="do not report"):
        services.create_source(
            collection=CollectionFactory(workspace=owner.workspace),
            name="Cloud",
            connector="webdav",
            options={"url": "https://cloud.example.org/dav/"},
            maps_readers=True,
        )


def test_rules_of_folders_are_written_with_names_in_the_form(
    client: Client, owner: Membership, place: Path, settings: Any
) -> None:
    settings.INGEST_ROOTS = [str(place)]
    board = create_group(workspace=owner.workspace, name="Board")
    add_members(group=board, memberships=[owner])
    ann = MembershipFactory(workspace=owner.workspace, user__username="ann")
    CollectionFactory(workspace=owner.workspace, slug="team")
    client.force_login(owner.user)
    form = {"name": "Share", "option_path": str(place), "option_glob": "**/*", "schedule": ""}
    form |= {"collection": "team", "access": [board.principal]}
    wrong = client.post("/sources/new/folder/", form | {"access_rules": "closed/**: Nobody"})
    assert "is not a group or member of this workspace" in wrong.text
    assert client.post("/sources/new/folder/", form | {"access_rules": "all"}).status_code == 400
    client.post(
        "/sources/new/folder/",
        form | {"access_rules": "closed/**: board, ann\nall.md: everybody", "maps_readers": "on"},
    )
    source = DataSource.objects.get()
    assert source.maps_readers
    assert source.access == [board.principal]
    assert source.access_rules == [
        {"glob": "closed/**", "access": [board.principal, f"user:{ann.user_id}"]},
        {"glob": "all.md", "access": None},
    ]
    page = client.get(f"/sources/{source.pk}/change/").text
    assert "closed/**: Board (group), ann" in page
    assert "Board (group)" in page
