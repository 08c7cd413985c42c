"""Connections over the API and on the command line."""

import json
from io import StringIO
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from rest_framework.test import APIClient

from accounts.models import Membership
from accounts.tests.keys import make_key
from documents.tests.factories import CollectionFactory
from inference.chat_models import chat_model
from inference.interfaces import ChatMessage
from inference.tests.stub_server import Reply, Stream, StubServer, delta, event
from model_servers import embedding
from model_servers.models import ModelConnection, ModelUsage
from model_servers.tests.servers import EMBEDDER, KEY, MODEL, RERANKER, search_reply
from model_servers.usage import Purpose, metered_chat
from tests.kit import client_of, logged_in

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("connected")]

URL = "/api/v1/model-connections/"


@pytest.fixture
def api(operator: Membership) -> APIClient:
    return client_of(operator)


def body(server: StubServer, **given: Any) -> dict[str, Any]:
    return {"kind": "openai", "address": server.url, "model": MODEL, **given}


def run(*words: str) -> str:
    out = StringIO()
    call_command("models", *words, stdout=out)
    return out.getvalue()


def test_a_model_is_connected_changed_tried_and_removed(api: APIClient, server: StubServer) -> None:
    made = api.post(URL, body(server, key=KEY, is_default=True))
    assert made.status_code == 201
    assert made.data["has_key"]
    assert made.data["is_default"]
    address = made.headers["Location"]
    assert chat_model().model_name == MODEL
    assert api.patch(address, {"name": "Clever", "key": "sk-2"}).data["name"] == "Clever"
    trial = api.post(f"{address}try/").data
    assert trial["answer"] == "A library lends books."
    assert trial["context_tokens"] == 4096
    assert server.requests[-1].headers["authorization"] == "Bearer sk-2"
    listed = api.get(URL)
    assert [each["name"] for each in listed.data] == ["Clever"]
    for answer in (made, listed):
        assert KEY not in answer.content.decode()
    assert api.delete(address).status_code == 204
    assert chat_model() is None


def test_a_model_that_does_not_answer_is_not_kept_unless_asked_for(
    api: APIClient, server: StubServer
) -> None:
    server.always(lambda payload: Reply({"error": "no"}, status=401))
    refused = api.post(URL, body(server))
    assert refused.status_code == 424
    assert refused.data["code"] == "model_unavailable"
    assert "wants a key" in refused.data["detail"]
    assert api.post(URL, body(server, check=False)).status_code == 201


def test_the_models_of_a_server_are_listed(api: APIClient, server: StubServer) -> None:
    given = {"kind": "openai", "address": server.url}
    assert api.post(f"{URL}server-models/", given).data == {"models": [MODEL, "nomic-embed"]}


def test_workspaces_are_named_by_their_slugs(
    api: APIClient, server: StubServer, operator: Membership
) -> None:
    slug = operator.workspace.slug
    made = api.post(URL, body(server, workspaces=[slug], check=False))
    assert made.data["workspaces"] == [slug]
    assert api.patch(made.data["url"], {"workspaces": None}).data["workspaces"] is None
    unknown = api.patch(made.data["url"], {"workspaces": ["nowhere"]})
    assert unknown.status_code == 400


def test_owners_manage_the_models_of_their_workspace_where_that_is_allowed(
    alice: Membership, settings: Any
) -> None:
    api = client_of(alice)
    given = {"kind": "openai", "address": "https://openrouter.ai/api/v1", "model": "m", "key": KEY}
    assert api.get(URL).status_code == 403
    settings.WORKSPACE_MODELS = True
    assert api.post(URL, {**given, "check": False}).status_code == 403
    own = {**given, "check": False, "owner": "workspace"}
    made = api.post(URL, own)
    assert made.data["workspace"] == alice.workspace.slug
    assert api.patch(made.data["url"], {"is_default": True}).status_code == 403
    inside = {**own, "address": "https://127.0.0.1:1", "check": True}
    assert "own network" in api.post(URL, inside).data["detail"]


def test_a_key_needs_the_scope_of_administration(operator: Membership) -> None:
    for scope, status in (("write", 403), ("admin", 200)):
        _, secret = make_key(operator, scope)
        api = APIClient(headers={"Authorization": f"Bearer {secret}"})
        assert api.get(URL).status_code == status


