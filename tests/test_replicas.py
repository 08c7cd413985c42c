"""Reading from a replica that really streams: never older than what was committed."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.db import connection, connections, router, transaction
from django.test.utils import CaptureQueriesContext

from accounts.models import Membership
from common import replicas
from common.postgresql.base import DatabaseWrapper
from documents.ingestion.sources import text_source
from documents.models import Chunk, Collection, Document
from documents.services import delete_document, ingest_inline
from documents.tests.factories import (
    ChunkFactory,
    CollectionFactory,
    DocumentFactory,
    MembershipFactory,
)
from graph import services as graph_services
from graph.scopes import graph_scope
from graph.services import upsert_edge, upsert_node
from memory.scopes import scope_of
from memory.services.memories import archive_turn
from memory.services.search import search_memory
from ragsite.health import Outcome, replicas_outcome
from search.available_fields import available_fields
from search.facets import facet_values
from search.query_options import scope_for
from search.services import search
from search.similar import similar_documents
from tests.kit import client_of
from tests.plugin import wait_until
from tests.replica import Replica, running_replica

ALIAS = "replica_1"


class Connection(DatabaseWrapper):
    """One that pytest-django does not forbid for being none of a database that it can empty."""

    def ensure_connection(self) -> None:
        if self.connection is None:
            with self.wrap_database_errors:
                self.connect()


@pytest.fixture(scope="module")
def server(django_db_setup: None) -> Iterator[Replica]:
    with running_replica() as replica:
        yield replica


@pytest.fixture
def replica(
    server: Replica, transactional_db: None, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Replica]:
    """The replica as the settings would have it, caught up and patient."""
    described = connection.settings_dict
    connections.databases[ALIAS] = {**described, "HOST": str(server.sockets)}
    connections[ALIAS] = Connection(connections.databases[ALIAS], ALIAS)
    settings.DATABASE_REPLICAS = (ALIAS,)
    settings.REPLICA_MAX_LAG_SECONDS = 20.0
    monkeypatch.setattr(router, "routers", [replicas.ReplicaRouter()])
    monkeypatch.setattr(replicas, "_health", {})
    with connection.cursor() as cursor:  # the tests' server does without, see tests.plugin
        cursor.execute("SET synchronous_commit TO on")
    yield server
    server.start_if_stopped()
    server.resume()
    connections[ALIAS].close()
    del connections[ALIAS], connections.databases[ALIAS]
    connection.close()


@pytest.fixture
def alice(replica: Replica) -> Membership:
    return MembershipFactory()


@pytest.fixture
def leaflets(alice: Membership) -> Collection:
    collection = CollectionFactory(workspace=alice.workspace, slug="leaflets")
    document = DocumentFactory(collection=collection, title="Aripiprazole")
    ChunkFactory(document=document, text="Common side effects are nausea and restlessness.")
    return collection


@pytest.fixture
def found(alice: Membership, leaflets: Collection) -> Callable[[str], list[str]]:
    """What a search over the API finds for Alice."""
    client = client_of(alice)

    def texts(question: str) -> list[str]:
        answer = client.get("/api/v1/search/", {"q": question})
        assert answer.status_code == 200, answer.content
        return [hit["text"] for hit in answer.json()["hits"]]

    return texts


def test_a_search_is_read_from_the_replica(found: Callable[[str], list[str]]) -> None:
    with (
        CaptureQueriesContext(connections[ALIAS]) as there,
        CaptureQueriesContext(connection) as here,
    ):
        hits = found("nausea")

    assert hits == ["Common side effects are nausea and restlessness."]
    assert any("documents_chunk" in query["sql"] for query in there)
    assert not any("FROM documents_chunk" in query["sql"] for query in here)


def test_what_was_just_brought_is_found_while_the_replica_stands_still(
    found: Callable[[str], list[str]], leaflets: Collection, replica: Replica, settings: Any
) -> None:
    replica.pause()
    settings.REPLICA_MAX_LAG_SECONDS = 0.0

    ingest_inline(collection=leaflets, sources=[text_source("tremor.txt", "Tremor is rare.")])

    assert "Tremor is rare." in found("tremor")
    assert replica.ask("SELECT count(*) FROM documents_chunk WHERE text LIKE 'Tremor%'") == 0


def test_what_was_deleted_does_not_answer_while_the_replica_still_has_it(
    found: Callable[[str], list[str]], leaflets: Collection, replica: Replica, settings: Any
) -> None:
    found("nausea")  # so that the replica has it
    replica.pause()
    settings.REPLICA_MAX_LAG_SECONDS = 0.0

    delete_document(document=Document.objects.get(collection=leaflets))

    assert found("nausea") == []
    assert replica.ask("SELECT count(*) FROM documents_chunk WHERE text LIKE '%nausea%'") == 1


def test_what_is_kept_from_somebody_is_so_at_once(
    found: Callable[[str], list[str]], leaflets: Collection, replica: Replica, settings: Any
) -> None:
    found("nausea")
    replica.pause()
    settings.REPLICA_MAX_LAG_SECONDS = 0.0

    Chunk.objects.filter(collection=leaflets).update(access=["group:0"])

    assert found("nausea") == []


def test_one_that_was_behind_is_read_again_when_it_has_caught_up(
    found: Callable[[str], list[str]],
    leaflets: Collection,
    replica: Replica,
    settings: Any,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    replica.pause()
    settings.REPLICA_MAX_LAG_SECONDS = 0.0
    monkeypatch.setattr(replicas, "LAGGING_PAUSE_SECONDS", 0.0)
    Collection.objects.update(name="Changed")
    found("nausea")
    assert not read_there(found)

    replica.resume()

    wait_until(lambda: read_there(found), what="the replica is read again")


def test_a_replica_that_goes_away_is_nobodys_trouble(
    found: Callable[[str], list[str]], replica: Replica, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(replicas, "FAILED_PAUSE_SECONDS", 0.0)
    assert read_there(found)
    replica.stop()

    assert found("nausea") != []
    looked = replicas_outcome(replicas.replica_state())
    assert not looked.ok
    assert ALIAS in looked.detail

    replica.start()
    wait_until(lambda: read_there(found), what="the replica is read again")
    well = Outcome(ok=True, detail=f"{ALIAS}: streaming")
    wait_until(lambda: replicas_outcome(replicas.replica_state()) == well, what="it has caught up")


def test_a_statement_that_fails_on_the_replica_is_read_from_the_primary(
    leaflets: Collection,
) -> None:
    asked = []

    @replicas.reads_from_replica
    def count() -> int:
        asked.append(replicas.read_alias())
        if replicas.read_alias() == ALIAS:
            Collection.objects.using(ALIAS).create(name="No", slug="no")
        return Collection.objects.count()

    assert count() == 1
    assert asked == [ALIAS, "default"]


def test_within_a_transaction_its_own_rows_are_read(
    alice: Membership, leaflets: Collection
) -> None:
    with transaction.atomic():
        ChunkFactory(document=DocumentFactory(collection=leaflets), text="Tremor is rare.")
        result = search("tremor", scope=scope_for(user=alice.user, workspace=alice.workspace))

    assert "Tremor is rare." in [hit.text for hit in result.hits]


def test_every_door_reads_from_the_replica_alone(
    alice: Membership, leaflets: Collection, settings: Any, caplog: pytest.LogCaptureFixture
) -> None:
    settings.EXACT_SCAN_CHUNKS = 0  # so that the index is asked, with settings of its own
    graph = graph_scope(user=alice.user, workspace=alice.workspace)
    upsert_node(scope=graph, id="drug", name="Aripiprazole")
    upsert_edge(scope=graph, source="drug", rel="CAUSES", target="nausea", strict=False)
    mine = scope_of(user=alice.user, workspace=alice.workspace)
    archive_turn(scope=mine, user_message="Do I feel nausea?")
    scope = scope_for(user=alice.user, workspace=alice.workspace)
    document = Document.objects.get(collection=leaflets)
    doors: list[Callable[[], Any]] = [
        lambda: search("nausea", scope=scope, mode="graph", facets=["*"]).hits,
        lambda: search("nausae", scope=scope, group=True).hits,
        lambda: similar_documents(document, scope=scope) == (),
        lambda: facet_values("", scope=scope, facet="language"),
        lambda: available_fields(scope),
        lambda: search_memory(scope=mine, query="nausea").hits,
        lambda: graph_services.get_node(scope=graph, id="drug"),
        lambda: graph_services.find_nodes(scope=graph, text="Aripiprazol"),
        lambda: graph_services.find_nodes(scope=graph, text="Aripprazoel"),
        lambda: graph_services.neighbors(scope=graph, id="drug").items,
        lambda: graph_services.traverse(scope=graph, start="drug").items,
        lambda: graph_services.shortest_path(scope=graph, source="drug", target="nausea"),
        lambda: graph_services.subgraph(scope=graph, ids=["drug"]).vertices,
        lambda: graph_services.mentions_of(scope=graph, id="drug") is not None,
        lambda: graph_services.graph_statistics(scope=graph).nodes,
    ]
    assert all(state.ok for state in replicas.replica_state())
    for door in doors:
        with (
            CaptureQueriesContext(connections[ALIAS]) as there,
            CaptureQueriesContext(connection) as here,
        ):
            assert door()
        assert len(there) > 1
        assert [query["sql"] for query in here if "pg_current_wal" not in query["sql"]] == []
    assert caplog.messages == []


def test_the_primary_is_not_taken_for_a_replica(
    found: Callable[[str], list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(connections[ALIAS].settings_dict, "HOST", connection.settings_dict["HOST"])
    connections[ALIAS].close()

    assert found("nausea") != []
    (state,) = replicas.replica_state()
    assert "no replica" in state.detail


def read_there(found: Callable[[str], list[str]]) -> bool:
    """Whether a search now is read from the replica."""
    with CaptureQueriesContext(connections[ALIAS]) as there:
        found("nausea")
    return any("documents_chunk" in query["sql"] for query in there)
