"""Sources over the API: what each may do, and that no secret is ever in an answer."""

from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import Group
from rest_framework.test import APIClient

from accounts.audit import Kind, summarize
from accounts.models import Change, IdempotencyRecord, Membership, Role
from accounts.tests.keys import client_of_key
from documents.models import Document
from documents.tests.factories import CollectionFactory, MembershipFactory
from sources import runs, services
from sources.models import DataSource, DataSourceItem
from sources.tests.places import PASSWORD, WebDavPlace, opened

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("media_root")]

V1 = "/api/v1/sources/"


@pytest.fixture
def ann(settings: Any, tmp_path: Path) -> Membership:
    settings.INGEST_ROOTS = [str(tmp_path)]
    member: Membership = MembershipFactory(role=Role.EDITOR)
    CollectionFactory(workspace=member.workspace, slug="notes")
    return member


@pytest.fixture
def client(ann: Membership) -> APIClient:
    return client_of_key(ann)


@pytest.fixture
def source(ann: Membership, folder: Path) -> DataSource:
    return services.create_source(
        collection=ann.workspace.collections.get(slug="notes"),
        name="Team",
        connector="folder",
        options={"path": str(folder)},
    )


def place(folder: Path) -> dict[str, Any]:
    return {"connector": "folder", "options": {"path": str(folder)}}


def test_a_source_is_tried_made_read_changed_and_deleted(client: APIClient, folder: Path) -> None:
    found = client.post(f"{V1}try/", place(folder)).json()
    assert [item["name"] for item in found["items"]] == ["rail.md"]
    body = {"name": "Team", "collection": "notes", **place(folder)}
    made = client.post(V1, body, headers={"Idempotency-Key": "1"})
    assert made.status_code == 201
    again = client.post(V1, body, headers={"Idempotency-Key": "1"})
    assert again.json() == made.json()
    assert client.post(V1, body).status_code == 409
    one = made.headers["Location"]
    source = DataSource.objects.get()

    preview = client.post(f"{one}dry-run/").json()
    assert client.post(f"{one}preview/").json() == preview
    assert (preview["new_count"], preview["new"], preview["would_stop"]) == (1, ["rail.md"], "")
    started = client.post(f"{one}runs/")
    assert started.status_code == 202
    assert client.post(f"{one}runs/").status_code == 409
    runs.work_on(source.pk)
    (run,) = client.get(f"{one}runs/").json()["results"]
    assert (run["id"], run["cause"], run["state"]) == (started.json()["id"], "person", "succeeded")
    assert run["user"] == str(source.created_by)
    assert client.get(one).json()["item_count"] == 1

    etag = client.get(one).headers["ETag"]
    changed = client.patch(one, {"schedule": "0 6 * * 1-5"}, headers={"If-Match": etag})
    assert changed.json()["schedule"] == "0 6 * * 1-5"
    assert client.patch(one, {"name": "x"}, headers={"If-Match": etag}).status_code == 412
    assert client.patch(one, {"schedule": "often"}).json()["errors"][0]["attr"] == "schedule"
    assert client.get(V1, {"collection": "notes", "problem": "any"}).json()["results"] == []
    assert len(client.get(V1, {"collection": "notes"}).json()["results"]) == 1
    assert client.delete(f"{one}?documents=delete").status_code == 204
    assert not Document.objects.exists()


def test_a_run_that_would_stop_is_allowed_and_one_is_cancelled(
    client: APIClient, source: DataSource, folder: Path
) -> None:
    client.post(f"{V1}{source.pk}/runs/")
    runs.work_on(source.pk)
    (folder / "rail.md").unlink()
    assert (
        "The source lists no files, but"
        in client.post(f"{V1}{source.pk}/dry-run/").json()["would_stop"]
    )
    client.post(f"{V1}{source.pk}/runs/")
    runs.work_on(source.pk)
    answer = client.get(f"{V1}{source.pk}/").json()
    assert (answer["state"], answer["problem"]) == ("dead", "stopped")
    assert len(client.get(V1, {"problem": "stopped"}).json()["results"]) == 1
    client.post(f"{V1}{source.pk}/runs/", {"allow_deletions": True})
    cancelled = client.post(f"{V1}{source.pk}/cancel/")
    assert cancelled.status_code == 200
    assert cancelled.json() == client.post(f"{V1}{source.pk}/cancel/").json()
    run = runs.work_on(source.pk)
    assert run is not None
    assert run.cancel_requested_at is not None


