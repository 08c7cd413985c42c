"""The SQL of a filter against what the filter means, on real rows, and what no filter can do."""

from collections.abc import Iterator
from itertools import product
from typing import Any

import pytest
from django.db import connection
from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from psycopg.types.json import Jsonb

from documents.languages import configuration
from documents.models import Chunk, Collection
from documents.tests.factories import (
    ChunkFactory,
    CollectionFactory,
    DocumentFactory,
    MembershipFactory,
)
from search.filters import ALL, Comparison, FilterError, compile_filter, read_filter
from search.filters.tree import FIELDS, Field, Operator, Or
from search.query_options import scope_for, site_scope
from search.results import Scope
from search.retrieval.statements import scope_conditions, scope_size_statement
from search.tests.filter_oracle import Row, holds
from search.tests.filter_strategies import (
    AWKWARD,
    CODES,
    EQUALITY,
    MOMENTS,
    NUMBERS,
    ORDER,
    TEXT,
    TIMES,
    filters,
    rows,
)

pytestmark = pytest.mark.django_db

#: Access lists of the rows that Alice's searches meet: hers, open, Bob's, and another workspace's.
ACCESS = [None, None, ["user:alice"], ["user:bob", "user:alice"], ["user:bob"], [], None, None]
FOREIGN = 6


@pytest.fixture
def chunks() -> list[Chunk]:
    """Eight passages, of which the last two belong to another workspace."""
    ours = CollectionFactory(slug="notes")
    theirs = CollectionFactory(slug="notes")
    return [
        ChunkFactory(
            document=DocumentFactory(
                collection=theirs if number >= FOREIGN else ours, access=ACCESS[number]
            )
        )
        for number in range(len(ACCESS))
    ]


def fill(chunks: list[Chunk], drawn: list[Row]) -> None:
    """Give the passages, and their documents, what was drawn."""
    pairs = list(zip(chunks, drawn, strict=True))
    with connection.cursor() as cursor:
        cursor.executemany(
            "UPDATE documents_chunk SET metadata = %s, media_type = %s, key = %s,"
            " heading_path = %s::text[], page = %s, language = %s::regconfig WHERE id = %s",
            [
                (
                    *(Jsonb(row.metadata), row.media_type, row.chunk, list(row.heading), row.page),
                    *(row.configuration, chunk.pk),
                )
                for chunk, row in pairs
            ],
        )
        cursor.executemany(
            "UPDATE documents_document SET title = %s, source = %s, language = %s, created_at = %s,"
            " url = %s, metadata = %s WHERE id = %s",
            [
                (
                    *(row.title, row.source, row.language, row.created, row.url, Jsonb(row.said)),
                    chunk.document_id,
                )
                for chunk, row in pairs
            ],
        )


def found(scope: Scope) -> set[int]:
    """The passages that the conditions of a scope leave."""
    conditions, parameters = scope_conditions(scope)
    with connection.cursor() as cursor:
        cursor.execute(
            f"SELECT chunk.id FROM documents_chunk AS chunk WHERE {conditions}", parameters
        )
        return {chunk_id for (chunk_id,) in cursor.fetchall()}


def alices(chunk: Chunk, asked: Any) -> Scope:
    return Scope(
        workspace_id=chunk.workspace_id,
        collection_ids=(chunk.collection_id,),
        principals=("user:alice",),
        filter=read_filter(asked),
    )


