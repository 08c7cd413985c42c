"""The search page."""

import re
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from django.test import Client
from lxml import html as lxml_html

from accounts.models import Membership
from documents.models import Collection, Document
from documents.tests.factories import ChunkFactory, CollectionFactory, DocumentFactory
from search.query import MAX_QUERY_CHARACTERS
from tests.kit import use_models

pytestmark = pytest.mark.django_db


def page(client: Client, **params: Any) -> lxml_html.HtmlElement:
    answer = client.get("/", params)
    assert answer.status_code == 200
    return lxml_html.document_fromstring(answer.text)


def hits(tree: lxml_html.HtmlElement) -> list[lxml_html.HtmlElement]:
    return list(tree.iterfind(".//li[@data-hit]"))


def titles(tree: lxml_html.HtmlElement) -> list[str]:
    return [hit.findtext(".//h2/a") for hit in hits(tree)]


def link(tree: lxml_html.HtmlElement, text: str) -> dict[str, list[str]]:
    """The parameters of the first link whose text begins with `text`."""
    for found in tree.iterfind(".//a"):
        if found.text_content().strip().startswith(text):
            return parse_qs(urlsplit(found.get("href")).query)
    raise AssertionError(f"no link “{text}”")


# --- without a question ------------------------------------------------------------------------


def test_without_a_question_it_shows_where_one_could_look(
    client: Client, leaflet: Document
) -> None:
    text = client.get("/").text

    assert "What are you looking for?" in text
    assert "?collection=leaflets" in text
    assert "Aripiprazole" in text


def test_an_empty_workspace_is_told_how_to_begin(client: Client) -> None:
    assert "New collection" in client.get("/").text


def test_a_question_of_blanks_is_none(client: Client) -> None:
    assert "What are you looking for?" in client.get("/", {"q": "  \x00 "}).text


# --- results -----------------------------------------------------------------------------------


def test_a_result_leads_to_its_passage_and_remembers_the_search(
    client: Client, leaflet: Document
) -> None:
    tree = page(client, q="nausea", collection="leaflets", mode="lexical")
    target = urlsplit(hits(tree)[0].find(".//h2/a").get("href"))

    assert target.path == f"/documents/leaflets/{leaflet.pk}/"
    assert target.fragment == "passage"
    assert parse_qs(target.query) == {
        "chunk": [str(leaflet.chunks.get(ordinal=1).pk)],
        "words": ["nausea"],
        "q": ["nausea"],
        "mode": ["lexical"],
        "collection": ["leaflets"],
    }


def test_a_result_shows_headings_words_page_and_type(client: Client, leaflet: Document) -> None:
    hit = hits(page(client, q="nausea"))[0]
    shown = " ".join(hit.text_content().split())

    assert [mark.text for mark in hit.iterfind(".//mark")] == ["nausea"]
    assert "Possible side effects" in shown
    assert "page 4" in shown
    assert "PDF" in shown
    assert "Leaflets" in shown


def test_the_summary_counts_and_says_how_exact_it_was(client: Client, leaflet: Document) -> None:
    summary = page(client, q="nausea", group="0").findtext(".//*[@class='summary']/strong")

    assert summary == "2 passages"
    assert re.search(r"· \d+ ms · exact", client.get("/", {"q": "nausea"}).text)
    assert "exact" not in client.get("/", {"q": "nausea", "mode": "lexical"}).text


def test_documents_come_once_with_the_number_of_their_other_passages(
    client: Client, leaflet: Document
) -> None:
    grouped = page(client, q="nausea tablets")

    assert titles(grouped) == ["Aripiprazole"]
    assert link(grouped, "1 more passage") == {
        "q": ["nausea tablets"],
        "group": ["0"],
        "collection": ["leaflets"],
        "filter": [f"document={leaflet.key}"],
    }
    assert link(grouped, "Passage by passage") == {"q": ["nausea tablets"], "group": ["0"]}
    assert titles(page(client, q="nausea tablets", group="0")) == ["Aripiprazole", "Aripiprazole"]


