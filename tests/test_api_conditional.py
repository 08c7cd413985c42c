"""Single things have an ETag; what changed since it was read is neither changed nor deleted."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from threading import get_ident
from typing import Any

import pytest
from django.utils import timezone
from rest_framework.test import APIClient

from accounts.models import Membership
from documents.models import Collection
from documents.tests.factories import (
    ChunkFactory,
    CollectionFactory,
    DocumentFactory,
    MembershipFactory,
    RunFactory,
)
from rag.models import Conversation, Trace
from rag.pipelines.validation import templates
from tables.tests.test_groups import add as add_table
from tests.description import api_description
from tests.kit import at_once, client_of

V1 = "/api/v1"
Prepare = Callable[[APIClient, Membership], str]


@dataclass(frozen=True)
class Thing:
    """A kind of thing: how one is made, which returns its address; bodies that change it, by
    method; the address's part that stands in the body instead."""

    make: Prepare
    change: tuple[str, dict[str, Any]] | None = None
    deletable: bool = True
    changes_at: str = ""


def collection(api: APIClient, alice: Membership) -> str:
    CollectionFactory(workspace=alice.workspace, slug="notes")
    return f"{V1}/collections/notes/"


def document(api: APIClient, alice: Membership) -> str:
    notes = CollectionFactory(workspace=alice.workspace, slug="notes")
    made = DocumentFactory(collection=notes, key="a.md")
    ChunkFactory(document=made, text="Words.")
    return f"{V1}/documents/{made.pk}/"


def run(api: APIClient, alice: Membership) -> str:
    made = RunFactory(collection=CollectionFactory(workspace=alice.workspace))
    return f"{V1}/runs/{made.pk}/"


def conversation(api: APIClient, alice: Membership) -> str:
    made = Conversation.objects.create(workspace=alice.workspace, user=alice.user, title="Old")
    return f"{V1}/conversations/{made.pk}/"


def trace(api: APIClient, alice: Membership) -> str:
    now = timezone.now()
    made = Trace.objects.create(
        workspace=alice.workspace,
        user=alice.user,
        pipeline="rag",
        state=Trace.State.DONE,
        started_at=now,
        ended_at=now,
    )
    return f"{V1}/traces/{made.pk}/"


def item(api: APIClient, alice: Membership) -> str:
    CollectionFactory(workspace=alice.workspace, slug="notes")
    url = f"{V1}/collections/notes/store/items/one/"
    assert api.put(url, {"text": "Words."}).status_code == 200
    return url


def fact(api: APIClient, alice: Membership) -> str:
    assert api.put(f"{V1}/memory/facts/city/", {"value": "Oslo"}).status_code == 200
    return f"{V1}/memory/facts/city/"


def context(api: APIClient, alice: Membership) -> str:
    turn = {"conversation": "c", "user_message": "Hello there", "assistant_response": "Hello"}
    made = api.post(f"{V1}/memory/contexts/", turn)
    return f"{V1}/memory/contexts/{made.json()['context']['id']}/"


def pipeline(api: APIClient, alice: Membership) -> str:
    definition = {**templates()["rag"].to_json(), "id": "mine"}
    assert api.post(f"{V1}/pipelines/", definition).status_code == 201
    return f"{V1}/pipelines/mine/"


def node(api: APIClient, alice: Membership) -> str:
    assert api.put(f"{V1}/graph/nodes/", {"id": "src:a", "name": "A"}).status_code == 201
    return f"{V1}/graph/nodes/?id=src:a"


EDGE = {"source": "src:a", "rel": "R", "target": "src:b"}


def edge(api: APIClient, alice: Membership) -> str:
    made = api.put(f"{V1}/graph/edges/", {**EDGE, "strict": False})
    assert made.status_code == 201
    return f"{V1}/graph/edges/?source=src:a&rel=R&target=src:b"


def key(api: APIClient, alice: Membership) -> str:
    made = api.post(f"{V1}/keys/", {"name": "k", "scopes": ["read"]})
    return f"{V1}/keys/{made.json()['id']}/"


def table_group(api: APIClient, alice: Membership) -> str:
    collection = CollectionFactory(workspace=alice.workspace)
    table = add_table(collection, "a.md", "Date|Amount", [["2026-01-01", "5"]])
    return f"{V1}/tables/{table.pk}/group/"


