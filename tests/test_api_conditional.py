"""Single things have an ETag; what changed since it was read is neither changed nor deleted."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from threading import Barrier, Thread
from typing import Any

import pytest
from django.db import connection
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
from tests.description import api_description

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


def collection(client: APIClient, alice: Membership) -> str:
    CollectionFactory(workspace=alice.workspace, slug="notes")
    return f"{V1}/collections/notes/"


def document(client: APIClient, alice: Membership) -> str:
    notes = CollectionFactory(workspace=alice.workspace, slug="notes")
    made = DocumentFactory(collection=notes, key="a.md")
    ChunkFactory(document=made, text="Words.")
    return f"{V1}/documents/{made.pk}/"


def run(client: APIClient, alice: Membership) -> str:
    made = RunFactory(collection=CollectionFactory(workspace=alice.workspace))
    return f"{V1}/runs/{made.pk}/"


def conversation(client: APIClient, alice: Membership) -> str:
    made = Conversation.objects.create(workspace=alice.workspace, user=alice.user, title="Old")
    return f"{V1}/conversations/{made.pk}/"


def trace(client: APIClient, alice: Membership) -> str:
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


def item(client: APIClient, alice: Membership) -> str:
    CollectionFactory(workspace=alice.workspace, slug="notes")
    url = f"{V1}/collections/notes/store/items/one/"
    assert client.put(url, {"text": "Words."}).status_code == 200
    return url


def fact(client: APIClient, alice: Membership) -> str:
    assert client.put(f"{V1}/memory/facts/city/", {"value": "Oslo"}).status_code == 200
    return f"{V1}/memory/facts/city/"


def context(client: APIClient, alice: Membership) -> str:
    turn = {"conversation": "c", "user_message": "Hello there", "assistant_response": "Hello"}
    made = client.post(f"{V1}/memory/contexts/", turn)
    return f"{V1}/memory/contexts/{made.json()['context']['id']}/"


def pipeline(client: APIClient, alice: Membership) -> str:
    definition = {**templates()["rag"].to_json(), "id": "mine"}
    assert client.post(f"{V1}/pipelines/", definition).status_code == 201
    return f"{V1}/pipelines/mine/"


def node(client: APIClient, alice: Membership) -> str:
    assert client.put(f"{V1}/graph/nodes/", {"id": "src:a", "name": "A"}).status_code == 201
    return f"{V1}/graph/nodes/?id=src:a"


EDGE = {"source": "src:a", "rel": "R", "target": "src:b"}


def edge(client: APIClient, alice: Membership) -> str:
    made = client.put(f"{V1}/graph/edges/", {**EDGE, "strict": False})
    assert made.status_code == 201
    return f"{V1}/graph/edges/?source=src:a&rel=R&target=src:b"


def key(client: APIClient, alice: Membership) -> str:
    made = client.post(f"{V1}/keys/", {"name": "k", "scopes": ["read"]})
    return f"{V1}/keys/{made.json()['id']}/"


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
    "trace": Thing(trace),
}


@pytest.fixture
def client(alice: Membership) -> APIClient:
    client = APIClient()
    client.force_login(alice.user)
    return client


@pytest.mark.django_db
@pytest.mark.parametrize("name", THINGS)
def test_what_one_has_already_is_not_sent_again(
    name: str, client: APIClient, alice: Membership
) -> None:
    url = THINGS[name].make(client, alice)
    first = client.get(url)
    assert first.status_code == 200

    again = client.get(url, headers={"If-None-Match": f'"other", W/{first["ETag"]}'})
    assert (again.status_code, again.content) == (304, b"")
    assert again["ETag"] == first["ETag"]
    assert client.get(url, headers={"If-None-Match": '"other"'}).content == first.content


@pytest.mark.django_db
@pytest.mark.parametrize("name", [name for name, thing in THINGS.items() if thing.change])
def test_only_what_was_read_is_changed(name: str, client: APIClient, alice: Membership) -> None:
    thing = THINGS[name]
    url = thing.make(client, alice)
    assert thing.change
    method, body = thing.change
    change = getattr(client, method)
    at = thing.changes_at or url
    read = client.get(url)

    late = change(at, body, headers={"If-Match": '"other"'})
    assert (late.status_code, late.json()["code"]) == (412, "precondition_failed")
    assert client.get(url).content == read.content

    changed = change(at, body, headers={"If-Match": read["ETag"]})
    assert changed.status_code == 200
    assert changed["ETag"] == client.get(url)["ETag"] != read["ETag"]

    again = change(at, body, headers={"If-Match": read["ETag"]})
    assert again.status_code == 412
    assert change(at, body, headers={"If-Match": changed["ETag"]}).status_code == 200


@pytest.mark.django_db
@pytest.mark.parametrize("name", [name for name, thing in THINGS.items() if thing.deletable])
def test_only_what_was_read_is_deleted(
    name: str, client: APIClient, alice: Membership, media_root: Path
) -> None:
    url = THINGS[name].make(client, alice)
    read = client.get(url)
    late = client.delete(url, headers={"If-Match": '"other"'})
    assert (late.status_code, late.json()["code"]) == (412, "precondition_failed")

    deleted = client.delete(url, headers={"If-Match": read["ETag"]})
    assert deleted.status_code in (200, 204)
    assert not client.get(url).json().get("results")


@pytest.mark.django_db
@pytest.mark.parametrize("name", ["edge", "fact", "item", "node"])
def test_what_is_only_to_be_made_replaces_nothing(
    name: str, client: APIClient, alice: Membership
) -> None:
    thing = THINGS[name]
    url = thing.make(client, alice)
    assert thing.change
    at, body = thing.changes_at or url, thing.change[1]
    read = client.get(url)
    refused = client.put(at, body, headers={"If-None-Match": "*"})
    assert refused.status_code == 412
    assert client.get(url).content == read.content

    client.delete(url)
    assert client.put(at, body, headers={"If-Match": "*"}).status_code == 412
    body = body if name != "edge" else {**body, "strict": False}
    assert client.put(at, body, headers={"If-None-Match": "*"}).status_code in (200, 201)


@pytest.mark.django_db
def test_a_document_more_does_not_keep_anyone_from_renaming_its_collection(
    client: APIClient, alice: Membership
) -> None:
    url = collection(client, alice)
    read = client.get(url)
    DocumentFactory(collection=Collection.objects.get())

    assert client.get(url, headers={"If-None-Match": read["ETag"]}).status_code == 200
    renamed = client.patch(url, {"name": "New"}, headers={"If-Match": read["ETag"]})
    assert (renamed.status_code, renamed.json()["document_count"]) == (200, 1)


@pytest.mark.django_db
@pytest.mark.parametrize("tag", ["5d1f", '"', '"a" b', "", '*, "a"'])
def test_a_condition_that_is_none_is_refused(
    tag: str, client: APIClient, alice: Membership
) -> None:
    url = collection(client, alice)
    for answer in (
        client.patch(url, {"name": "New"}, headers={"If-Match": tag}),
        client.get(url, headers={"If-None-Match": tag}),
    ):
        assert answer.status_code == 400
        assert answer.json()["errors"][0]["attr"] in ("If-Match", "If-None-Match")
    assert Collection.objects.get().name != "New"


@pytest.mark.django_db
def test_what_is_not_there_is_no_matter_of_conditions(client: APIClient, alice: Membership) -> None:
    for method in (client.patch, client.delete):
        answer = method(f"{V1}/collections/none/", {}, headers={"If-Match": '"a"'})
        assert answer.status_code == 404


@pytest.fixture
def url_of_alice(transactional_db: None) -> tuple[Membership, str]:
    alice = MembershipFactory()
    return alice, collection(APIClient(), alice)


def test_of_changes_at_the_same_time_one_is_made(url_of_alice: tuple[Membership, str]) -> None:
    alice, url = url_of_alice
    clients = [APIClient() for _ in range(4)]
    for each in clients:
        each.force_login(alice.user)
    tag = clients[0].get(url)["ETag"]
    begin = Barrier(len(clients))
    answers: list[int] = []

    def rename(client: APIClient, name: str) -> None:
        begin.wait()
        answer = client.patch(url, {"name": name}, headers={"If-Match": tag})
        answers.append(answer.status_code)
        connection.close()

    threads = [
        Thread(target=rename, args=(client, f"Name {number}"))
        for number, client in enumerate(clients)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
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
