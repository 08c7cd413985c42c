"""Around the search page: suggestions, facets, how an answer came about, exports, examples."""

import csv
import json
from io import StringIO
from typing import Any

import pytest
from django.test import Client
from lxml import html as lxml_html

from accounts.models import Membership
from documents.demo_corpus import FIRM_COLLECTION, firm_questions
from documents.ingestion.sources import text_source
from documents.models import Chunk, Collection, Document
from documents.services import ingest_inline
from documents.tests.factories import ChunkFactory, CollectionFactory, DocumentFactory
from search.models import SearchLog
from search.presentation import example_questions
from search.tests.test_views import hits, link, page, titles
from tests.kit import use_models

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("media_root")]
AUTHORS = ["Knuth", "Kná", "Dijkstra", "Hopper", "Lamport", "Liskov", "Hoare", "Backus", "Turing"]


@pytest.fixture
def papers(alice: Membership) -> Collection:
    """Eighteen papers on otters, two by each author."""
    collection = CollectionFactory(
        workspace=alice.workspace, slug="papers", default_language="en", facets=["author"]
    )
    ingest_inline(
        collection=collection,
        sources=[
            text_source(
                f"{n}.txt",
                f"Otters of river {n}.",
                title=f"=Paper {n:02}",
                metadata={"author": AUTHORS[n % 9]},
            )
            for n in range(18)
        ],
    )
    return collection


def part(client: Client, path: str, **params: Any) -> lxml_html.HtmlElement:
    answer = client.get(path, params)
    assert answer.status_code == 200
    return lxml_html.document_fromstring(answer.text)


# --- facets --------------------------------------------------------------------------------------
def test_a_long_facet_is_folded_and_has_a_box(client: Client, papers: Collection) -> None:
    tree = page(client, q="otters")
    box = tree.find(".//input[@data-facet='author']")

    shown = tree.findall(f".//ul[@id='{box.get('aria-controls')}']/li")
    assert len(shown) == 6
    assert "3 more" in tree.find(".//details[@class='rest']/summary").text_content()


def test_typing_finds_values_that_narrow_the_search(client: Client, papers: Collection) -> None:
    tree = part(client, "/facets/", q="otters", facet="author", prefix="kn")
    labels = [li.find(".//*[@class='label']").text for li in tree.iterfind(".//li")]

    assert sorted(labels) == ["Knuth", "Kná"]
    assert titles(page(client, **link(tree, "Knuth"))) == ["=Paper 00", "=Paper 09"]
    nothing = part(client, "/facets/", q="otters", facet="author", prefix="zz")
    assert "No value begins like this" in nothing.text_content()


def test_two_values_of_a_facet_are_either_of_them(client: Client, papers: Collection) -> None:
    one = page(client, **link(page(client, q="otters"), "Hopper"))
    two = page(client, **link(one, "Hoare"))

    assert len(hits(two)) == 4
    assert link(two, "Author Hopper, Hoare") == {"q": ["otters"]}
    assert link(two, "Hopper")["filter"] == ["author=Hoare"]


def test_a_facet_that_there_cannot_be_says_so(client: Client, papers: Collection) -> None:
    answer = client.get("/facets/", {"q": "otters", "facet": "chunk", "prefix": "a"})
    assert answer.status_code == 400


# --- order and reranking -------------------------------------------------------------------------
def test_the_order_is_chosen_and_kept(client: Client, papers: Collection) -> None:
    tree = page(client, q="otters", sort="title", page="2")
    assert titles(tree) == [f"=Paper {n}" for n in range(10, 18)]
    assert link(tree, "Best first") == {"q": ["otters"]}
    assert client.get("/", {"q": "otters", "sort": "colour"}).status_code == 400


def test_reranking_can_be_switched_where_there_is_a_reranker(
    client: Client, papers: Collection, settings: Any
) -> None:
    assert page(client, q="otters").find(".//a[@class='switch']") is None
    backend = {"BACKEND": "inference.backends.rerank_basic.ScoreReranker"}
    use_models(settings, reranker=backend)

    on = page(client, q="otters")
    assert on.find(".//a[@class='switch']").get("aria-current") == "true"
    assert link(on, "Rerank") == {"q": ["otters"], "rerank": ["0"]}
    off = page(client, q="otters", rerank="0")
    assert off.find(".//a[@class='switch']").get("aria-current") is None


# --- exports -------------------------------------------------------------------------------------
def exported(client: Client, kind: str, **params: Any) -> str:
    answer: Any = client.get("/export/", {"as": kind, **params})
    assert answer.status_code == 200
    assert answer.headers["Content-Disposition"] == f'attachment; filename="search.{kind}"'
    return b"".join(answer.streaming_content).decode("utf-8-sig")