def test_scores_are_folded_away_until_asked_for(client: Client, leaflet: Document) -> None:
    folded, open_ = page(client, q="nausea"), page(client, q="nausea", explain="1")

    assert folded.find(".//details[summary='Why?']") is None
    chunk = hits(folded)[0].get("id")
    assert folded.find(".//a[@data-why]").get("href") == f"/?q=nausea&explain=1#{chunk}"
    assert open_.find(".//details[summary='Why?']").get("open") is not None
    rows = [
        " ".join(cell.text_content().strip() for cell in row)
        for row in open_.iterfind(".//tbody/tr")
    ]
    assert re.match(r"Words 1 BM25 [\d.]+ [\d.]+$", rows[0])
    assert re.match(r"Meaning 1 cosine [\d.]+ [\d.]+$", rows[1])
    assert link(folded, "Explain scores") == {"q": ["nausea"], "explain": ["1"]}
    assert link(open_, "Hide scores") == {"q": ["nausea"]}


# --- narrowing ---------------------------------------------------------------------------------


@pytest.fixture
def note(alice: Membership) -> Document:
    """A Markdown document of another collection."""
    notes = CollectionFactory(workspace=alice.workspace, slug="notes", name="Notes")
    document = DocumentFactory(collection=notes, title="My notes", media_type="text/markdown")
    ChunkFactory(document=document, text="Ask the doctor about nausea.")
    return document


def test_facets_count_and_narrow(client: Client, leaflet: Document, note: Document) -> None:
    tree = page(client, q="nausea")
    facets = [" ".join(li.text_content().split()) for li in tree.iterfind(".//aside//li")]

    assert sorted(facets) == [
        "Leaflets 1",
        "Markdown 1",
        "Notes 1",
        "PDF 1",
    ]
    assert titles(page(client, **link(tree, "Notes"))) == ["My notes"]
    assert titles(page(client, **link(tree, "PDF"))) == ["Aripiprazole"]


def test_a_filter_is_a_chip_that_one_click_takes_away(
    client: Client, leaflet: Document, note: Document
) -> None:
    tree = page(client, q="nausea", collection="notes", type="text/markdown", page="2")

    assert link(tree, "Collection Notes") == {"q": ["nausea"], "type": ["text/markdown"]}
    assert link(tree, "Type Markdown") == {"q": ["nausea"], "collection": ["notes"]}
    assert link(tree, "Remove all") == {"q": ["nausea"]}


def test_a_new_question_keeps_mode_and_filters(client: Client, note: Document) -> None:
    tree = page(client, q="nausea", collection="notes", mode="lexical")
    box = tree.find(".//form[@class='searchbox']")
    kept = {field.get("name"): field.get("value") for field in box.iterfind(".//input")}

    assert kept == {"q": "nausea", "collection": "notes", "mode": "lexical"}


def test_the_mode_switch_keeps_the_question(client: Client, leaflet: Document) -> None:
    tree = page(client, q="nausea")

    assert link(tree, "Words") == {"q": ["nausea"], "mode": ["lexical"]}
    assert link(page(client, q="nausea", mode="vector"), "Hybrid") == {"q": ["nausea"]}


# --- pages -------------------------------------------------------------------------------------


def test_pages_hold_every_document_once(client: Client, leaflets: Collection) -> None:
    for number in range(25):
        document = DocumentFactory(collection=leaflets, title=f"Leaflet {number}")
        ChunkFactory(document=document, text=f"Nausea, case {number}.")

    first, second, third = (page(client, q="nausea", page=str(n)) for n in (1, 2, 3))

    assert [len(hits(tree)) for tree in (first, second, third)] == [10, 10, 5]
    assert len({*titles(first), *titles(second), *titles(third)}) == 25
    assert titles(page(client, q="nausea", page="2")) == titles(second)
    assert second.find(".//ol[@class='hits']").get("start") == "11"
    assert link(first, "Next") == {"q": ["nausea"], "page": ["2"]}
    assert link(second, "Previous") == {"q": ["nausea"]}


def test_a_page_behind_the_last_leads_back(client: Client, leaflet: Document) -> None:
    tree = page(client, q="nausea", page="7")

    assert "Page 7 does not exist" in tree.text_content()
    assert link(tree, "To the first page") == {"q": ["nausea"]}