_CHANGED = {**templates()["rag"].to_json(), "id": "mine", "name": "Other"}
THINGS = {
    "collection": Thing(collection, ("patch", {"name": "New"})),
    "conversation": Thing(conversation, ("patch", {"title": "New"})),
    "context": Thing(context),
    "document": Thing(document),
    "edge": Thing(edge, ("put", {**EDGE, "weight": 2.0}), changes_at=f"{V1}/graph/edges/"),
    "fact": Thing(fact, ("put", {"value": "Bergen"})),
    "item": Thing(item, ("put", {"text": "Other words."})),
    "key": Thing(key, deletable=False),
    "node": Thing(node, ("put", {"id": "src:a", "name": "B"}), changes_at=f"{V1}/graph/nodes/"),
    "pipeline": Thing(pipeline, ("put", _CHANGED)),
    "run": Thing(run, deletable=False),
    "table group": Thing(table_group, ("patch", {"apart": True}), deletable=False),
    "trace": Thing(trace),
}


@pytest.mark.django_db
@pytest.mark.parametrize("name", THINGS)
def test_what_one_has_already_is_not_sent_again(
    name: str, api: APIClient, alice: Membership
) -> None:
    url = THINGS[name].make(api, alice)
    first = api.get(url)
    assert first.status_code == 200

    again = api.get(url, headers={"If-None-Match": f'"other", W/{first["ETag"]}'})
    assert (again.status_code, again.content) == (304, b"")
    assert again["ETag"] == first["ETag"]
    assert api.get(url, headers={"If-None-Match": '"other"'}).content == first.content


@pytest.mark.django_db
@pytest.mark.parametrize("name", [name for name, thing in THINGS.items() if thing.change])
def test_only_what_was_read_is_changed(name: str, api: APIClient, alice: Membership) -> None:
    thing = THINGS[name]
    url = thing.make(api, alice)
    assert thing.change
    method, body = thing.change
    change = getattr(api, method)
    at = thing.changes_at or url
    read = api.get(url)

    late = change(at, body, headers={"If-Match": '"other"'})
    assert (late.status_code, late.json()["code"]) == (412, "precondition_failed")
    assert api.get(url).content == read.content

    changed = change(at, body, headers={"If-Match": read["ETag"]})
    assert changed.status_code == 200
    assert changed["ETag"] == api.get(url)["ETag"] != read["ETag"]

    again = change(at, body, headers={"If-Match": read["ETag"]})
    assert again.status_code == 412
    assert change(at, body, headers={"If-Match": changed["ETag"]}).status_code == 200


@pytest.mark.django_db
@pytest.mark.parametrize("name", [name for name, thing in THINGS.items() if thing.deletable])
def test_only_what_was_read_is_deleted(
    name: str, api: APIClient, alice: Membership, media_root: Path
) -> None:
    url = THINGS[name].make(api, alice)
    read = api.get(url)
    late = api.delete(url, headers={"If-Match": '"other"'})
    assert (late.status_code, late.json()["code"]) == (412, "precondition_failed")

    deleted = api.delete(url, headers={"If-Match": read["ETag"]})
    assert deleted.status_code in (200, 204)
    assert not api.get(url).json().get("results")


@pytest.mark.django_db
@pytest.mark.parametrize("name", ["edge", "fact", "item", "node"])
def test_what_is_only_to_be_made_replaces_nothing(
    name: str, api: APIClient, alice: Membership
) -> None:
    thing = THINGS[name]
    url = thing.make(api, alice)
    assert thing.change
    at, body = thing.changes_at or url, thing.change[1]
    read = api.get(url)
    refused = api.put(at, body, headers={"If-None-Match": "*"})
    assert refused.status_code == 412
    assert api.get(url).content == read.content

    api.delete(url)
    assert api.put(at, body, headers={"If-Match": "*"}).status_code == 412
    body = body if name != "edge" else {**body, "strict": False}
    assert api.put(at, body, headers={"If-None-Match": "*"}).status_code in (200, 201)


@pytest.mark.django_db
def test_a_document_more_does_not_keep_anyone_from_renaming_its_collection(
    api: APIClient, alice: Membership
) -> None:
    url = collection(api, alice)
    read = api.get(url)
    DocumentFactory(collection=Collection.objects.get())

    assert api.get(url, headers={"If-None-Match": read["ETag"]}).status_code == 200
    renamed = api.patch(url, {"name": "New"}, headers={"If-Match": read["ETag"]})
    assert (renamed.status_code, renamed.json()["document_count"]) == (200, 1)