def test_results_are_taken_along_beyond_their_page(client: Client, papers: Collection) -> None:
    tree = page(client, q="otters", sort="title", filter="author!=Turing")
    address = tree.find(".//a[@download]").get("href")
    assert address == "/export/?q=otters&sort=title&filter=author%21%3DTuring&as=csv"

    asked = {"q": "otters", "sort": "title", "filter": "author!=Turing"}
    rows = list(csv.DictReader(StringIO(exported(client, "csv", **asked))))
    assert len(rows) == 16
    assert rows[0]["title"] == "'=Paper 00"
    first = Document.objects.get(title="=Paper 00")
    assert rows[0]["link"].startswith(f"http://testserver/documents/papers/{first.pk}/?chunk=")
    assert [row["title"] for row in json.loads(exported(client, "json", **asked))["hits"]] == [
        row["title"].removeprefix("'") for row in rows
    ]


def test_an_export_that_cannot_be_is_a_page_that_says_why(
    client: Client, papers: Collection
) -> None:
    assert client.get("/export/", {"q": "otters", "as": "xml"}).status_code == 400
    assert client.get("/export/", {"q": "otters", "filter": "year>"}).status_code == 400
    assert client.get("/export/", {"q": ""}).status_code == 400


# --- further passages ----------------------------------------------------------------------------
def test_further_passages_are_those_of_the_document_and_no_other_question(
    client: Client, papers: Collection
) -> None:
    document = Document.objects.get(title="=Paper 00")
    ChunkFactory(document=document, text="More otters were seen.", metadata={"author": "Knuth"})
    SearchLog.objects.all().delete()
    tree = page(client, q="otters", filter="author=Knuth")
    assert SearchLog.objects.count() == 1

    further = link(tree, "1 more passage")
    answer = client.get("/", further, headers={"HX-Request": "true"})
    assert titles(lxml_html.document_fromstring(answer.text)) == ["=Paper 00"] * 2
    assert SearchLog.objects.count() == 1


# --- similar -------------------------------------------------------------------------------------
def test_what_is_similar_is_shown_and_leads_on(client: Client, papers: Collection) -> None:
    chunk = Chunk.objects.select_related("document").get(document__title="=Paper 00")
    address = next(
        a.get("href")
        for a in page(client, q="otters", sort="title").iterfind(".//a")
        if a.get("data-similar") is not None
    )
    assert address == f"/similar/?chunk={chunk.pk}"

    tree = part(client, "/similar/", chunk=chunk.pk)
    assert "=Paper 00" in tree.find(".//section").text_content()
    assert len(hits(tree)) == 10
    assert "=Paper 00" not in titles(tree)
    documents = part(client, "/similar/", document=chunk.document_id)
    assert "Similar documents" in documents.find(".//h1").text_content()
    assert len(hits(documents)) == 10


def test_a_document_shows_a_few_beside_it(client: Client, papers: Collection) -> None:
    document = Document.objects.get(title="=Paper 00")
    tree = part(client, f"/similar/document/{document.pk}/")
    assert len(tree.findall(".//li")) == 6
    assert link(tree, "More like this") == {"document": [str(document.pk)]}


def test_where_nothing_is_similar_it_says_so(client: Client, alice: Membership) -> None:
    chunk = ChunkFactory(document__collection=CollectionFactory(workspace=alice.workspace))
    assert "Nothing similar" in part(client, "/similar/", chunk=chunk.pk).text_content()


@pytest.mark.parametrize("asked", ["", "x", "0", "²", "9" * 30])
def test_similar_to_what_is_not_there_is_not_found(client: Client, asked: str) -> None:
    assert client.get("/similar/", {"document": asked}).status_code == 404


# --- examples ------------------------------------------------------------------------------------
def test_examples_are_questions_of_several_collections(alice: Membership) -> None:
    for slug, headings in {
        "guides": ["How to start the engine", "Index", "Where is the oil filter?"],
        "notes": ["3. Meeting with the harbour office", "x.y(z) and a/b of c", "Minutes"],
    }.items():
        collection = CollectionFactory(workspace=alice.workspace, slug=slug)
        for heading in headings:
            document = DocumentFactory(collection=collection, title=f"{slug}.pdf")
            ChunkFactory(document=document, heading_path=["Book", heading])

    assert example_questions(Document.objects.all()) == [
        "Where is the oil filter?",
        "Meeting with the harbour office",
        "How to start the engine",
    ]