def test_a_password_goes_in_and_never_comes_out(
    client: APIClient, ann: Membership, tmp_path: Path
) -> None:
    with opened(WebDavPlace, tmp_path / "cloud") as cloud:
        cloud.write("rail.md", "Trains are booked by the office.")
        body = {"name": "Cloud", "collection": "notes", "connector": "webdav"}
        wrong = {**cloud.options, "password": "wrong"}
        refused = client.post(V1, {**body, "options": wrong}, headers={"Idempotency-Key": "k"})
        assert (refused.status_code, refused.json()["code"]) == (424, "source_unavailable")
        assert not IdempotencyRecord.objects.exists()  # it may be sent again
        made = client.post(
            V1, {**body, "options": cloud.options}, headers={"Idempotency-Key": "k2"}
        )
        assert made.status_code == 201
        one = made.headers["Location"]
        kept = {**cloud.options}
        del kept["password"]
        client.patch(one, {"options": kept})  # without it, it stays
        assert client.post(f"{one}preview/").json()["new"] == ["rail.md"]
        answers = [made, client.get(one), client.get(V1), client.get(f"{one}runs/")]
        assert all(PASSWORD not in answer.content.decode() for answer in answers)
        assert client.get(one).json()["has_secrets"] is True
        record = IdempotencyRecord.objects.get()
        assert PASSWORD not in record.body


def test_viewers_read_without_options(ann: Membership, source: DataSource, folder: Path) -> None:
    viewer = client_of_key(MembershipFactory(workspace=ann.workspace, role=Role.VIEWER))
    one = f"{V1}{source.pk}/"
    seen = viewer.get(one).json()
    assert (seen["options"], seen["access_rules"]) == (None, None)
    assert str(folder) not in viewer.get(V1).content.decode()
    reading = client_of_key(ann, "read")
    assert reading.post(f"{one}runs/").json()["code"] == "insufficient_scope"


def test_names_of_failed_files_are_for_those_who_may_see_the_documents(
    client: APIClient, ann: Membership, source: DataSource
) -> None:
    group = Group.objects.create(name="board")
    DataSource.objects.update(access_rules=[{"glob": "board/**", "access": [f"group:{group.pk}"]}])
    for name in ("rail.md", "board/salaries.md"):
        DataSourceItem.objects.create(
            workspace=ann.workspace, source=source, key=name, name=name, version="1", failures=3
        )
    failures = f"{V1}{source.pk}/failures/"
    assert [each["name"] for each in client.get(failures).json()["results"]] == ["rail.md"]
    assert client.get(f"{V1}{source.pk}/").json()["failed_count"] == 2
    ann.user.groups.add(group)
    assert len(client.get(failures).json()["results"]) == 2
    retried = client.post(f"{V1}{source.pk}/retry/")
    assert (retried.status_code, retried.json()["count"]) == (202, 2)
    assert client.post(f"{V1}{source.pk}/retry/").status_code == 409
    assert client.get(failures).json()["results"] == []


def test_no_folder_beyond_the_allowed_ones_is_even_tried(client: APIClient) -> None:
    for path in (V1, f"{V1}try/"):
        body = {"name": "x", "collection": "notes"} if path == V1 else {}
        answer = client.post(path, {**body, "connector": "folder", "options": {"path": "/etc"}})
        assert answer.status_code == 403
        assert "RAGSITE_INGEST_ROOTS" in answer.json()["detail"]
    unknown = client.post(f"{V1}try/", {"connector": "folder", "options": {"paht": "/etc"}})
    assert unknown.json()["errors"][0]["attr"] in {"path", "paht"}
    kinds = {each["connector"]: each for each in client.get(f"{V1}kinds/").json()}
    secret = {option["name"]: option["is_secret"] for option in kinds["webdav"]["options"]}
    assert (secret["password"], secret["username"]) == (True, False)


def test_who_did_what_is_in_the_history(client: APIClient, source: DataSource) -> None:
    one = f"{V1}{source.pk}/"
    client.patch(one, {"schedule": "15", "name": "Office"})
    client.post(f"{one}runs/")
    client.post(f"{one}cancel/")
    secret = client.post(f"{one}webhook/")
    assert secret.headers["Cache-Control"] == "no-store"
    client.delete(f"{one}webhook/")
    client.delete(one)
    told = Change.objects.filter(kind=Kind.SOURCE, thing=source.pk).order_by("id")
    assert [summarize(change).split(" ")[0] for change in told] == [
        *("made", "changed", "started", "cancelled", "changed", "changed", "deleted")
    ]
    assert told[1].details["fields"] == ["name", "schedule"]
    assert summarize(told[0]) == f"made source {source.pk}"
    assert secret.json()["secret"] not in str([change.details for change in told])
