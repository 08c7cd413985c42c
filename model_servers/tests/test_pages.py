"""The pages of models, as whoever runs the site, owns a workspace or reads in it sees them."""

from typing import Any

import pytest
from django.test import Client

from accounts.models import Membership, Role
from documents.tests.factories import CollectionFactory, MembershipFactory, UserFactory
from inference.chat_models import chat_model
from inference.tests.stub_server import Reply, StubServer
from model_servers import services
from model_servers.models import ModelConnection
from model_servers.options import ConnectionOptions
from model_servers.tests.servers import EMBEDDER, KEY, MODEL, RERANKER, search_reply
from tests.kit import logged_in

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("connected")]

HTMX = {"HX-Request": "true"}


@pytest.fixture
def client(operator: Membership) -> Client:
    return logged_in(operator)


@pytest.fixture
def connection(server: StubServer) -> ModelConnection:
    given = {"kind": "openai", "address": server.url, "model": MODEL, "key": KEY}
    return services.connect_model(options=ConnectionOptions.from_text(given))


def form(server: StubServer, **given: str) -> dict[str, str]:
    return {"kind": "openai", "address": server.url, "model": MODEL, **given}


def text(response: Any) -> str:
    found: str = response.content.decode()
    return found


def test_a_model_found_nearby_answers_after_one_click(
    client: Client, server: StubServer, settings: Any
) -> None:
    settings.FIND_MODEL_SERVERS = [f"llama-cpp={server.url}", "ollama=http://127.0.0.1:1"]
    page = text(client.get("/models/found/"))
    assert f"<strong>{MODEL}</strong> is here (llama.cpp" in page
    assert "nomic-embed" not in page
    assert f"<strong>{MODEL}</strong> is here" in text(client.get("/models/?found=1"))
    given = {"address": server.url, "model": MODEL}
    response = client.post("/models/found/", given, follow=True)
    assert "Answers are written by “small”" in text(response)
    assert chat_model().model_name == MODEL
    assert text(client.get("/models/found/")).strip() == ""


def test_only_what_is_found_is_connected_by_one_click(
    client: Client, server: StubServer, settings: Any
) -> None:
    settings.FIND_MODEL_SERVERS = []
    response = client.post("/models/found/", {"address": server.url, "model": MODEL}, follow=True)
    assert "not there any more" in text(response)
    assert not ModelConnection.objects.exists()


def test_the_models_of_a_server_are_offered(client: Client, server: StubServer) -> None:
    page = text(client.post("/models/new/other/", form(server, act="list", model="")))
    assert f'<option value="{MODEL}">' in page
    part = client.post("/models/new/other/", form(server, act="list", model=""), headers=HTMX)
    assert f'<option value="{MODEL}">' in text(part)
    assert "<html" not in text(part)
    assert not ModelConnection.objects.exists()


def test_a_server_that_does_not_answer_is_named_with_the_cure(client: Client) -> None:
    given = {"kind": "openai", "address": "http://127.0.0.1:1", "model": ""}
    page = text(client.post("/models/new/other/", {**given, "act": "list"}))
    assert "Nothing listens at http://127.0.0.1:1" in page


def test_a_model_is_tried_before_it_is_saved(client: Client, server: StubServer) -> None:
    response = client.post("/models/new/other/", form(server, act="save", key=KEY), follow=True)
    (connection,) = ModelConnection.objects.all()
    assert response.redirect_chain[-1][0] == f"/models/{connection.pk}/"
    assert server.requests[-1].headers["authorization"] == f"Bearer {KEY}"
    assert KEY not in text(response)


def test_one_that_fails_its_trial_is_saved_only_on_request(
    client: Client, server: StubServer
) -> None:
    server.always(lambda payload: Reply({"error": "no"}, status=401))
    page = client.post("/models/new/other/", form(server, act="save"))
    assert page.status_code == 400
    assert "wants a key" in text(page)
    assert page.headers["Cache-Control"] == "no-store"
    assert not ModelConnection.objects.exists()
    client.post("/models/new/other/", form(server, act="anyway"))
    assert ModelConnection.objects.count() == 1


