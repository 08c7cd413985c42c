"""Connected embedders: tried, used for new collections and for old ones, changed and removed."""

from collections.abc import Callable
from typing import Any

import pytest

from common.errors import Conflict, InvalidInput
from documents import services as documents
from documents.fitting_models import fitting_model
from documents.ingestion.sources import text_source
from documents.models import Chunk, Collection, Document, EmbeddingSpace, Reembedding
from documents.tests.factories import CollectionFactory
from inference.interfaces import BackendUnavailable
from inference.model_registry import embedders
from inference.remote.probing import EmbedderTrial, ModelServer, ServerFault
from inference.tests.stub_server import (
    DIMENSIONS,
    Reply,
    StubServer,
    ollama_reply,
    stub_server,
)
from model_servers import embedding, registry, services
from model_servers.models import ModelConnection
from model_servers.tests.servers import EMBEDDER, KEY, search_reply
from model_servers.tests.servers import search_options as options
from tests.kit import queue_file, work_on
from tests.plugin import WorkerProcess, wait_until

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("connected", "media_root"),
]

TEXT = "Giraffes have long necks."


@pytest.fixture
def server() -> Any:
    with stub_server() as server:
        server.always(search_reply)
        yield server


@pytest.fixture
def connection(server: StubServer) -> ModelConnection:
    """A connected embedder that was tried."""
    tried, _ = services.tried_options(options(server))
    return services.connect_model(options=tried)


def filled(collection: Collection) -> Collection:
    documents.ingest_inline(collection=collection, sources=[text_source("giraffes", TEXT)])
    return collection


def test_ollama_says_which_of_its_models_are_embedders(server: StubServer) -> None:
    able = {"qwen3:4b": ["completion", "tools"], "own:latest": ["embedding"]}

    def reply(payload: Any) -> Any:
        if payload is None:
            return Reply({"models": [{"name": name} for name in able]})
        return Reply({"capabilities": able[payload["model"]]})

    server.always(reply)
    assert ModelServer("ollama", server.url).models_for("embedder") == ["own:latest"]
    # No reranker is known: people choose.
    assert ModelServer("ollama", server.url).models_for("reranker") == list(able)


def test_other_servers_say_it_by_types_or_by_names(server: StubServer) -> None:
    def listing(**types: str | None) -> Callable[[Any], Any]:
        entries = [{"id": name, **({"type": kind} if kind else {})} for name, kind in types.items()]
        return lambda payload: Reply({"data": entries})

    asked = ModelServer("openai", server.url)
    server.always(listing(own="embeddings", embedlike="llm"))
    assert asked.models_for("embedder") == ["own"]
    server.always(listing(small=None, text_embed=None, bge_reranker=None))
    assert asked.models_for("embedder") == ["text_embed"]
    assert asked.models_for("reranker") == ["bge_reranker"]
    assert server.requests[-1].path == "/api/v0/models"  # where LM Studio has the types
    server.always(listing(one=None, two=None))
    assert asked.models_for("embedder") == ["one", "two"]


def test_a_trial_measures_the_vectors(server: StubServer) -> None:
    tried, trial = services.tried_options(options(server))
    assert isinstance(trial, EmbedderTrial)
    assert tried.dimensions == trial.dimensions == DIMENSIONS
    assert server.requests[-1].headers["authorization"] == f"Bearer {KEY}"
    connection = services.connect_model(options=tried)
    assert embedders[connection.alias].dimensions == DIMENSIONS


def test_an_embedder_of_ollama_is_tried(server: StubServer) -> None:
    server.always(ollama_reply)
    tried, _ = services.tried_options(options(server, kind="ollama", model="own"))
    assert tried.dimensions == DIMENSIONS
    assert server.requests[-1].path == "/api/embed"


@pytest.mark.parametrize(
    ("reply", "said"),
    [
        (lambda payload: Reply({}, status=401), "does not accept this key"),
        (lambda payload: Reply({"data": "none"}), "not as a model server"),
        (
            lambda payload: Reply(
                {
                    "data": [
                        {"index": at, "embedding": [1.0] * (len(payload["input"]) + at)}
                        for at in range(len(payload["input"]))
                    ]
                }
            ),
            "vectors of several lengths",
        ),
        (
            lambda payload: Reply(
                b'{"data": [{"index": 0, "embedding": [NaN, 1]}, {"index": 1,'
                b' "embedding": [1, 1]}]}'
                if len(payload["input"]) > 1
                else {"data": [{"index": 0, "embedding": [1.0, 1.0]}]}
            ),
            "NaN",
        ),
        (
            lambda payload: search_reply(None) if payload is None else Reply({}, status=404),
            "not for this use",
        ),
    ],
)
def test_a_trial_says_what_is_wrong(
    server: StubServer, reply: Callable[[Any], Any], said: str
) -> None:
    server.always(reply)
    with pytest.raises(ServerFault, match=said) as caught:
        services.tried_options(options(server))
    assert KEY not in str(caught.value)


