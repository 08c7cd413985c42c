"""What happens after the arms: thresholds, reranking, diversity, grouping, what stands around."""

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from common.errors import InvalidInput
from documents.ingestion.sources import text_source
from documents.models import Chunk, Collection
from documents.services import ingest_inline
from documents.tests.factories import CollectionFactory, embed
from search.query_options import site_scope
from search.ranking import diversify
from search.results import SearchResult
from search.services import search
from search.stores import Store
from tests.kit import use_models

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("media_root")]

COUNT = 30


class JudgeServer(ThreadingHTTPServer):
    """A rerank server that likes texts by the number in them, and notes what it was asked."""

    def __init__(self) -> None:
        self.asked: list[dict[str, Any]] = []
        self.broken = False
        super().__init__(("127.0.0.1", 0), _Judge)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"


class _Judge(BaseHTTPRequestHandler):
    server: JudgeServer

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.asked.append(asked)
        results = [
            {"index": place, "relevance_score": int(text.split("number ")[1].split()[0]) / 100}
            for place, text in enumerate(asked["documents"])
        ]
        answer = b"no" if self.server.broken else json.dumps({"results": results}).encode()
        self.send_response(400 if self.server.broken else 200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, format: str, *args: Any) -> None:
        pass


@pytest.fixture
def judge(settings: Any) -> Iterator[JudgeServer]:
    """A rerank server, set up as the site's reranker."""
    server = JudgeServer()
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    use_models(settings, reranker=entry(server))
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


def entry(server: JudgeServer) -> dict[str, Any]:
    return {
        "BACKEND": "inference.backends.rerank_http.HttpReranker",
        "OPTIONS": {"model": "judge", "base_url": server.url, "logits": False, "timeout": 5.0},
    }


@pytest.fixture(scope="module")
def otters(shared_rows: None) -> int:
    """Thirty passages about otters, told apart by a number; the more otters the better by words."""
    collection = CollectionFactory(default_language="en")
    texts = [f"Passage number {n} of " + "otter " * (COUNT - n) + "and water" for n in range(COUNT)]
    ingest_inline(
        collection=collection,
        sources=[text_source(f"{n:02}", text) for n, text in enumerate(texts)],
    )
    return int(collection.pk)


@pytest.fixture
def collection(otters: int) -> Collection:
    return Collection.objects.get(pk=otters)


def find(collection: Collection, query: str = "otter", **options: Any) -> SearchResult:
    return search(query, scope=site_scope(workspace=collection.workspace), **options)


def keys(result: SearchResult) -> list[str]:
    return [hit.document_key for hit in result.hits]


@pytest.mark.parametrize(("rerank", "count"), [(None, 12), (True, 20)])
def test_fused_score_and_reranker_together_order_the_first_hits(
    collection: Collection, judge: JudgeServer, *, rerank: bool | None, count: int
) -> None:
    plain = find(collection, mode="lexical", k=30, rerank=False)
    result = find(collection, mode="lexical", k=30, rerank=rerank)
    assert (result.reranked, result.reranker, result.degraded) == (count, "default", ())
    places = {key: place for place, key in enumerate(keys(plain), start=1)}
    assert {hit.document_key: hit.fused_rank for hit in result.hits} == places
    for hit in result.hits:
        number = int(hit.document_key)
        is_read = places[hit.document_key] <= count
        assert hit.rerank == (pytest.approx(number / 100) if is_read else None)
    factors = {hit.document_key: hit.rerank_factor for hit in result.hits}
    read = [key for key, place in places.items() if place <= count]
    assert sorted(read, key=lambda key: factors[key]) == sorted(read)  # greater numbers are better
    assert {factors[key] for key in places.keys() - read} == {1.0}
    scores = {hit.document_key: hit.fused * factors[hit.document_key] for hit in plain.hits}
    assert keys(result) == sorted(places, key=lambda key: -scores[key])
    assert keys(result) != keys(plain)
    assert [hit.relevance for hit in result.hits] == sorted(
        (hit.relevance for hit in result.hits), reverse=True
    )
    assert result.timings["rerank"] > 0
    assert judge.asked[0]["query"] == "otter"


