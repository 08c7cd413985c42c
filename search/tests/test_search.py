"""Searching a real database: ranks, scores, scope and what a person may type."""

import math
from collections import Counter
from typing import Any

import pytest
from django.db import connection
from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from accounts.models import Workspace
from common.bm25 import K1, B
from common.errors import EmbedderUnavailable, NotFound
from documents import lexical_index
from documents.ingestion.sources import text_source
from documents.models import Chunk, Collection, Document
from documents.services import ingest_inline
from documents.tests.factories import CollectionFactory, MembershipFactory
from search.query_options import scope_for, site_scope
from search.ranked_results import DEPTH
from search.results import Hit, SearchResult
from search.services import search

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("media_root")]

TEXTS = {
    "aspirin": "Aspirin eases pain and thins the blood. Do not give aspirin to young children.",
    "ibuprofen": "Ibuprofen eases pain and fever. Take it with food.",
    "bread": "Bread is baked from flour, water, salt and yeast.",
    "blood": "The heart pumps blood through the body of children and adults.",
}


@pytest.fixture(scope="module")
def notes(shared_rows: None) -> int:
    collection = CollectionFactory(slug="notes", default_language="en")
    fill(collection, TEXTS)
    return int(collection.pk)


@pytest.fixture
def collection(notes: int) -> Collection:
    return Collection.objects.get(pk=notes)


def fill(collection: Collection, texts: dict[str, str], **declared: Any) -> None:
    sources = [text_source(key, text, **declared) for key, text in texts.items()]
    ingest_inline(collection=collection, sources=sources)


def find(collection: Collection, query: str, **options: Any) -> SearchResult:
    return search(query, scope=site_scope(workspace=collection.workspace), **options)


def keys(result: SearchResult) -> list[str]:
    return [hit.document_key for hit in result.hits]


def test_a_question_finds_what_holds_some_of_its_words(collection: Collection) -> None:
    result = find(
        collection, "Which medicine should I take against pain and fever?", mode="lexical"
    )
    assert keys(result) == ["ibuprofen", "aspirin"]


def test_a_hit_of_one_arm_has_the_score_of_the_other_too(collection: Collection) -> None:
    hits = {hit.document_key: hit for hit in find(collection, "aspirin").hits}
    assert hits["bread"].lexical is None
    assert hits["bread"].similarity is not None
    assert "lexical" not in hits["bread"].ranks


def bm25(words: list[str], texts: dict[str, str]) -> dict[str, float]:
    """The textbook formula over the same lexemes, with distinct lexemes as length."""
    lexemes = {key: lexemes_of(text) for key, text in texts.items()}
    average = sum(map(len, lexemes.values())) / len(texts)
    scores: Counter[str] = Counter()
    for word in words:
        containing = sum(word in counts for counts in lexemes.values())
        idf = math.log(1 + (len(texts) - containing + 0.5) / (containing + 0.5))
        for key, counts in lexemes.items():
            if word in counts:
                saturation = counts[word] + K1 * (1 - B + B * len(counts) / average)
                scores[key] += idf * counts[word] * (K1 + 1) / saturation
    return dict(scores)


def lexemes_of(text: str) -> Counter[str]:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT lexeme, cardinality(positions) FROM unnest(to_tsvector('english', %s))", [text]
        )
        return Counter(dict(cursor.fetchall()))


