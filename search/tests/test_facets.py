"""Facets: what is counted, under which filters, and values found while one types."""

from collections.abc import Mapping
from typing import Any

import pytest

from accounts.models import Membership
from common.errors import InvalidInput
from documents.models import Collection
from documents.tests.factories import ChunkFactory, CollectionFactory, DocumentFactory
from search.facets import facet_values
from search.query_options import scope_for, site_scope
from search.results import Facet, Scope, SearchResult
from search.services import search

pytestmark = pytest.mark.django_db

AUTHORS = ["Ann", "Ann", "Ann", "Bob", "Bob", "Čapek", "Donald Knuth"]


@pytest.fixture
def collection(alice: Membership) -> Collection:
    """Seven guides to otters by four authors, in two languages, from two folders and a site."""
    collection = CollectionFactory(workspace=alice.workspace, slug="guides", name="Guides")
    for number, author in enumerate(AUTHORS):
        german = number % 2 == 0
        document = DocumentFactory(
            collection=collection,
            key=f"{'north' if number < 4 else 'south'}/{number}.txt",
            url="https://www.otters.example/seven" if number == 6 else "",
            language="de" if german else "en",
            metadata={"author": author, "date": f"{2020 + number // 3}-05-31"},
        )
        ChunkFactory(
            document=document,
            text=f"The otter swims, part {number}.",
            language="german" if german else "english",
            metadata={"author": author, "draft": number < 2},
        )
    return collection


def find(collection: Collection, filter: str = "", **options: Any) -> SearchResult:
    scope = site_scope(workspace=collection.workspace, filter=filter)
    return search("otter", scope=scope, **{"facets": ["*", "author", "draft"], **options})


def counts(facets: tuple[Facet, ...]) -> dict[str, int]:
    return {facet.value: facet.count for facet in facets}


def test_the_usual_facets_say_where_hits_are_from(collection: Collection) -> None:
    facets = find(collection).facets
    assert list(facets)[:5] == ["collection", "media_type", "language", "origin", "dated"]
    assert counts(facets["collection"]) == {"guides": 7}
    assert [(each.label, each.count) for each in facets["language"]] == [
        ("German", 4),
        ("English", 3),
    ]
    assert counts(facets["origin"]) == {"north": 4, "south": 2, "otters.example": 1}
    assert [(each.value, each.count) for each in facets["dated"]] == [
        ("2022", 1),
        ("2021", 3),
        ("2020", 3),
    ]


def test_each_value_filters_what_it_counted(collection: Collection) -> None:
    facets = find(collection).facets
    for name in ("language", "origin", "dated", "author", "draft"):
        assert facets[name], name
        for facet in facets[name]:
            found = find(collection, facet.filter, facets=[])
            assert found.total == facet.count, facet.filter


def test_what_is_picked_hides_other_facets_values_and_not_its_own(collection: Collection) -> None:
    facets = find(collection, "author=Ann").facets
    assert counts(facets["author"]) == {"Ann": 3, "Bob": 2, "Donald Knuth": 1, "Čapek": 1}
    assert [each.value for each in facets["author"] if each.selected] == ["Ann"]
    assert counts(facets["language"]) == {"de": 2, "en": 1}


def test_a_facet_is_counted_under_what_was_picked_of_the_others(collection: Collection) -> None:
    both = find(collection, "author=Ann,Bob; lang=de").facets
    assert counts(both["author"]) == counts(find(collection, "lang=de").facets["author"])
    assert counts(both["language"]) == counts(find(collection, "author=Ann,Bob").facets["language"])


def test_a_facet_of_which_something_is_picked_stays(collection: Collection) -> None:
    for number in range(8):
        document = DocumentFactory(collection=collection)
        ChunkFactory(document=document, text="Otter.", metadata={"kind": "ab"[number % 2]})
    telling = find(collection, facets=["*"]).facets
    picked = find(collection, "kind=a; author=Ann", facets=["*"]).facets
    assert list(telling)[5:] == ["draft", "kind"]
    assert list(picked)[5:] == ["author", "kind"]
    assert counts(picked["kind"]) == {"a": 0}


def test_a_value_that_nothing_has_can_be_taken_back(collection: Collection) -> None:
    (nobody,) = (
        each for each in find(collection, "author=Nobody").facets["author"] if each.selected
    )
    assert (nobody.value, nobody.count) == ("Nobody", 0)