def test_the_command_connects_and_tries_and_removes(
    server: StubServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MODEL_KEY", KEY)
    told = run("add", "llama-cpp", MODEL, "--address", server.url, "--default")
    assert "small is connected." in told
    assert "First words after" in told
    assert "reads 4,096 tokens" in told
    assert server.requests[-1].headers["authorization"] == f"Bearer {KEY}"
    assert chat_model().model_name == MODEL
    (listed,) = json.loads(run("list", "--json"))
    assert listed["is_default"]
    assert listed["has_key"]
    assert "A library lends books." in run("try", MODEL)
    assert "1 key encrypted anew" in run("encrypt")
    assert "Answers quote the documents" in run("remove", MODEL)
    assert "There is none" in run("list")


def test_the_command_makes_another_the_default(server: StubServer) -> None:
    for name in ("One", "Two"):
        run("add", "other", MODEL, "--address", server.url, "--name", name, "--untried")
    run("default", "Two")
    assert ModelConnection.objects.get(is_default=True).name == "Two"
    with pytest.raises(CommandError, match=r"There are: One, Two\."):
        run("default", "Three")


def test_the_command_tells_what_is_nearby(server: StubServer, settings: Any) -> None:
    settings.FIND_MODEL_SERVERS = [f"llama-cpp={server.url}"]
    assert json.loads(run("found", "--json")) == [
        {"model": MODEL, "preset": "llama-cpp", "address": server.url}
    ]


def test_a_fault_ends_the_command_with_its_cure() -> None:
    with pytest.raises(CommandError, match="Nothing listens at"):
        run("add", "other", MODEL, "--address", "127.0.0.1:1")
    assert not ModelConnection.objects.exists()


def test_prices_are_given_at_each_door_and_counted(
    api: APIClient, server: StubServer, operator: Membership
) -> None:
    priced = {"input_price": 2, "output_price": "8.5"}
    made = api.post(URL, body(server, check=False, is_default=True, **priced))
    assert (made.data["input_price"], made.data["output_price"]) == (2.0, 8.5)
    address = made.headers["Location"]
    assert api.patch(address, {"name": "Dear"}).data["output_price"] == 8.5
    counted = {"choices": [], "usage": {"prompt_tokens": 1_000, "completion_tokens": 100}}
    events = [delta("A library"), delta(finish="stop"), counted, "[DONE]"]
    server.always(lambda payload: Stream(*map(event, events)))
    model = metered_chat(workspace_id=operator.workspace_id, purpose=Purpose.CHAT)
    assert model is not None
    for _ in range(2):
        list(model.stream([ChatMessage("user", "What is a library?")]))
    assert ModelUsage.objects.get().cost == pytest.approx(2 * (1_000 * 2 + 100 * 8.5) / 1e6)
    assert api.patch(address, {"input_price": -1}).status_code == 400
    run("add", "other", "tiny", "--address", server.url, "--input-price", "0.1", "--untried")
    assert ModelConnection.objects.get(name="tiny").input_price == 0.1
    form = {"kind": "openai", "address": server.url, "model": "tiny", "output_price": "3"}
    page = logged_in(operator).post("/models/new/other/", {**form, "name": "page", "act": "anyway"})
    assert page.status_code == 302
    assert ModelConnection.objects.get(name="page").output_price == 3.0


def test_an_embedder_is_connected_used_and_kept_while_it_is_needed(
    api: APIClient, server: StubServer, operator: Membership
) -> None:
    server.always(search_reply)
    given = {**body(server, key=KEY), "purpose": "embedder", "model": EMBEDDER}
    made = api.post(URL, given)
    assert (made.data["dimensions"], made.data["is_default"]) == (8, False)
    address = made.data["url"]
    asked = {"kind": "openai", "address": server.url, "purpose": "embedder"}
    assert api.post(f"{URL}server-models/", asked).data == {"models": [EMBEDDER]}
    trial = api.post(f"{address}try/").data
    assert trial["dimensions"] == 8
    assert "answer" not in trial
    collection = CollectionFactory(workspace=operator.workspace, slug="notes", name="Notes")
    for wrong in ({"collections": "one"}, {"collections": "new", "collection": "notes"}):
        assert api.post(f"{address}use/", wrong).status_code == 400
    used = api.post(f"{address}use/", {"collections": "one", "collection": "notes"})
    assert used.data == {"space": f"{EMBEDDER}-8"}
    collection.refresh_from_db()
    assert collection.space.embedder == made.data["alias"]
    refused = api.delete(address)
    assert refused.status_code == 409
    assert "Notes" in refused.data["detail"]
    assert api.patch(address, {"is_default": True}).data["is_default"]
    assert embedding.default_embedder() == made.data["alias"]
    assert api.patch(address, {"is_default": False}).status_code == 400
    assert api.patch(address, {"name": "Meaning"}).data["name"] == "Meaning"


def test_a_reranker_is_connected_over_the_api(api: APIClient, server: StubServer) -> None:
    server.always(search_reply)
    given = {**body(server), "purpose": "reranker", "model": RERANKER, "is_default": True}
    made = api.post(URL, given)
    assert made.data["is_default"]
    assert made.data["dimensions"] is None
    trial = api.post(f"{made.data['url']}try/").data
    assert trial["passages"][0]["text"].startswith("The Danube")
    named = api.get("/api/v1/models/").data["rerankers"]
    assert made.data["alias"] in [each["name"] for each in named]
    assert api.post(f"{made.data['url']}use/", {"collections": "new"}).status_code == 400


def test_the_command_connects_embedders_and_rerankers(server: StubServer) -> None:
    server.always(search_reply)
    given = ("--address", server.url, "--purpose")
    told = run("add", "other", EMBEDDER, *given, "embedder", "--default")
    assert "8 dimensions" in told
    assert "1. The Danube" in run("add", "other", RERANKER, *given, "reranker")
    assert f"{EMBEDDER}-8" in run("default", EMBEDDER)
    listed = {row["name"]: row for row in json.loads(run("list", "--json"))}
    assert listed[EMBEDDER]["is_default"]
    assert listed[RERANKER]["purpose"] == "reranker"
    with pytest.raises(CommandError, match="new collections"):
        run("remove", EMBEDDER)
    run("remove", RERANKER)