@given(
    st.lists(
        st.lists(st.sampled_from(["cat", "dog", "bird", "fish", "tree"]), min_size=1, max_size=60),
        min_size=2,
        max_size=6,
    )
)
@hypothesis_settings(
    max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_lexical_scores_are_bm25(documents: list[list[str]]) -> None:
    collection = CollectionFactory(default_language="en")
    texts = {str(number): " ".join(words) for number, words in enumerate(documents)}
    # texts without title, so that no word counts twice
    ingest_inline(collection=collection, sources=[text_source(k, t) for k, t in texts.items()])
    Chunk.objects.filter(collection=collection).update(context="")
    lexical_index.index_pending(collection.pk)
    result = find(collection, "cats and dogs", mode="lexical")
    expected = bm25(["cat", "dog"], texts)
    assert {hit.document_key: hit.lexical for hit in result.hits} == pytest.approx(expected)


def test_a_word_in_the_title_counts_more(collection: Collection) -> None:
    fill(collection, {"plain": "Gardening tools and a greenhouse stand there."})
    fill(collection, {"titled": "Tools and a shed stand there, all day."}, title="Gardening")
    assert keys(find(collection, "gardening", mode="lexical"))[0] == "titled"


@pytest.mark.parametrize("mode", ["hybrid", "lexical", "vector"])
def test_a_phrase_and_an_exclusion_hold_for_every_arm(collection: Collection, mode: Any) -> None:
    assert keys(find(collection, '"young children" blood', mode=mode)) == ["aspirin"]
    assert "aspirin" not in keys(find(collection, "blood -aspirin", mode=mode))
    assert "aspirin" not in keys(find(collection, 'pain -"thins the blood"', mode=mode))


def test_a_prefix_finds_longer_words(collection: Collection) -> None:
    assert keys(find(collection, "ibu*", mode="lexical")) == ["ibuprofen"]
    fill(collection, {"two": "Bookings and bookshelves, booked by bookkeepers."})
    assert keys(find(collection, "book*", mode="lexical")) == ["two"]


@pytest.mark.parametrize(
    "query",
    [
        "the of and to be",
        "什么是糖尿病的症状",
        "'); DROP TABLE documents_chunk; --",
        "a & b | !c <-> (d",
        "\\ ' \" :* ::tsquery %s %(depth)s {scope}",
        "\u202eright to left\u202c 👩‍👩‍👧‍👦",
        "word " * 790,
    ],
)
@pytest.mark.parametrize("mode", ["hybrid", "lexical", "vector"])
def test_whatever_is_typed_is_answered(collection: Collection, query: str, mode: Any) -> None:
    result = find(collection, query, mode=mode)
    assert result.total == len(find(collection, query, mode=mode, k=100).hits)
    assert mode == "lexical" or result.total == len(TEXTS)


def test_common_words_alone_are_answered_by_meaning_and_say_so(collection: Collection) -> None:
    result = find(collection, "what is it")
    assert result.total == len(TEXTS)
    assert "meaning" in result.notes[0]


@pytest.mark.parametrize("mode", ["hybrid", "lexical", "vector", "graph"])
def test_where_there_is_no_collection_nothing_is_found(mode: Any) -> None:
    member = MembershipFactory()
    scope = scope_for(user=member.user, workspace=member.workspace)
    assert search("frog", scope=scope, mode=mode).hits == ()


def test_nothing_leaks_to_an_outsider_or_past_an_access_list(collection: Collection) -> None:
    alice = MembershipFactory(workspace=collection.workspace).user
    bob = MembershipFactory(workspace=collection.workspace).user
    charlie = MembershipFactory().user
    for model in (Document, Chunk):
        model.objects.update(access=[f"user:{alice.pk}"])

    def found(user: Any) -> int:
        scope = scope_for(user=user, workspace=collection.workspace)
        return search("aspirin blood bread", scope=scope).total

    assert (found(alice), found(bob), found(charlie)) == (len(TEXTS), 0, 0)
    with pytest.raises(NotFound):
        scope_for(user=charlie, workspace=collection.workspace, collections=["notes"])


def test_another_workspace_with_the_same_words_is_not_searched(collection: Collection) -> None:
    other = CollectionFactory(workspace=Workspace.objects.create(slug="other", name="Other"))
    fill(other, {"theirs": "Aspirin, aspirin, aspirin."})
    assert "theirs" not in keys(find(collection, "aspirin"))


def test_pages_are_parts_of_one_ranking(collection: Collection) -> None:
    fill(collection, {f"note {n}": f"Note {n} about pain and blood." for n in range(30)})
    whole = keys(find(collection, "pain blood", k=30))
    pages = [keys(find(collection, "pain blood", k=7, offset=offset)) for offset in range(0, 28, 7)]
    assert [key for page in pages for key in page] == whole[:28]
    assert len(set(whole)) == len(whole)
    assert keys(find(collection, "pain blood", k=30)) == whole


def test_grouping_shows_the_best_passage_of_each_document(collection: Collection) -> None:
    fill(collection, {"book": "\n\n".join(f"Part {n} on blood and pain. " * 40 for n in range(6))})
    result = find(collection, "blood pain", group=True)
    assert len(set(keys(result))) == len(result.hits)
    (book,) = (hit for hit in result.hits if hit.document_key == "book")
    assert book.more_in_document == Document.objects.get(key="book").chunk_count - 1


def highlighted(hit: Hit) -> list[str]:
    return [hit.snippet.text[start:end] for start, end in hit.snippet.highlights]


def test_snippets_mark_what_the_query_means(collection: Collection) -> None:
    fill(collection, {"tags": "if a < b then <b>aspirins</b> ease pains & more" * 2})
    hits = {hit.document_key: hit for hit in find(collection, "aspirin pain").hits}
    assert highlighted(hits["aspirin"]) == ["Aspirin", "pain", "aspirin"]
    assert set(highlighted(hits["tags"])) == {"aspirins", "pains"}
    assert highlighted(hits["bread"]) == []


@pytest.mark.parametrize(
    "query",
    [
        "annual report",
        "sales people",
        "annual_report_2024.pdf",
        "sales.people",
        '"sales people"',
        '"annual report 2024"',
        "example",
    ],
)
def test_names_of_files_tables_and_hosts_are_found_by_their_parts(
    collection: Collection, query: str
) -> None:
    text = "Table sales.people feeds annual_report_2024.pdf, see www.example.org/path; 1.355 stays."
    fill(collection, {"names": text})
    (hit,) = find(collection, query, mode="lexical").hits
    assert hit.document_key == "names"
    assert highlighted(hit)
    for mark in highlighted(hit):
        assert mark in text


def test_a_sentence_that_quotes_something_finds_and_says_how_to_demand_it(
    collection: Collection,
) -> None:
    result = find(collection, 'Which medicine with the brand name "Zyprexa" eases pain?')
    assert {"aspirin", "ibuprofen"} <= set(keys(result))
    assert "+“Zyprexa”" in result.notes[0]
    demanded = find(collection, 'Which medicine with the brand name +"Zyprexa" eases pain?')
    assert demanded.hits == ()


def test_numbers_stay_whole(collection: Collection) -> None:
    fill(collection, {"number": "The impact factor is 1.355 this year."})
    assert keys(find(collection, "1.355", mode="lexical")) == ["number"]
    assert keys(find(collection, "355", mode="lexical")) == []


def test_the_plan_of_a_large_scope_uses_the_index(collection: Collection, settings: Any) -> None:
    settings.EXACT_SCAN_CHUNKS = 0
    fill(collection, {f"n{n}": f"Note number {n} about something." for n in range(250)})
    # Vacuuming after other tests may have counted the rows of theirs.
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE documents_chunk")
    result = find(collection, "note about something", mode="vector", k=10, facets=["*"])
    assert [arm.method for arm in result.arms] == ["ann"]
    assert result.total == DEPTH


def test_words_still_find_when_the_model_is_down(collection: Collection, model_down: None) -> None:
    result = find(collection, "aspirin")
    assert (keys(result), result.degraded) == (["aspirin"], ("vector",))
    assert "words" in result.notes[0]


def test_meaning_alone_says_that_the_model_is_down(
    collection: Collection, model_down: None
) -> None:
    with pytest.raises(EmbedderUnavailable, match="start it"):
        find(collection, "aspirin", mode="vector")


def test_languages_are_stemmed_by_their_own_rules(collection: Collection) -> None:
    collection.default_language = "de"
    collection.save()
    fill(collection, {"de": "Die Häuser am Fluss wurden nach dem Hochwasser neu gebaut."})
    assert keys(find(collection, "Haus gebaut", mode="lexical")) == ["de"]