def test_pages_of_reranked_hits_fit_together(collection: Collection, judge: JudgeServer) -> None:
    pages = [find(collection, mode="lexical", k=5, offset=offset) for offset in range(0, 30, 5)]
    joined = [key for page in pages for key in keys(page)]
    assert joined == keys(find(collection, mode="lexical", k=30))
    assert {len(asked["documents"]) for asked in judge.asked} == {12}
    relevance = [hit.relevance for page in pages for hit in page.hits]
    assert relevance == sorted(relevance, reverse=True)


def test_few_hits_are_reranked_too(collection: Collection, judge: JudgeServer) -> None:
    scope = site_scope(workspace=collection.workspace, filter={"document": {"$in": ["03", "07"]}})
    assert search("otter", scope=scope).reranked == 2


def test_the_number_of_hits_to_rerank_can_be_given(
    collection: Collection, judge: JudgeServer
) -> None:
    assert find(collection, mode="lexical", rerank_depth=3).reranked == 3
    assert find(collection, mode="lexical", rerank=True, rerank_depth=25).reranked == 25


def test_vectors_without_text_cannot_be_read_and_keep_their_score(
    collection: Collection, judge: JudgeServer
) -> None:
    store = Store(collection)
    store.upsert_vector("bare", embed("otter"))
    result = find(collection, mode="vector", k=31)
    (bare,) = [hit for hit in result.hits if hit.document_key == "bare"]
    assert (bare.fused_rank, bare.rerank, bare.score) == (1, None, bare.fused)
    assert len(result.hits) == COUNT + 1
    assert result.reranked == 11


def test_a_reranker_that_fails_leaves_the_order_and_says_so(
    collection: Collection, judge: JudgeServer
) -> None:
    plain = keys(find(collection, rerank=False))
    judge.broken = True
    result = find(collection)
    assert keys(result) == plain
    assert result.degraded == ("rerank",)
    assert "reranker does not answer" in result.notes[-1]
    assert all(hit.rerank is None for hit in result.hits)


def test_a_threshold_keeps_only_what_has_that_score_and_reaches_it(
    collection: Collection, judge: JudgeServer
) -> None:
    everything = find(collection, mode="lexical", rerank=True, k=30)
    reached = [hit.document_key for hit in everything.hits if (hit.rerank or 0) >= 0.15]
    assert 0 < len(reached) < everything.reranked == 20
    result = find(collection, mode="lexical", min_rerank=0.15, k=3)
    assert (keys(result), result.total) == (reached[:3], len(reached))
    judge.broken = True
    assert find(collection, min_rerank=0.15).hits == ()


