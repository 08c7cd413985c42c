"""Searching over what passages name: two documents that share no word with each other."""

from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from accounts.models import Workspace
from common.errors import InvalidInput
from documents.models import Chunk, Collection, Document
from documents.tests.factories import (
    ChunkFactory,
    CollectionFactory,
    DocumentFactory,
    MembershipFactory,
)
from graph.models import Edge, Mention
from graph.querysets import Origin
from graph.tests.factories import make_edge, make_evidence, make_extracted, make_mention
from search.query import parse_query
from search.query_options import scope_for, site_scope
from search.results import Hit, SearchResult
from search.retrieval.arms import retrieve, score_additional_chunks
from search.services import search

pytestmark = [pytest.mark.django_db]

QUESTION = "Where was the composer of Nightfall born?"


def passage(
    collection: Collection, key: str, text: str, *, embedding: Any = None, **fields: Any
) -> Chunk:
    document = DocumentFactory(collection=collection, key=key, title=key.capitalize(), **fields)
    given = {} if embedding is None else {"embedding": embedding}
    return ChunkFactory(document=document, text=text, context=document.title, **given)


@pytest.fixture
def collection() -> Collection:
    collection: Collection = CollectionFactory(slug="music")
    return collection


@pytest.fixture
def bridge(collection: Collection) -> tuple[Chunk, Chunk]:
    """A passage that fits the question, and one that only the first one leads to, among others."""
    first = passage(collection, "nightfall", "Nightfall is a suite by the composer Ilka Moravec.")
    second = passage(collection, "moravec", "She grew up in the harbour town of Pula.")
    for number in range(12):
        text = f"Song {number} tells of winter, and where the snow lies."
        passage(collection, f"other {number}", text)
    node = make_extracted("ent:name:ilka moravec", first, name="Ilka Moravec")
    make_mention(second, node, kind=Mention.Kind.SELF)
    make_extracted("ent:name:nightfall", first, name="Nightfall")
    return first, second


class NightfallReranker:
    """Finds only what names the piece relevant."""

    model_name = "nightfall"

    def score(self, query: str, texts: list[str], **options: Any) -> list[float]:
        return [0.9 if "Nightfall" in text else 0.1 for text in texts]


def ask(collection: Collection, query: str = QUESTION, **options: Any) -> SearchResult:
    options = {"mode": "graph", "k": 20, **options}
    return search(query, scope=site_scope(workspace=collection.workspace), **options)


def of(result: SearchResult, chunk: Chunk) -> Hit:
    return next(hit for hit in result.hits if hit.chunk_id == chunk.pk)


def test_the_graph_brings_up_what_the_best_hit_names(
    collection: Collection, bridge: tuple[Chunk, Chunk]
) -> None:
    without = of(ask(collection, mode="hybrid"), bridge[1])
    led = of(ask(collection), bridge[1])
    assert led.rank < without.rank
    assert led.graph is not None
    assert 0 < led.graph <= 1
    assert led.ranks["graph"] >= 1
    assert led.contributions["graph"] > 0
    assert led.fused == pytest.approx(sum(led.contributions.values()))


def test_the_path_tells_how_it_was_found(
    collection: Collection, bridge: tuple[Chunk, Chunk]
) -> None:
    path = of(ask(collection), bridge[1]).path
    assert [(stop.kind, stop.name) for stop in path] == [
        ("node", "Nightfall"),
        ("chunk", "Nightfall"),
        ("node", "Ilka Moravec"),
        ("chunk", "Moravec"),
    ]
    assert path[1].id == "chunk:music:nightfall:0"
    assert path[2].id == "ent:name:ilka moravec"


def test_without_a_graph_the_mode_is_hybrid(collection: Collection) -> None:
    for number in range(5):
        passage(collection, f"song {number}", f"Song {number} is sung by the composer at night.")
    hybrid, graph = ask(collection, mode="hybrid"), ask(collection)
    assert [hit.chunk_id for hit in graph.hits] == [hit.chunk_id for hit in hybrid.hits]
    assert [hit.path for hit in graph.hits] == [()] * 5


def test_what_may_not_be_read_is_not_there_and_leads_nowhere(collection: Collection) -> None:
    reader = MembershipFactory(workspace=collection.workspace).user
    first = passage(collection, "nightfall", "Nightfall is a suite by the composer Ilka Moravec.")
    secret = passage(collection, "secret", "Ilka Moravec is Anna Weber.", access=["user:0"])
    last = passage(collection, "weber", "She grew up in the harbour town of Pula.")
    make_extracted("ent:name:ilka moravec", first, secret)
    make_extracted("ent:name:anna weber", secret, last)
    scope = scope_for(user=reader, workspace=collection.workspace)
    result = search(QUESTION, scope=scope, mode="graph", expand="graph")
    assert secret.pk not in [hit.chunk_id for hit in result.hits]
    assert of(result, last).path == ()
    assert [passage.chunk_id for hit in result.hits for passage in hit.related] == []
    everything = ask(collection)
    assert of(everything, last).path