@pytest.mark.django_db
@pytest.mark.parametrize("tag", ["5d1f", '"', '"a" b', "", '*, "a"'])
def test_a_condition_that_is_none_is_refused(tag: str, api: APIClient, alice: Membership) -> None:
    url = collection(api, alice)
    for answer in (
        api.patch(url, {"name": "New"}, headers={"If-Match": tag}),
        api.get(url, headers={"If-None-Match": tag}),
    ):
        assert answer.status_code == 400
        assert answer.json()["errors"][0]["attr"] in ("If-Match", "If-None-Match")
    assert Collection.objects.get().name != "New"


@pytest.mark.django_db
def test_what_is_not_there_is_no_matter_of_conditions(api: APIClient, alice: Membership) -> None:
    for method in (api.patch, api.delete):
        answer = method(f"{V1}/collections/none/", {}, headers={"If-Match": '"a"'})
        assert answer.status_code == 404


@pytest.fixture
def url_of_alice(transactional_db: None) -> tuple[Membership, str]:
    alice = MembershipFactory()
    return alice, collection(APIClient(), alice)


def test_of_changes_at_the_same_time_one_is_made(url_of_alice: tuple[Membership, str]) -> None:
    alice, url = url_of_alice
    tag = client_of(alice).get(url)["ETag"]

    def rename() -> int:
        name = {"name": f"Name {get_ident()}"}
        return client_of(alice).patch(url, name, headers={"If-Match": tag}).status_code

    answers = at_once(*[rename] * 4)
    assert sorted(answers) == [200, 412, 412, 412]


# --- the description --------------------------------------------------------------------------


@pytest.fixture(scope="module")
def operations() -> dict[tuple[str, str], Any]:
    paths = api_description()["paths"]
    return {(method, path): each for path in paths for method, each in paths[path].items()}


def headers_of(operation: Any) -> set[str]:
    return {each["name"] for each in operation["parameters"] if each["in"] == "header"}


def is_of_one(path: str) -> bool:
    return path.startswith("/api/v1/") and path.endswith("}/")


def test_every_single_thing_is_described_with_its_etag(operations: Any) -> None:
    read = {path for method, path in operations if method == "get" and is_of_one(path)}
    assert len(read) >= 10
    for path in read:
        operation = operations["get", path]
        assert "If-None-Match" in headers_of(operation), path
        assert "304" in operation["responses"], path
        assert "ETag" in operation["responses"]["200"]["headers"], path


#: What is deleted here is no thing that is read at this address: all memory, work, a secret.
NOT_READ_BEFORE = {
    "/api/v1/memory/",
    "/api/v1/summary/",
    "/api/v1/documents/{id}/summary/",
    "/api/v1/sources/{id}/webhook/",
}


def test_every_change_of_a_single_thing_is_described_with_if_match(operations: Any) -> None:
    changed = {
        (method, path)
        for method, path in operations
        if method in ("put", "patch", "delete") and path not in NOT_READ_BEFORE
    }
    assert len(changed) >= 15
    for method, path in changed:
        operation = operations[method, path]
        assert "If-Match" in headers_of(operation), (method, path)
        assert "412" in operation["responses"], (method, path)


#: And why.
MADE_WITHOUT_A_KEY = {
    "/api/v1/keys/": "its answer holds a secret, which is kept nowhere",
    "/api/v1/memory/contexts/": "the same again does no harm, and a kept answer would outlive an"
    " erasure",
    "/api/v1/traces/{id}/cancel/": "makes nothing",
    "/api/v1/sources/{id}/webhook/": "its answer holds a secret",
    "/api/v1/invitations/": "its answer holds a secret",
    "/api/v1/groups/": "a name is taken once",
    "/api/v1/summary/": "there is one at a time",
    "/api/v1/documents/{id}/summary/": "there is one at a time",
}


def test_whatever_makes_something_takes_an_idempotency_key(operations: Any) -> None:
    makers = {
        path
        for (method, path), operation in operations.items()
        if method == "post" and {"201", "202"} & operation["responses"].keys()
    }
    without = {
        path for path in makers if "Idempotency-Key" not in headers_of(operations["post", path])
    }
    assert without == MADE_WITHOUT_A_KEY.keys()
    assert len(makers - without) >= 6