def test_a_trial_tells_how_fast_it_is(client: Client, connection: ModelConnection) -> None:
    page = text(client.post(f"/models/{connection.pk}/"))
    assert "First words after" in page
    assert "4,096" in page
    assert "A library lends books." in page


def test_a_changed_connection_keeps_its_key(
    client: Client, connection: ModelConnection, server: StubServer
) -> None:
    page = client.get(f"/models/{connection.pk}/change/")
    assert "Empty: keep the saved one." in text(page)
    assert KEY not in text(page)
    given = form(server, act="save", name="Clever")
    client.post(f"/models/{connection.pk}/change/", given)
    connection.refresh_from_db()
    assert connection.name == "Clever"
    assert services.decrypted_key(connection) == KEY


def test_the_default_is_removed_and_answers_are_quoted_again(
    client: Client, connection: ModelConnection
) -> None:
    client.post(f"/models/{connection.pk}/default/")
    assert f"<strong>{MODEL}</strong>" in text(client.get("/models/"))
    assert "answers will quote the documents" in text(
        client.get(f"/models/{connection.pk}/remove/")
    )
    page = text(client.post(f"/models/{connection.pk}/remove/", follow=True))
    assert "No model is chosen: answers quote your documents." in page
    assert "Extractive: quotes from your documents" in text(client.get("/chat/"))


def test_an_owner_chooses_for_the_workspace(
    operator: Membership, connection: ModelConnection
) -> None:
    owner = MembershipFactory(workspace=operator.workspace, role=Role.OWNER)
    page = logged_in(owner)
    assert "Model of this workspace" in text(page.get("/models/"))
    page.post("/models/choose/", {"connection": connection.pk})
    assert chat_model(workspace_id=owner.workspace_id).model_name == MODEL
    assert page.get(f"/models/{connection.pk}/").status_code == 403


def test_nobody_chooses_what_the_workspace_may_not_use(
    operator: Membership, connection: ModelConnection
) -> None:
    connection.workspaces = [operator.workspace_id]
    connection.save()
    elsewhere = logged_in(MembershipFactory())
    page = elsewhere.post("/models/choose/", {"connection": connection.pk})
    assert page.status_code == 404
    assert str(connection) not in text(elsewhere.get("/models/"))


def test_whoever_is_in_no_workspace_is_told_the_models_of_the_site(
    client: Client, connection: ModelConnection
) -> None:
    stranger = Client()
    stranger.force_login(UserFactory())
    listed = stranger.get("/api/v1/models/")
    assert [each["name"] for each in listed.json()["chat"]] == ["extractive", MODEL]


def test_a_viewer_sees_what_answers_and_changes_nothing(
    bob: Client, connection: ModelConnection
) -> None:
    page = text(bob.get("/models/"))
    assert "The operator of the site connects models" in page
    assert "Model of this workspace" not in page
    assert bob.post("/models/choose/", {"connection": connection.pk}).status_code == 403
    assert bob.get("/models/new/ollama/").status_code == 403
    assert bob.get("/models/found/").status_code == 403


def test_an_owner_brings_a_key_where_that_is_allowed(
    alice: Membership, settings: Any, server: StubServer
) -> None:
    page = logged_in(alice)
    assert page.get("/models/new/openrouter/").status_code == 403
    settings.WORKSPACE_MODELS = True
    assert page.get("/models/new/openrouter/").status_code == 200
    inside = form(server, act="list", address="https://localhost:1/v1", model="")
    assert "own network" in text(page.post("/models/new/other/", inside))
    plain = form(server, act="anyway")
    assert "https:// alone" in text(page.post("/models/new/other/", plain))
    public = form(server, act="anyway", address="https://openrouter.ai/api/v1", key=KEY)
    page.post("/models/new/other/", public)
    (connection,) = ModelConnection.objects.all()
    assert connection.workspace == alice.workspace
    assert logged_in(MembershipFactory()).get(f"/models/{connection.pk}/").status_code == 404