# --- nothing, and what is wrong ----------------------------------------------------------------


def test_finding_nothing_says_what_to_loosen(client: Client, leaflet: Document) -> None:
    tree = page(client, q="zzzz", mode="lexical", collection="leaflets")

    assert "Nothing found for “zzzz”" in tree.text_content()
    assert link(tree, "Search everything") == {"q": ["zzzz"], "mode": ["lexical"]}
    assert link(tree, "Meaning") == {"q": ["zzzz"], "mode": ["vector"], "collection": ["leaflets"]}


def test_a_question_that_is_too_long_says_the_limit(client: Client, leaflet: Document) -> None:
    answer = client.get("/", {"q": "x" * (MAX_QUERY_CHARACTERS + 1)})

    assert answer.status_code == 400
    assert f"{MAX_QUERY_CHARACTERS:,}" in answer.text


def test_an_unknown_collection_names_the_known_ones(client: Client, leaflet: Document) -> None:
    answer = client.get("/", {"q": "nausea", "collection": "nope"})

    assert answer.status_code == 404
    assert "leaflets" in answer.text
    assert link(lxml_html.document_fromstring(answer.text), "Collection nope") == {"q": ["nausea"]}


def test_the_page_fuses_as_its_address_says(client: Client, leaflet: Document) -> None:
    asked = {"q": "headache", "fusion": "rrf", "rrf_k": "9", "depth": "20", "alpha": "0.3"}
    page = client.get("/", {**asked, "explain": "1"})
    assert page.status_code == 200
    assert page.context["result"].fusion == "rrf"
    assert [arm.weight for arm in page.context["result"].arms] == [0.3, 0.7]
    assert "rrf_k=9&amp;depth=20&amp;alpha=0.3" in page.text
    assert client.get("/", {"q": "headache", "depth": "many"}).status_code == 400
    assert client.get("/", {"q": "headache", "depth": "1"}).status_code == 400


def test_ranks_are_a_choice_beside_the_order_with_reranking(
    client: Client, leaflet: Document
) -> None:
    tree = page(client, q="headache")
    by_rank = link(tree, "By places in both lists (RRF)")
    assert by_rank == {"q": ["headache"], "fusion": ["rrf"]}
    ranked = client.get("/", {**{name: each[0] for name, each in by_rank.items()}, "rerank": "0"})
    assert ranked.context["result"].fusion == "rrf"
    chosen = [each.label for each in ranked.context["fusions"] if each.selected]
    assert chosen == ["By places in both lists (RRF)"]
    tree = lxml_html.document_fromstring(ranked.text)
    assert link(tree, "By how well they fit") == {
        "q": ["headache"],
        "fusion": ["score"],
        "rerank": ["0"],
    }
    words = client.get("/", {"q": "headache", "mode": "lexical"})
    assert words.context["fusions"] == []
    assert "RRF" not in words.text


@pytest.fixture
def broken_embedder(settings: Any) -> None:
    """A model that is not where the settings say."""
    backend = "inference.backends.transformers_local.TransformersEmbedder"
    use_models(settings, embedder={"BACKEND": backend, "OPTIONS": {"model": "/nowhere/model"}})


@pytest.mark.usefixtures("broken_embedder")
def test_without_a_model_words_are_found_and_the_page_says_what_is_missing(
    client: Client, leaflet: Document
) -> None:
    tree = page(client, q="nausea")

    assert titles(tree) == ["Aripiprazole"]
    assert "Words only." in tree.text_content()


@pytest.mark.usefixtures("broken_embedder")
def test_meaning_without_a_model_says_so_and_offers_words(
    client: Client, leaflet: Document
) -> None:
    answer = client.get("/", {"q": "nausea", "mode": "vector"})

    assert answer.status_code == 503
    assert "words still works" in answer.text
    assert link(lxml_html.document_fromstring(answer.text), "Words")["mode"] == ["lexical"]


@pytest.mark.parametrize("number", ["0", "-1", "x", "1e9", "9" * 30, "²", ""])
def test_a_strange_page_is_not_an_error(client: Client, leaflet: Document, number: str) -> None:
    assert client.get("/", {"q": "nausea", "page": number}).status_code == 200