def test_new_collections_get_it_and_old_ones_stay(
    connection: ModelConnection, server: StubServer
) -> None:
    old = filled(CollectionFactory(slug="old"))
    space = embedding.use_for_documents(connection=connection)
    assert space.name == f"{EMBEDDER}-{DIMENSIONS}"
    assert (space.embedder, space.model_name) == (connection.alias, EMBEDDER)
    assert embedding.default_embedder() == connection.alias
    new = filled(documents.create_collection(workspace=old.workspace, name="New", slug="new"))
    assert Chunk.objects.get(collection=new).space == space
    assert Chunk.objects.get(collection=old).space != space
    assert server.requests[-1].headers["authorization"] == f"Bearer {KEY}"
    assert embedding.use_for_documents(connection=connection) == space


def test_a_collection_moves_to_it_while_the_former_model_serves_it(
    connection: ModelConnection,
) -> None:
    collection = filled(CollectionFactory(slug="notes"))
    former = collection.space
    space = embedding.use_for_documents(connection=connection, collection=collection)
    (move,) = embedding.moves_to(connection)
    assert (move.collection, move.done, move.total) == (collection, 0, 1)
    assert Chunk.objects.get().space == former
    assert not EmbeddingSpace.objects.get(pk=space.pk).is_default
    documents.reembed_inline(target=space, collection=collection)
    (move,) = embedding.moves_to(connection)
    assert (move.state, move.done) == (Reembedding.State.DONE, 1)
    assert Chunk.objects.get().space == space


def test_everything_moves_to_it(connection: ModelConnection) -> None:
    filled(CollectionFactory(slug="notes"))
    space = embedding.use_for_documents(connection=connection, everything=True)
    assert embedding.default_embedder() == connection.alias
    documents.reembed_inline(target=space)
    assert Chunk.objects.get().space == space


def test_documents_wait_while_its_server_refuses_and_a_new_address_is_used_at_once(
    connection: ModelConnection, server: StubServer
) -> None:
    embedding.use_for_documents(connection=connection)
    collection = documents.create_collection(
        workspace=CollectionFactory().workspace, name="New", slug="new"
    )
    with stub_server() as other:
        other.always(lambda payload: Reply({}, status=401))
        moved = options(other, dimensions=DIMENSIONS)
        services.change_connection(connection=connection, options=moved)
        document = queue_file(collection, "giraffes.txt", TEXT.encode())
        with pytest.raises(BackendUnavailable):
            work_on(document)
    document.refresh_from_db()
    assert document.status != Document.Status.READY
    assert not Chunk.objects.exists()
    services.change_connection(
        connection=connection, options=options(server, dimensions=DIMENSIONS)
    )
    work_on(document)
    assert document.status == Document.Status.READY
    assert Chunk.objects.get().space.embedder == connection.alias


def test_another_length_of_vectors_is_refused_while_some_are_stored(
    connection: ModelConnection, server: StubServer
) -> None:
    filled(CollectionFactory(space=embedding.use_for_documents(connection=connection)))

    def longer(payload: Any) -> Any:
        items = [
            {"index": at, "embedding": [1.0] * (DIMENSIONS + 1)}
            for at in range(len(payload["input"]))
        ]
        return Reply({"data": items})

    server.always(longer)
    with pytest.raises(ServerFault, match="9 dimensions now, those stored have 8"):
        services.try_connection(connection)
    assert ModelConnection.objects.get().dimensions == DIMENSIONS


def test_vectors_of_another_length_are_taken_before_some_are_stored(
    connection: ModelConnection, server: StubServer
) -> None:
    services.change_connection(
        connection=connection, options=options(server, dimensions=DIMENSIONS + 1)
    )
    services.try_connection(connection)
    assert ModelConnection.objects.get().dimensions == DIMENSIONS


def test_another_model_is_refused_while_vectors_are_stored_and_another_name_is_not(
    connection: ModelConnection, server: StubServer
) -> None:
    filled(CollectionFactory(space=embedding.use_for_documents(connection=connection)))
    with pytest.raises(Conflict, match="new collections"):
        services.change_connection(connection=connection, options=options(server, model="other"))
    alias = connection.alias
    services.change_connection(connection=connection, options=options(server, name="Meaning"))
    assert connection.alias == alias
    assert embedders.labels()[alias] == "Meaning"


def test_what_a_connection_is_for_stays(connection: ModelConnection, server: StubServer) -> None:
    with pytest.raises(InvalidInput, match="stays"):
        services.change_connection(
            connection=connection, options=options(server, purpose="reranker")
        )