def test_filters_hold_for_what_the_graph_adds(
    collection: Collection, bridge: tuple[Chunk, Chunk]
) -> None:
    scope = site_scope(workspace=collection.workspace, filter={"title": {"$ne": "Moravec"}})
    result = search(QUESTION, scope=scope, mode="graph", k=20)
    assert bridge[1].pk not in [hit.chunk_id for hit in result.hits]
    assert bridge[0].pk in [hit.chunk_id for hit in result.hits]


def test_a_superseded_version_is_not_led_to(
    collection: Collection, bridge: tuple[Chunk, Chunk]
) -> None:
    Document.objects.filter(pk=bridge[1].document_id).update(is_current=False)
    Chunk.objects.filter(pk=bridge[1].pk).update(is_current=False)
    assert bridge[1].pk not in [hit.chunk_id for hit in ask(collection).hits]


def test_another_workspace_with_the_same_names_is_not_reached(
    collection: Collection, bridge: tuple[Chunk, Chunk]
) -> None:
    other = CollectionFactory(slug="music")
    theirs = passage(other, "moravec", "Ilka Moravec lives in a house by the sea.")
    make_extracted("ent:name:ilka moravec", theirs)
    assert theirs.pk not in [hit.chunk_id for hit in ask(collection).hits]


def test_passages_that_no_arm_listed_get_the_scores_of_both(
    collection: Collection, bridge: tuple[Chunk, Chunk]
) -> None:
    query, scope = parse_query(QUESTION), site_scope(workspace=collection.workspace)
    whole = retrieve(query, scope=scope, mode="hybrid", depth=50)
    few = retrieve(query, scope=scope, mode="hybrid", depth=2)
    known = {each.chunk_id for each in few.candidates}
    missing = [each.chunk_id for each in whole.candidates if each.chunk_id not in known]
    assert missing
    added = score_additional_chunks(few, missing, query=query, scope=scope, depth=2)
    wanted = {each.chunk_id: each for each in whole.candidates}
    assert {each.chunk_id for each in added.candidates} == set(wanted)
    for each in added.candidates:
        there = wanted[each.chunk_id]
        for score in ("lexical", "similarity", "likeness"):
            assert each.arm_score(score) == pytest.approx(there.arm_score(score))


def test_edges_lead_on_too(collection: Collection) -> None:
    first = passage(collection, "nightfall", "Nightfall is a suite by the composer Ilka Moravec.")
    last = passage(collection, "pula", "The harbour lies in the west of the town.")
    for number in range(6):
        passage(collection, f"other {number}", "Snow lies on the hills.")
    composer = make_extracted("ent:name:ilka moravec", first)
    town = make_extracted("ent:name:pula", last)
    assert of(ask(collection), last).path == ()
    edge = make_edge(composer, "BORN_IN", town)
    found = of(ask(collection), last)
    assert [found.path[0].name, found.path[-1].name] == ["Nightfall", "Pula"]
    assert found.path[1].id in (composer.key, town.key)
    Edge.objects.filter(pk=edge.pk).update(origin=Origin.EXTRACTED)
    assert of(ask(collection), last).path == ()
    make_evidence(first, edge)
    assert of(ask(collection), last).path


def test_expansion_adds_what_names_the_same_and_what_stands_beside(
    collection: Collection, bridge: tuple[Chunk, Chunk]
) -> None:
    first, second = bridge
    beside = ChunkFactory(document=first.document, text="It was first played in a barn.")
    result = ask(collection, mode="lexical", k=1, expand="graph")
    related = {passage.chunk_id: passage for passage in result.hits[0].related}
    assert set(related) == {second.pk, beside.pk}
    assert {passage.expanded_from for passage in related.values()} == {first.pk}
    assert [stop.name for stop in related[second.pk].path] == [
        "Nightfall",
        "Ilka Moravec",
        "Moravec",
    ]
    assert [stop.kind for stop in related[beside.pk].path] == ["chunk", "chunk"]


def test_expansion_is_three_passages_a_hit_at_most(collection: Collection) -> None:
    first = passage(collection, "nightfall", "Nightfall is a suite by the composer Ilka Moravec.")
    others = [passage(collection, f"moravec {n}", "She lived elsewhere.") for n in range(8)]
    make_extracted("ent:name:ilka moravec", first, *others)
    result = ask(collection, "Nightfall suite", mode="lexical", k=1, expand="graph")
    assert len(result.hits[0].related) == 3


def test_a_name_in_every_passage_leads_nowhere(workspace_of_many: Workspace) -> None:
    scope = site_scope(workspace=workspace_of_many)
    result = search("Who sings at dawn?", scope=scope, mode="graph", expand="graph")
    assert [hit.path for hit in result.hits] == [()] * len(result.hits)
    assert [hit.related for hit in result.hits] == [()] * len(result.hits)