def test_what_the_environment_sets_is_shown_and_wins(
    client: Client, settings: Any, connection: ModelConnection
) -> None:
    services.set_default(connection=connection)
    own = {"model": "own", "base_url": "http://me:secret@gpu:8000", "api_key": ""}
    backend = "inference.backends.chat_openai.OpenAIChat"
    settings.INFERENCE = {
        **settings.INFERENCE,
        "chat": {"default": {"BACKEND": backend, "OPTIONS": own}},
    }
    page = text(client.get("/models/"))
    assert "set by the environment of the site" in page
    assert "<strong>own</strong>" in page
    assert "Default, overruled" in page
    assert "http://gpu:8000" in page
    assert "secret" not in page


def test_the_former_address_leads_to_the_page(client: Client) -> None:
    assert client.get("/chat/connect/").headers["Location"] == "/models/"


def test_an_embedder_is_connected_and_used_on_its_page(
    client: Client, server: StubServer, operator: Membership
) -> None:
    server.always(search_reply)
    collection = CollectionFactory(workspace=operator.workspace, name="Notes", slug="notes")
    given = {**form(server), "purpose": "embedder"}
    page = text(client.post("/models/new/other/", {**given, "act": "list", "model": ""}))
    assert f'<option value="{EMBEDDER}">' in page
    assert f'<option value="{MODEL}">' not in page
    page = text(
        client.post("/models/new/other/", {**given, "act": "save", "model": EMBEDDER}, follow=True)
    )
    (connection,) = ModelConnection.objects.all()
    assert connection.dimensions == 8
    assert "Only “Notes”" in page
    trial = text(client.post(f"/models/{connection.pk}/"))
    assert "Time for a text" in trial
    use = f"/models/{connection.pk}/use/"
    page = text(client.post(use, {"collections": collection.pk}, follow=True))
    assert "Notes: 0 of 0" in page
    part = text(client.get(f"/models/{connection.pk}/", headers=HTMX))
    assert "Notes: 0 of 0" in part
    assert "<html" not in part
    collection.refresh_from_db()
    assert collection.space.embedder == connection.alias
    assert "New collections get this embedder" in text(
        client.post(use, {"collections": "new"}, follow=True)
    )
    for nothing in ("", "nothing", CollectionFactory().pk):
        assert client.post(use, {"collections": nothing}).status_code == 404
    page = text(client.post(f"/models/{connection.pk}/remove/", follow=True))
    assert "is the embedder of “Notes”" in page
    assert "Search by meaning" in text(client.get("/models/"))


def test_a_reranker_is_connected_on_the_page(client: Client, server: StubServer) -> None:
    server.always(search_reply)
    given = {**form(server), "purpose": "reranker", "model": RERANKER, "act": "save"}
    client.post("/models/new/other/", given)
    (connection,) = ModelConnection.objects.all()
    assert "<li>The Danube flows" in text(client.post(f"/models/{connection.pk}/"))
    page = text(client.post(f"/models/{connection.pk}/default/", follow=True))
    assert "No longer the default" in page


def test_what_a_model_is_for_stays_when_it_is_changed(client: Client, server: StubServer) -> None:
    server.always(search_reply)
    given = {"purpose": "embedder", "kind": "openai", "address": server.url, "model": EMBEDDER}
    connection = services.connect_model(options=ConnectionOptions.from_text(given))
    page = f"/models/{connection.pk}/change/"
    assert '<input type="hidden" name="purpose" value="embedder"' in text(client.get(page))
    client.post(page, {**given, "name": "Meaning", "act": "save"})
    connection.refresh_from_db()
    assert (connection.name, connection.dimensions) == ("Meaning", 8)