def test_removal_is_refused_with_the_collections_that_need_it(
    connection: ModelConnection,
) -> None:
    collection = filled(CollectionFactory(slug="notes", name="Notes"))
    former = EmbeddingSpace.objects.get(is_default=True)
    space = embedding.use_for_documents(connection=connection, everything=True)
    documents.reembed_inline(target=space)
    with pytest.raises(Conflict, match=r"“Notes” .* and new collections") as caught:
        services.remove_connection(connection=connection)
    assert "manage.py reembed" in str(caught.value)
    documents.reembed_inline(target=former)
    services.remove_connection(connection=connection)
    assert not ModelConnection.objects.exists()
    assert EmbeddingSpace.objects.get(pk=space.pk).state == EmbeddingSpace.State.RETIRED
    assert Chunk.objects.get(collection=collection).space == former


def test_what_the_environment_names_wins(connection: ModelConnection, settings: Any) -> None:
    space = embedding.use_for_documents(connection=connection)
    collection = filled(CollectionFactory(slug="notes", space=space))
    settings.MODELS_SET = {"embedder"}
    assert documents.default_space().embedder == "default"
    for everything in (False, True):
        with pytest.raises(InvalidInput, match="EMBEDDER_BACKEND"):
            embedding.use_for_documents(connection=connection, everything=everything)
    assert Collection.objects.get(pk=collection.pk).space == space
    assert embedding.use_for_documents(connection=connection, collection=collection) == space


def test_documents_go_to_a_connected_server_by_nobodys_choice_but_a_persons(
    server: StubServer,
) -> None:
    tried = options(server, model="bge-m3", dimensions=DIMENSIONS)
    connection = services.connect_model(options=tried)
    collection = CollectionFactory()
    assert embedders[connection.alias].model_name == "bge-m3"
    embedding.use_for_documents(connection=connection, collection=collection)
    assert fitting_model(["de"]) is None
    embedding.use_for_documents(connection=connection)
    assert fitting_model(["de"]).alias == connection.alias


def test_one_that_was_not_tried_is_not_used(server: StubServer) -> None:
    connection = services.connect_model(options=options(server))
    with pytest.raises(BackendUnavailable, match="Try it first"):
        embedding.use_for_documents(connection=connection)
    services.try_connection(connection)
    embedding.use_for_documents(connection=connection)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"kind": "anthropic"}, "no embedders"),
        ({"kind": "ollama", "purpose": "reranker"}, "no embedders or rerankers"),
    ],
)
def test_not_every_server_has_them(server: StubServer, given: dict[str, str], said: str) -> None:
    with pytest.raises(InvalidInput, match=said):
        services.connect_model(options=options(server, **given))


def test_they_serve_the_whole_site(server: StubServer) -> None:
    workspace = CollectionFactory().workspace
    with pytest.raises(InvalidInput, match="whole site"):
        services.connect_model(
            options=options(server, address="https://example.org"), workspace=workspace
        )
    with pytest.raises(InvalidInput, match="open to all"):
        services.connect_model(options=options(server), workspaces=[workspace.pk])


def test_a_change_is_known_two_seconds_later(
    connection: ModelConnection, monkeypatch: pytest.MonkeyPatch, django_assert_num_queries: Any
) -> None:
    now = [100.0]
    monkeypatch.setattr(registry, "monotonic", lambda: now[0])
    monkeypatch.setattr(registry, "MAX_AGE_SECONDS", 2.0)
    registry.forget()
    before = embedders[connection.alias]
    rows = ModelConnection.objects.filter(pk=connection.pk)
    rows.update(dimensions=9, updated_at="2030-01-01T00:00Z")  # by another process
    now[0] += 1.9
    with django_assert_num_queries(0):
        assert embedders[connection.alias] is before
    now[0] += 0.2
    assert embedders[connection.alias].dimensions == 9


def test_another_process_embeds_by_a_key_that_was_changed_meanwhile(
    unstarted_worker_process: WorkerProcess, server: StubServer
) -> None:
    def reply(payload: Any) -> Any:
        is_known = server.requests[-1].headers.get("authorization") == "Bearer sk-new"
        return search_reply(payload) if is_known else Reply({}, status=401)

    server.always(reply)
    connection = services.connect_model(
        options=options(server, key="sk-old", dimensions=DIMENSIONS)
    )
    collection = CollectionFactory()
    embedding.use_for_documents(connection=connection, collection=collection)
    collection.refresh_from_db()
    unstarted_worker_process.start()
    document = queue_file(collection, "giraffes.txt", TEXT.encode())
    wait_until(lambda: len(server.requests) > 0, what="the worker asked with the former key")
    services.change_connection(
        connection=connection, options=options(server, key="sk-new", dimensions=DIMENSIONS)
    )
    ready = Document.objects.filter(pk=document.pk, status="ready")
    wait_until(ready.exists, what="the worker embeds with the new key")
    assert server.requests[0].headers["authorization"] == "Bearer sk-old"