@pytest.fixture
def workspace_of_many() -> Workspace:
    collection = CollectionFactory()
    document = DocumentFactory(collection=collection)
    passages = [
        passage(collection, f"song {number}", f"Song {number} is sung at dawn.")
        for number in range(6)
    ]
    node = make_extracted("ent:name:everybody", *passages)
    fillers = [
        Chunk(
            workspace=collection.workspace,
            collection=collection,
            document=document,
            space=collection.space,
            ordinal=number,
            text="Filler.",
            start=0,
            end=7,
            content_sha256="0" * 64,
        )
        for number in range(400)
    ]
    Chunk.objects.bulk_create(fillers)
    Mention.objects.bulk_create(
        [Mention(workspace=collection.workspace, chunk=chunk, node=node) for chunk in fillers]
    )
    workspace: Workspace = collection.workspace
    return workspace


def test_of_two_names_the_one_is_followed_that_the_rest_of_the_question_is_about(
    collection: Collection,
) -> None:
    def vector(**values: float) -> list[float]:
        """Of the directions “song”, “birth” and “guitar”."""
        known = [values.get(name, 0.0) for name in ("song", "birth", "guitar")]
        return known + [0.0] * (collection.space.dimensions - len(known))

    first = passage(collection, "nightfall", "Nightfall is a suite.", embedding=vector(song=1))
    born = passage(collection, "moravec", "Pula.", embedding=vector(birth=1))
    made = passage(collection, "luthier", "Cedar.", embedding=vector(song=0.2, guitar=1))
    for name, chunk in (("moravec", born), ("luthier", made)):
        make_mention(chunk, make_extracted(f"ent:name:{name}", first), kind=Mention.Kind.SELF)
    question = vector(song=1, birth=0.6)
    result = ask(collection, vector=question)

    graph = {chunk.pk: of(result, chunk).graph or 0.0 for chunk in (first, born, made)}
    assert graph[first.pk] == 1
    assert graph[born.pk] > 2 * graph[made.pk] > 0


def test_what_a_path_leads_to_loses_nothing_by_the_reranker(
    collection: Collection, bridge: tuple[Chunk, Chunk], settings: Any
) -> None:
    backend = {"BACKEND": f"{__name__}.NightfallReranker"}
    settings.INFERENCE = {**settings.INFERENCE, "reranker": {"default": backend}}
    led = of(ask(collection, rerank=True), bridge[1])
    unled = of(ask(collection, rerank=True, mode="hybrid"), bridge[1])

    assert led.rerank == unled.rerank
    assert unled.rerank_factor < 1
    assert led.rerank_factor == 1


def test_weights_may_name_the_graph_in_its_mode_only(
    collection: Collection, bridge: tuple[Chunk, Chunk]
) -> None:
    result = ask(collection, weights={"lexical": 1, "vector": 1, "graph": 5})
    assert {arm.name: arm.weight for arm in result.arms}["graph"] == 5
    assert of(result, bridge[1]).rank == 2
    with pytest.raises(InvalidInput, match="no arm “graph”"):
        ask(collection, mode="hybrid", weights={"graph": 1})


@pytest.mark.parametrize(
    ("key", "question"),
    [
        ("ent:code:rfc 2119", "Who wrote RFC2119?"),
        ("ent:date:1943 03 12", "Who met on 12 March 1943?"),
        ("ent:name:ilka moravec", "where did ilka moravec live"),
    ],
)
def test_questions_name_things_in_several_ways(
    collection: Collection, key: str, question: str
) -> None:
    about = passage(collection, "about", "She lived by the sea.")
    for number in range(6):
        passage(collection, f"other {number}", "Snow lies on the hills.")
    make_extracted(key, about)
    assert of(ask(collection, question), about).path[0].id == key


def test_ranks_are_fused_too(collection: Collection, bridge: tuple[Chunk, Chunk]) -> None:
    without = of(ask(collection, mode="hybrid", fusion="rrf"), bridge[1])
    led = of(ask(collection, fusion="rrf"), bridge[1])
    assert led.rank < without.rank


def test_passages_are_looked_up_by_id_however_little_is_known_of_their_collection(
    collection: Collection, bridge: tuple[Chunk, Chunk]
) -> None:
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE documents_chunk, graph_mention")
    young = CollectionFactory(workspace=collection.workspace)
    chunks = [passage(young, f"dawn {number}", "Ilka Moravec sang.") for number in range(30)]
    make_extracted("ent:name:dawn", *chunks)
    with CaptureQueriesContext(connection) as queries:
        ask(collection, "dawn", expand="graph")
    asked = [each["sql"] for each in queries if "graph_mention" in each["sql"]]
    assert len(asked) == 2
    for sql in asked:
        with connection.cursor() as cursor:
            cursor.execute(f"EXPLAIN {sql}")
            plan = "\n".join(line for (line,) in cursor.fetchall())
        assert "documents_chunk_pkey" in plan
        assert "Seq Scan on documents_chunk chunk" not in plan
        assert "chunk_collection_space_index" not in plan