def test_where_nothing_reads_like_a_question_there_are_no_examples(
    client: Client, alice: Membership
) -> None:
    collection = CollectionFactory(workspace=alice.workspace)
    ChunkFactory(document=DocumentFactory(collection=collection, title="a.txt"))
    assert "Try one of these" not in client.get("/").text


def test_while_the_firm_of_the_demo_is_there_its_questions_are_the_examples(
    client: Client, alice: Membership
) -> None:
    collection = CollectionFactory(workspace=alice.workspace, slug=FIRM_COLLECTION)
    key, question = next(iter(firm_questions().items()))
    document = DocumentFactory(collection=collection, key=key)
    ChunkFactory(document=document, heading_path=["How to start the engine"])

    assert example_questions(Document.objects.all()) == [question]
    assert question in client.get("/").text


@pytest.fixture
def notes(alice: Membership) -> Collection:
    """Six notes on otters: two years, three kinds."""
    collection = CollectionFactory(workspace=alice.workspace, slug="notes", default_language="en")
    sources = [
        text_source(
            f"note-{n}",
            f"Otters by the lighthouse, note {n}.",
            title=f"Note {n}",
            metadata={"year": 2020 + n % 2, "kind": ["map", "log", "map"][n % 3]},
        )
        for n in range(6)
    ]
    ingest_inline(collection=collection, sources=sources)
    return collection


def text(client: Client, **params: Any) -> str:
    return " ".join(page(client, **params).text_content().split())


def test_a_misspelt_word_is_offered_mended(client: Client, notes: Collection) -> None:
    tree = page(client, q="otters lighthuose", mode="lexical", collection="notes")
    assert link(tree, "otters lighthouse") == {
        "q": ["otters lighthouse"],
        "mode": ["lexical"],
        "collection": ["notes"],
    }


def test_where_nothing_stood_the_mended_words_were_searched_for(
    client: Client, notes: Collection
) -> None:
    shown = text(client, q="lighthuose", mode="lexical")
    assert "This was searched for: lighthouse" in shown
    assert "Did you mean" not in shown
    assert "6 documents" in shown


def test_a_value_of_the_metadata_narrows_and_is_taken_back(
    client: Client, notes: Collection
) -> None:
    tree = page(client, q="otters", filter="note~otter | kind=map")
    narrower = link(tree, "2021")
    assert narrower["filter"] == ["note~otter | kind=map; dated=2021"]
    narrowed = page(client, q="otters", filter=narrower["filter"][0])
    assert sorted(titles(narrowed)) == ["Note 3", "Note 5"]
    assert link(narrowed, "Date 2021")["filter"] == ["note~otter | kind=map"]


def test_explaining_says_what_each_arm_did_and_where_the_time_went(
    client: Client, notes: Collection
) -> None:
    plain = text(client, q="otters")
    explained = text(client, q="otters", explain="1")
    assert "Words: BM25, 6 listed, weight 0." not in plain
    assert "Words: BM25, 6 listed, weight 0." in explained
    assert "Meaning: every vector compared, 6 listed, weight 0." in explained
    assert "Letters in common" in explained
    assert "Like the best" in explained


def test_a_search_is_noted_and_its_second_page_is_not(client: Client, notes: Collection) -> None:
    page(client, q="otters", group="0")
    page(client, q="otters", group="0", page="2")
    assert list(SearchLog.objects.values_list("query", "source", "total")) == [("otters", "web", 6)]


def test_reranked_hits_say_how_they_moved(client: Client, notes: Collection, settings: Any) -> None:
    backend = {"BACKEND": "inference.backends.rerank_basic.ScoreReranker"}
    use_models(settings, reranker=backend)
    shown = text(client, q="otters", explain="1")
    assert "Read again: 6 by default" in shown
    assert "Read again1.000" in shown.replace(" 1.000", "1.000")
    use_models(settings, reranker={"BACKEND": "nowhere.Reranker"})
    assert "Not reranked." in text(client, q="otters")


def test_the_address_says_how_hits_are_joined_and_what_it_does_not_know(
    client: Client, notes: Collection
) -> None:
    shown = text(client, q="otters", fusion="rrf", explain="1", alfa="1")
    assert "Fusion: reciprocal ranks (RRF)" in shown
    assert "Unknown parameter in the address, ignored: alfa." in shown
    tree = page(client, q="otters", fusion="rrf")
    assert link(tree, "Words")["fusion"] == ["rrf"]
    for wrong in ({"fusion": "magic"}, {"rerank": "maybe"}, {"rerank": "true"}):
        answer = client.get("/", {"q": "otters", **wrong})
        assert answer.status_code == 400, wrong