@pytest.mark.nightly
@given(
    drawn=st.lists(rows, min_size=len(ACCESS), max_size=len(ACCESS)),
    asked=st.lists(filters, min_size=1, max_size=4),
)
@hypothesis_settings(
    max_examples=150,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
def test_the_sql_finds_what_the_filter_means_among_what_may_be_seen(
    chunks: list[Chunk], drawn: list[Row], asked: list[dict[str, Any]]
) -> None:
    fill(chunks, drawn)
    visible = {0, 1, 2, 3}
    for each in asked:
        expected = {chunks[number].pk for number in visible if holds(each, drawn[number])}
        assert found(alices(chunks[0], each)) == expected, each


def one_passage_each(stored: list[Any]) -> dict[int, Row]:
    """A passage for each value, which is in its metadata and, if it is text, its title."""
    collection = CollectionFactory(slug="notes")
    drawn = {}
    for value in stored:
        title = value if isinstance(value, str) else ""
        document = DocumentFactory(collection=collection, title=title)
        chunk = ChunkFactory(document=document, metadata={"a": value}, heading_path=[title])
        drawn[chunk.pk] = Row(metadata={"a": value}, title=title, heading=(title,))
    return drawn


def assert_sql_agrees(drawn: dict[int, Row], asked: dict[str, Any]) -> None:
    scope = site_scope(workspace=Collection.objects.get().workspace, filter=asked)
    assert found(scope) == {pk for pk, row in drawn.items() if holds(asked, row)}, asked


@pytest.mark.parametrize("name", TEXT)
def test_every_awkward_text_meets_every_other(name: str) -> None:
    drawn = one_passage_each([*AWKWARD, 2020, True, None])
    for field in ("a", "title", "heading"):
        for value in AWKWARD:
            assert_sql_agrees(drawn, {field: {name: value}})


@pytest.mark.parametrize("name", ORDER)
def test_every_number_meets_every_other(name: str) -> None:
    drawn = one_passage_each([*NUMBERS, "2020", False, None])
    for value in NUMBERS:
        assert_sql_agrees(drawn, {"a": {name: value}})


@pytest.mark.parametrize(
    ("field", "drawn", "wanted", "names"),
    [
        ("created", [Row(created=moment) for moment in MOMENTS], TIMES, ORDER),
        ("page", [Row(page=page) for page in (None, 0, 1, 2)], [0, 1, 1.5, -1, 1e30], ORDER),
        (
            "lang",
            [Row(language=code, configuration=stemmer)
             for code, stemmer in product(["en", "de", "zh", ""], ["english", "german", "simple"])],
            CODES,
            EQUALITY,
        ),
    ],
)  # fmt: skip
def test_every_time_page_and_language_meets_every_other(
    field: str, drawn: list[Row], wanted: list[Any], names: list[str]
) -> None:
    notes = CollectionFactory(slug="notes")
    chunks = [ChunkFactory(document=DocumentFactory(collection=notes)) for _ in drawn]
    fill(chunks, drawn)
    known = {chunk.pk: row for chunk, row in zip(chunks, drawn, strict=True)}
    for name, value in product(names, wanted):
        assert_sql_agrees(known, {field: {name: value}})
        assert_sql_agrees(known, {field: {"$not": {name: value}}})
    assert_sql_agrees(known, {field: {"$in": wanted[:2]}})
    assert_sql_agrees(known, {field: {"$nin": [*wanted[1:], None]}})


@pytest.mark.parametrize("length", [2, 8, 9, 30])
def test_long_lists_and_short_ones_find_the_same_way(length: int) -> None:
    drawn = one_passage_each(
        [1, 1.0, "1", True, None, [], [5, 1], [[1]], {"1": 1}, 29.0, "x", ["x", None], 10**30]
    )
    wanted = [1, "x", True, 10**30, *range(2, 30)][:length]
    for name in ("$in", "$nin"):
        assert_sql_agrees(drawn, {"a": {name: wanted}})
        assert_sql_agrees(drawn, {"$not": {"a": {name: [*wanted, None]}}})


@given(st.text(st.characters(codec=None), max_size=40), filters)
@hypothesis_settings(
    max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_no_string_leaves_its_place(chunks: list[Chunk], text: str, asked: dict[str, Any]) -> None:
    """Any characters, as value, as key and as text form, beside any filter: never an SQL error,
    never a row too many."""
    visible = {chunk.pk for chunk in chunks[:4]}
    for form in ({"a": {"$contains": text}}, {"title": text}, {"$or": [{text: 1}, asked]}, text):
        try:
            scope = alices(chunks[0], form)
        except FilterError:
            continue
        assert found(scope) <= visible


@pytest.mark.parametrize(
    "hostile",
    [
        "!()",
        "() | collection=notes",
        "document=\"x' OR true OR '\"",
        {"$or": [{}, {"$not": {"$and": []}}]},
        {"metadata.%(workspace)s": {"$ne": "%(collections)s"}},
        {"workspace": {"$exists": False}},
        {"access": {"$in": [None, "user:bob"]}},
        {"workspace_id": {"$gt": 0}, "$or": [{"chunk.workspace_id": 1}, {}]},
    ],
)
def test_workspace_and_access_cannot_be_spelled_away(chunks: list[Chunk], hostile: Any) -> None:
    assert found(alices(chunks[0], hostile)) <= {chunk.pk for chunk in chunks[:4]}


def test_the_filter_is_in_brackets_of_its_own() -> None:
    either = Or((Comparison(Field("page"), Operator.EXISTS), ALL))
    conditions, _ = scope_conditions(Scope(1, (1,), principals=("user:1",), filter=either))
    assert conditions.endswith("AND ((chunk.page IS NOT NULL OR true))")


@pytest.mark.parametrize("name", FIELDS)
def test_every_field_has_a_column(chunks: list[Chunk], name: str) -> None:
    assert found(alices(chunks[0], {name: {"$exists": True}})) <= {chunk.pk for chunk in chunks[:4]}


def test_fields_of_the_document_and_the_collection(chunks: list[Chunk]) -> None:
    chunk = chunks[1]
    for asked in (
        {"document": chunk.document.key},
        {"title": chunk.document.title},
        {"updated": {"$gte": "2020"}, "document": {"$endswith": chunk.document.key.upper()[-8:]}},
        f'collection=notes; document="{chunk.document.key}"',
    ):
        assert found(alices(chunk, asked)) == {chunk.pk}, asked
    assert found(alices(chunk, {"collection": {"$ne": "notes"}})) == set()


@pytest.fixture
def collection() -> Iterator[Collection]:
    collection = CollectionFactory(slug="notes")
    document = DocumentFactory(collection=collection)
    for year in range(2000, 2030):
        ChunkFactory(document=document, metadata={"year": year, "tags": ["x", f"t{year % 3}"]})
    return collection


def test_the_size_of_a_scope_is_that_of_its_filter(collection: Collection) -> None:
    for asked, size in ((None, 30), ("year>=2020", 10), ("tags=t0", 10), ("tags=t0,t1; x", 0)):
        scope = site_scope(workspace=collection.workspace, filter=asked)
        with connection.cursor() as cursor:
            cursor.execute(*scope_size_statement(scope, at_most=100))
            assert cursor.fetchone()[0] == size, asked


@pytest.mark.parametrize(
    "asked", ["year=2020", "author.name=Ada", "tags=a,b,c", "year=2020; !draft", "year>1; tags=a"]
)
def test_equality_of_metadata_is_looked_up_in_an_index(asked: str) -> None:
    """Without the scope, whose own indexes an empty table may prefer."""
    condition, parameters = compile_filter(read_filter(asked), configuration=configuration)
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL enable_seqscan = off")
        cursor.execute(
            f"EXPLAIN SELECT FROM documents_chunk AS chunk WHERE {condition}", parameters
        )
        plan = "\n".join(line for (line,) in cursor.fetchall())
    assert "chunk_metadata_index" in plan


def test_media_types_metadata_and_the_filter_are_one_filter(collection: Collection) -> None:
    Chunk.objects.filter(metadata__year=2024).update(media_type="application/pdf")
    scope = scope_for(
        user=MembershipFactory(workspace=collection.workspace).user,
        workspace=collection.workspace,
        filter="year>=2020",
        media_types=["application/pdf", "text/html"],
        metadata={"year": 2024, "tags": ["x", "t2"]},
    )
    assert scope.filter == read_filter(
        "year>=2020; media_type=application/pdf,text/html; year=2024; tags=x; tags=t2"
    )
    assert len(found(scope)) == 1


def test_a_thousand_values_are_looked_up(collection: Collection) -> None:
    scope = site_scope(
        workspace=collection.workspace, filter={"year": {"$in": list(range(2029, 3029))}}
    )
    assert len(found(scope)) == 1
