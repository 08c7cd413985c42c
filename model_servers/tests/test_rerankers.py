"""Connected rerankers: tried, the default of the site, chosen by a collection, and removed."""

from typing import Any

import pytest
from rest_framework.test import APIClient

from accounts.models import Membership
from common.errors import Conflict, InvalidInput
from documents import services as documents
from documents.collection_options import CollectionOptions
from documents.forms import reranker_choices
from documents.ingestion.sources import text_source
from documents.tests.factories import CollectionFactory
from inference.backends.rerank_basic import NoReranker
from inference.interfaces import BackendUnavailable
from inference.model_registry import rerankers
from inference.remote.probing import RerankerTrial, ServerFault
from inference.tests.stub_server import Reply, StubServer, stub_server
from model_servers import services
from model_servers.models import ModelConnection
from model_servers.options import ConnectionOptions
from model_servers.tests.servers import KEY, RERANKER, search_options, search_reply

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("connected", "bundled")]

NONE = {"BACKEND": "inference.backends.rerank_basic.NoReranker"}
QUESTION = "where do giraffes live"


@pytest.fixture
def bundled(settings: Any) -> None:
    """A site without a reranker of its own."""
    settings.INFERENCE = {**settings.INFERENCE, "reranker": {"default": NONE, "none": NONE}}


@pytest.fixture
def server() -> Any:
    with stub_server() as server:
        server.always(search_reply)
        yield server


def options(server: StubServer, **given: Any) -> ConnectionOptions:
    return search_options(server, **{"purpose": "reranker", "model": RERANKER, **given})


@pytest.fixture
def connection(server: StubServer) -> ModelConnection:
    return services.connect_model(options=options(server))


def test_a_trial_shows_the_order(server: StubServer) -> None:
    _, trial = services.tried_options(options(server))
    assert isinstance(trial, RerankerTrial)
    (best, high), (worst, low) = trial.passages
    assert (best, worst) == (
        "The Danube flows into the Black Sea.",
        "Bananas are rich in potassium.",
    )
    assert high > low
    assert server.requests[-1].path == "/v1/rerank"
    assert server.requests[-1].headers["authorization"] == f"Bearer {KEY}"


def test_a_trial_refuses_what_does_not_rerank(server: StubServer) -> None:
    scores = [{"index": 0, "score": 0.9}, {"index": 1, "score": 0.1}]
    server.always(lambda payload: Reply({"results": scores}))
    with pytest.raises(ServerFault, match="no reranker") as caught:
        services.tried_options(options(server))
    assert caught.value.code == "order"
    server.always(lambda payload: Reply({}, status=401))
    with pytest.raises(ServerFault, match="does not accept this key"):
        services.tried_options(options(server))


def test_the_default_takes_the_place_of_the_bundled_one(
    connection: ModelConnection, settings: Any
) -> None:
    assert isinstance(rerankers["default"], NoReranker)
    bundled = rerankers.identity("default")
    services.set_default(connection=connection)
    assert rerankers["default"] is rerankers[connection.alias]
    assert rerankers.identity("default") == rerankers.identity(connection.alias) != bundled
    settings.MODELS_SET = {"reranker"}
    assert isinstance(rerankers["default"], NoReranker)
    assert services.is_overruled(connection)
    settings.MODELS_SET = set()
    services.set_default(connection=connection, is_default=False)
    assert isinstance(rerankers["default"], NoReranker)


def test_the_default_reranker_is_not_the_default_chat_model(
    connection: ModelConnection, server: StubServer
) -> None:
    chat = services.connect_model(
        options=options(server, purpose="chat", name="chat"), is_default=True
    )
    services.set_default(connection=connection)
    chat.refresh_from_db()
    assert chat.is_default
    assert connection not in services.usable_connections(CollectionFactory().workspace)


def test_a_collection_is_reranked_by_the_one_that_it_chose(
    connection: ModelConnection, server: StubServer, alice: Membership, api: APIClient
) -> None:
    collection = CollectionFactory(workspace=alice.workspace)
    texts = {"zoo": "Giraffes sleep.", "wild": "Giraffes live where trees do."}
    sources = [text_source(key, text) for key, text in texts.items()]
    documents.ingest_inline(collection=collection, sources=sources)
    documents.update_collection(collection=collection, reranker=connection.alias)
    assert (connection.alias, RERANKER) in reranker_choices()
    best, next_best = api.get("/api/v1/search/", {"q": QUESTION}).json()["hits"]
    assert server.requests[-1].json["query"] == QUESTION
    assert best["scores"]["rerank"] > next_best["scores"]["rerank"]


def test_one_that_a_collection_has_chosen_stays(connection: ModelConnection) -> None:
    collection = CollectionFactory(name="Notes", reranker=connection.alias)
    with pytest.raises(Conflict, match="reranker of “Notes”"):
        services.remove_connection(connection=connection)
    collection.reranker = ""
    collection.save()
    services.remove_connection(connection=connection)
    with pytest.raises(InvalidInput, match="There is no reranker"):
        CollectionOptions.from_text({"reranker": connection.alias})


def test_a_key_that_cannot_be_decrypted_is_named(
    connection: ModelConnection, settings: Any
) -> None:
    settings.CREDENTIALS_KEYS = ["another"]
    with pytest.raises(BackendUnavailable, match="RAGSITE_CREDENTIALS_KEYS"):
        rerankers[connection.alias]