def test_collections_that_were_not_named_stay_to_be_named(collection: Collection) -> None:
    other = CollectionFactory(workspace=collection.workspace, slug="notes")
    ChunkFactory(document=DocumentFactory(collection=other), text="An otter again.")
    scope = site_scope(workspace=collection.workspace, collections=["notes"])
    result = search("otter", scope=scope, facets=["collection"])
    assert result.total == 1
    shown = [(each.value, each.count, each.selected) for each in result.facets["collection"]]
    assert shown == [("guides", 7, False), ("notes", 1, True)]


def test_programs_that_ask_for_no_facet_get_those_of_the_hits(collection: Collection) -> None:
    facets = find(collection, "media_type=text/plain; author=Bob", facets=[]).facets
    assert {name: counts(values) for name, values in facets.items()} == {
        "collection": {"guides": 2},
        "media_type": {"text/plain": 2},
    }


def test_a_collection_chooses_its_facets(collection: Collection) -> None:
    collection.facets = ["draft", "no.such", "title"]
    collection.save()
    facets = find(collection, facets=["*"]).facets
    assert list(facets)[5:] == ["draft", "no.such", "metadata.title"]
    assert counts(facets["draft"]) == {"no": 5, "yes": 2}
    assert facets["no.such"] == ()


def test_what_others_may_not_see_is_not_counted_for_them(
    alice: Membership, collection: Collection
) -> None:
    secret = DocumentFactory(collection=collection, access=["user:nobody"], language="fr")
    ChunkFactory(
        document=secret, text="A secret otter.", language="french", metadata={"author": "Eve"}
    )
    scope = scope_for(user=alice.user, workspace=alice.workspace, filter="author=Ann")
    facets = search("otter", scope=scope, facets=["author"]).facets
    assert "Eve" not in counts(facets["author"])
    for query in ("otter", ""):
        assert facet_values(query, scope=scope, facet="author", prefix="e") == ()


@pytest.mark.parametrize("name", ["title", "page", "created"])
def test_a_field_that_is_no_facet_is_refused(collection: Collection, name: str) -> None:
    with pytest.raises(InvalidInput, match="is not a facet"):
        find(collection, facets=[name])


def values(
    scope: Scope, query: str, facet: str, prefix: str = "", **options: Any
) -> dict[str, int]:
    return counts(facet_values(query, scope=scope, facet=facet, prefix=prefix, **options))


@pytest.mark.parametrize(
    ("prefix", "expected"),
    [
        ("a", {"Ann": 3}),
        ("ANN", {"Ann": 3}),
        ("cap", {"Čapek": 1}),
        ("knu", {"Donald Knuth": 1}),
        ("nuth", {}),
        ("(", {}),
        ("", {"Ann": 3, "Bob": 2, "Donald Knuth": 1, "Čapek": 1}),
    ],
)
def test_values_are_found_by_the_beginning_of_a_word(
    collection: Collection, prefix: str, expected: Mapping[str, int]
) -> None:
    scope = site_scope(workspace=collection.workspace)
    assert values(scope, "otter", "author", prefix) == expected
    assert values(scope, "", "author", prefix) == expected


def test_values_that_no_hit_has_come_last(collection: Collection) -> None:
    scope = site_scope(workspace=collection.workspace)
    found = facet_values('"part 3"', scope=scope, facet="author", mode="lexical")
    assert [(each.value, each.count) for each in found] == [
        ("Bob", 1),
        ("Ann", 0),
        ("Donald Knuth", 0),
        ("Čapek", 0),
    ]


@pytest.mark.parametrize(
    ("facet", "expected"),
    [
        ("collection", {"guides": 7}),
        ("media_type", {"text/plain": 7}),
        ("language", {"de": 4, "en": 3}),
        ("origin", {"north": 4, "south": 2, "otters.example": 1}),
        ("dated", {"2020": 3, "2021": 3, "2022": 1}),
        ("draft", {"no": 5, "yes": 2}),
    ],
)
def test_every_facet_can_be_typed_in(
    collection: Collection, facet: str, expected: Mapping[str, int]
) -> None:
    scope = site_scope(workspace=collection.workspace)
    assert values(scope, "otter", facet) == expected
    if facet != "collection":  # whose words are not counted here
        assert values(scope, "", facet) == expected


def test_a_choice_does_not_hide_the_facets_other_values_while_one_types(
    collection: Collection,
) -> None:
    scope = site_scope(workspace=collection.workspace, filter="author=Ann; lang=de")
    found = facet_values("otter", scope=scope, facet="author", limit=2)
    assert [(each.value, each.count, each.selected) for each in found] == [
        ("Ann", 2, True),
        ("Bob", 1, False),
    ]