def test_similarity_has_a_threshold_of_its_own(collection: Collection) -> None:
    everything = find(collection, k=30)
    similarities = sorted(hit.similarity or 0 for hit in everything.hits)
    least = similarities[len(similarities) // 2]
    result = find(collection, k=30, min_similarity=least)
    assert {hit.similarity for hit in result.hits} == {s for s in similarities if s >= least}
    assert find(collection, min_similarity=1.0).total == 0


def test_relevance_has_a_threshold_in_any_mode(collection: Collection) -> None:
    everything = find(collection, k=30)
    least = everything.hits[len(everything.hits) // 2].relevance
    reached = [hit.document_key for hit in everything.hits if hit.relevance >= least]
    result = find(collection, k=3, min_relevance=least)
    assert 3 < len(reached) < everything.total
    assert (keys(result), result.total) == (reached[:3], len(reached))
    assert len(find(collection, min_relevance=1.0, mode="vector").hits) == 1


def test_the_collections_own_reranker_and_instruction_are_used(
    collection: Collection, judge: JudgeServer, settings: Any
) -> None:
    reranker = settings.INFERENCE["reranker"]
    none = {"BACKEND": "inference.backends.rerank_basic.NoReranker"}
    use_models(settings, reranker={"default": none, "own": reranker["default"]})
    assert find(collection).reranked == 0
    Collection.objects.update(reranker="own")
    assert find(collection).reranker == "own"
    # Two collections that disagree get the site's, which is none here.
    CollectionFactory(workspace=collection.workspace)
    assert find(collection).reranked == 0


@pytest.mark.parametrize(
    ("options", "field"),
    [
        ({"min_rerank": 0.5, "rerank": False}, "min_rerank"),
        ({"min_similarity": 0.5, "mode": "lexical"}, "min_similarity"),
        ({"ef_search": 50, "mode": "lexical"}, "ef_search"),
        ({"k": 101}, "k"),
        ({"offset": -1}, "offset"),
        ({"weights": {"graph": 1}}, "weights"),
        ({"weights": {"lexical": 0, "vector": 0}}, "weights"),
        ({"weights": {"lexical": float("nan")}}, "weights.lexical"),
        ({"vector": [1.0, 2.0]}, "vector"),
        ({"vector": [0.0] * 384}, "vector"),
        ({"vector": [float("inf")] * 384}, "vector"),
        ({"vector": ["a"] * 384}, "vector"),
        ({"facets": ["page"]}, "facet"),
        ({"facets": [f"field{n}" for n in range(11)]}, "facet"),
    ],
)
def test_what_cannot_be_is_refused_by_name(
    collection: Collection, options: dict[str, Any], field: str
) -> None:
    with pytest.raises(InvalidInput) as caught:
        find(collection, **options)
    assert caught.value.field == field


@pytest.mark.parametrize("options", [{"rerank": True}, {"min_rerank": 0.5}])
def test_reranking_is_refused_where_nothing_reranks(
    collection: Collection, settings: Any, options: dict[str, Any]
) -> None:
    none = {"BACKEND": "inference.backends.rerank_basic.NoReranker"}
    use_models(settings, reranker=none)
    with pytest.raises(InvalidInput, match="There is no reranker") as caught:
        find(collection, **options)
    assert caught.value.field == "rerank"


def test_a_missing_reranker_is_refused_before_the_question_is_embedded(
    collection: Collection, settings: Any
) -> None:
    broken = {"BACKEND": "nowhere.Embedder"}  # the search would say that it does not work
    use_models(settings, embedder=broken, reranker={})

    with pytest.raises(InvalidInput, match=r"There is no reranker\. Whoever runs this site"):
        find(collection, mode="vector", rerank=True)


def test_weights_that_are_given_take_the_place_of_the_usual(collection: Collection) -> None:
    words = find(collection, weights={"lexical": 1}, rerank=False)
    assert keys(words) == keys(find(collection, mode="lexical", rerank=False))
    assert {arm.name: arm.weight for arm in words.arms} == {"lexical": 1.0, "vector": 0.0}
    meaning = find(collection, weights={"vector": 0.5}, rerank=False)
    assert keys(meaning) == keys(find(collection, mode="vector", rerank=False))


def test_a_vector_of_ones_own_is_asked_instead_of_the_question(collection: Collection) -> None:
    target = collection.documents.get(key="17").chunks.get()
    result = find(collection, "", mode="vector", vector=list(target.embedding))
    assert keys(result)[0] == "17"
    assert result.hits[0].similarity == pytest.approx(1.0, abs=1e-5)


def test_facets_count_the_metadata_that_hits_have() -> None:
    collection = CollectionFactory(default_language="en")
    metadata: list[dict[str, Any]] = [
        {"year": 2020, "tags": ["a", "b"], "draft": True},
        {"year": 2020, "tags": ["a"]},
        {"year": "2020", "author": {"name": "Ann"}},
    ]
    ingest_inline(
        collection=collection,
        sources=[
            text_source(str(n), f"otter {n}", metadata=said) for n, said in enumerate(metadata)
        ],
    )
    result = find(collection, facets=["year", "tags", "author.name", "draft"])

    def shown(name: str) -> list[tuple[str, int, str]]:
        return [(facet.value, facet.count, facet.filter) for facet in result.facets[name]]

    assert shown("year") == [("2020", 2, "year=2020"), ("2020", 1, 'year="2020"')]
    assert shown("tags") == [("a", 2, "tags=a"), ("b", 1, "tags=b")]
    assert shown("author.name") == [("Ann", 1, "author.name=Ann")]
    assert shown("draft") == [("yes", 1, "draft")]
    for name in ("year", "tags", "author.name", "draft"):
        for facet in result.facets[name]:
            scope = site_scope(workspace=collection.workspace, filter=facet.filter)
            assert search("otter", scope=scope).total == facet.count


def test_telling_facets_are_those_with_a_few_values_of_several_passages(
    collection: Collection,
) -> None:
    sources = [
        text_source(f"m{n}", f"otter {n}", metadata={"id": n, "kind": n % 3, "site": "x"})
        for n in range(30)
    ]
    ingest_inline(collection=collection, sources=sources)
    result = find(collection, "otter", facets=["*"])
    usual = {"collection", "media_type", "language", "origin", "dated"}
    assert result.facets.keys() - usual == {"kind"}


def test_siblings_and_sections_stand_around_a_hit_as_the_document_has_them() -> None:
    sections = [
        f"# Part {part}\n\n"
        + "\n\n".join(f"Sentence {part}.{n} speaks about " + "rivers " * 60 for n in range(6))
        for part in range(3)
    ]
    text = "\n\n".join(sections).replace("Sentence 1.3 speaks", "Sentence 1.3 mentions zeppelins")
    collection = CollectionFactory(default_language="en")
    source = text_source("doc", text, file_name="doc.md")
    ingest_inline(collection=collection, sources=[source])

    hit = find(collection, "zeppelins", mode="lexical").hits[0]
    assert hit.surroundings is None
    siblings = find(collection, "zeppelins", mode="lexical", expand="siblings").hits[0]
    section = find(collection, "zeppelins", mode="lexical", expand="section").hits[0]
    assert siblings.surroundings is not None
    assert section.surroundings is not None
    assert hit.text in siblings.surroundings.text
    assert len(siblings.surroundings.text) > len(hit.text) + 500
    assert "Sentence 1.0" in section.surroundings.text
    assert "Sentence 1.5" in section.surroundings.text
    assert "Sentence 0" not in section.surroundings.text
    assert "Sentence 2" not in section.surroundings.text
    around = section.surroundings
    assert around.end - around.start == len(around.text)
    offset = hit.start - around.start
    assert around.text[offset : offset + len(hit.text)] == hit.text


@pytest.fixture
def family() -> Collection:
    """A document in two parents of several children each, and one of a single chunk."""
    collection = CollectionFactory(
        default_language="en",
        chunker="parent_child",
        chunker_options={"max_tokens": 40, "parent_tokens": 200},
    )
    part = "\n\n".join(
        f"Sentence {{0}}.{n} is about rivers and their {n} banks. " * 2 for n in range(6)
    )
    text = "\n\n".join(f"# Part {number}\n\n{part.format(number)}" for number in range(2))
    sources = [
        text_source(
            "doc", text.replace("Sentence 1.3 is", "A zeppelin flies,"), file_name="doc.md"
        ),
        text_source("note", "A zeppelin over rivers.", file_name="note.md"),
    ]
    ingest_inline(collection=collection, sources=sources)
    return collection


def test_a_part_is_shown_with_the_whole_passage_that_it_is_from(family: Collection) -> None:
    hit = find(family, "zeppelin flies").hits[0]

    assert (hit.document_key, hit.parent) == ("doc", 1)
    assert len(hit.text) < 300
    assert hit.surroundings is not None
    assert hit.surroundings.text.startswith("# Part 1\n\nSentence 1.0")
    assert hit.surroundings.text.rstrip().endswith("5 banks.")
    assert "Part 0" not in hit.surroundings.text
    offset = hit.start - hit.surroundings.start
    assert hit.surroundings.text[offset : offset + len(hit.text)] == hit.text
    assert hit.surroundings.end - hit.surroundings.start == len(hit.surroundings.text)


def test_parts_of_one_passage_are_one_hit_by_the_best_of_them(family: Collection) -> None:
    parts = find(family, "rivers", expand="none")
    wholes = find(family, "rivers")

    assert parts.total == Chunk.objects.filter(collection=family).count() > 6
    assert not any(hit.surroundings for hit in parts.hits)
    assert wholes.total == 3
    assert {(hit.document_key, hit.parent) for hit in wholes.hits} == {
        ("doc", 0), ("doc", 1), ("note", 0),
    }  # fmt: skip
    best: dict[Any, int] = {}
    for hit in parts.hits:
        best.setdefault((hit.document_key, hit.parent), hit.chunk_id)
    assert [hit.chunk_id for hit in wholes.hits] == [*best.values()]
    assert [hit.rank for hit in wholes.hits] == [1, 2, 3]
    second = find(family, "rivers", k=2, offset=2)
    assert (second.total, [hit.chunk_id for hit in second.hits]) == (3, [wholes.hits[2].chunk_id])


def test_grouped_by_document_the_other_passages_are_counted_and_not_their_parts(
    family: Collection,
) -> None:
    grouped = find(family, "rivers", group=True)
    assert {hit.document_key: hit.more_in_document for hit in grouped.hits} == {"doc": 1, "note": 0}


def test_where_nothing_is_cut_into_parts_the_whole_passage_is_the_hit() -> None:
    collection = CollectionFactory(default_language="en")
    ingest_inline(collection=collection, sources=[text_source("doc", "Rivers and banks.")])
    (hit,) = find(collection, "rivers", expand="parent").hits
    assert (hit.parent, hit.surroundings) == (None, None)


Hits = st.lists(
    st.tuples(st.floats(0, 1), st.integers(0, 3), st.sampled_from(["", "x", "y"])), max_size=25
)


@given(hits=Hits)
def test_diversity_loses_nothing_and_chooses_the_worthiest_at_every_step(hits: Any) -> None:
    numbered = list(enumerate(hits))
    order = diversify(
        numbered,
        score=lambda hit: hit[1][0],
        document=lambda hit: hit[1][1],
        source=lambda hit: hit[1][2],
    )
    assert sorted(order) == sorted(numbered)

    def worth(hit: Any, before: list[Any]) -> float:
        score, document, source = hit[1]
        repeated = 0.75 * sum(other[1][1] == document for other in before)
        repeated += 0.25 * sum(bool(source) and other[1][2] == source for other in before)
        return float(score / (1 + repeated))

    for place, chosen in enumerate(order):
        best = max(worth(other, order[:place]) for other in order[place:])
        assert worth(chosen, order[:place]) == pytest.approx(best)


def test_diversify_puts_another_document_before_the_second_passage_of_one() -> None:
    collection = CollectionFactory(default_language="en")
    long = "\n\n".join("otter otter otter " + "river " * 150 for _ in range(4))
    sources = [text_source("long", long), text_source("short", "An otter, once, by the water.")]
    ingest_inline(collection=collection, sources=sources)
    plain = keys(find(collection, mode="lexical"))
    spread = keys(find(collection, mode="lexical", diversify=True))
    assert sorted(plain) == sorted(spread)
    assert set(spread[:2]) == {"long", "short"}
