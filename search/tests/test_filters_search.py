"""Filters where people and programs meet them: the service, the API, the page, the command."""

import json
from time import process_time
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from django.core.management import CommandError, call_command
from django.test import Client
from lxml import html as lxml_html
from rest_framework.test import APIClient

from accounts.models import Membership
from documents.models import Chunk, Collection
from documents.tests.factories import (
    ChunkFactory,
    CollectionFactory,
    DocumentFactory,
    MembershipFactory,
)
from search.filters import FilterError
from search.query_options import site_scope
from search.services import search

pytestmark = pytest.mark.django_db
URL = "/api/v1/search/"


@pytest.fixture(scope="module")
def alice(shared_rows: None) -> Membership:
    """The owner of a workspace, for all tests of the module."""
    return MembershipFactory()


@pytest.fixture(scope="module")
def collection(alice: Membership) -> Collection:
    """A document for each year from 2000, every third a draft, German ones from 2015."""
    collection = CollectionFactory(workspace=alice.workspace, slug="leaflets", name="Leaflets")
    for year in range(2000, 2030):
        german = year >= 2015
        document = DocumentFactory(
            collection=collection,
            title=f"{'Ratgeber' if german else 'Guide'} {year}",
            language="de" if german else "en",
        )
        ChunkFactory(
            document=document,
            text=f"Nausea, as of {year}.",
            language="german" if german else "english",
            metadata={"year": year, "draft": year % 3 == 0, "tags": ["all", f"t{year % 2}"]},
        )
    return collection


def years(answer: Any) -> list[int]:
    return sorted(hit["metadata"]["year"] for hit in answer.json()["hits"])


FILTER = "year>=2010; lang=de,fr; title~RATGEBER; !draft"
EXPECTED = [year for year in range(2015, 2030) if year % 3]


@pytest.mark.parametrize("mode", ["hybrid", "lexical", "vector"])
@pytest.mark.parametrize("at_most", [1000, 2, 0], ids=["few", "by the root", "by the index"])
def test_every_arm_finds_all_that_the_filter_leaves_and_nothing_else(
    collection: Collection, settings: Any, mode: Any, at_most: int
) -> None:
    settings.EXACT_SCAN_CHUNKS = at_most
    scope = site_scope(workspace=collection.workspace, filter=FILTER)
    found = search("nausea", scope=scope, mode=mode, k=30)
    assert sorted(hit.metadata["year"] for hit in found.hits) == EXPECTED


def test_facets_count_what_the_filter_leaves(api: APIClient, collection: Collection) -> None:
    answer = api.get(URL, {"q": "nausea", "filter": FILTER}).json()
    assert answer["facets"]["collection"][0]["count"] == len(EXPECTED)


def test_the_api_takes_both_forms_and_answers_in_json(
    api: APIClient, collection: Collection
) -> None:
    as_json = {"year": {"$gte": 2010}, "language": {"$in": ["de", "fr"]},
               "title": {"$contains": "RATGEBER"}, "draft": {"$ne": True}}  # fmt: skip
    for answer in (
        api.get(URL, {"q": "nausea", "k": 50, "filter": FILTER}),
        api.get(URL, {"q": "nausea", "k": 50, "filter": json.dumps(as_json)}),
        api.post(URL, {"q": "nausea", "k": 50, "filter": FILTER}),
        api.post(URL, {"q": "nausea", "k": 50, "filter": as_json}),
    ):
        assert years(answer) == EXPECTED
        assert answer.json()["filter"] == as_json
    again = api.post(URL, {"q": "nausea", "filter": answer.json()["filter"]})
    assert again.json()["filter"] == as_json


def test_types_and_the_filter_hold_together(api: APIClient, collection: Collection) -> None:
    Chunk.objects.filter(metadata__year__in=[2001, 2016]).update(media_type="text/html")
    asked = {"q": "nausea", "type": "text/html"}
    assert years(api.get(URL, asked)) == [2001, 2016]
    answer = api.get(URL, {**asked, "filter": "lang=de"})
    assert years(answer) == [2016]
    assert answer.json()["filter"] == {"language": "de", "media_type": "text/html"}


def test_a_filter_that_leaves_nothing_finds_nothing(api: APIClient, collection: Collection) -> None:
    for nothing in ("year>2100", "no_such_field=1", '{"$or": []}'):
        answer = api.get(URL, {"q": "nausea", "filter": nothing})
        assert (answer.status_code, answer.json()["hits"]) == (200, [])


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"year": {"$gtee": 1}}, "year.$gtee"),
        (7, "the filter"),
        ("year>=2020 lang=de", "character 16"),
        ({"a": {"$in": ["x"] * 40_000}}, "a.$in"),
        ("(" * 1_000_000, "65,536"),
    ],
)
def test_a_bad_filter_is_a_400_that_names_the_place(
    api: APIClient, collection: Collection, asked: Any, said: str
) -> None:
    started = process_time()
    answer = api.post(URL, {"q": "nausea", "filter": asked})
    assert process_time() - started < 1
    assert answer.status_code == 400
    assert answer.json()["errors"][0]["attr"] == "filter"
    assert said in answer.json()["detail"]


def test_the_service_names_what_is_wrong(collection: Collection) -> None:
    with pytest.raises(FilterError, match=r"At page: “x” is no value"):
        site_scope(workspace=collection.workspace, filter={"page": "x"})
    with pytest.raises(FilterError, match=r"At a\.b: "):
        site_scope(workspace=collection.workspace, metadata={"a": {"b": []}})


# --- the command -------------------------------------------------------------------------------


def test_the_command_filters(collection: Collection, capsys: Any) -> None:
    workspace = collection.workspace.slug
    options = ["search", "nausea", "--workspace", workspace, "-k", "50", "--filter"]
    call_command(*options, FILTER, "--json")
    answer = json.loads(capsys.readouterr().out)
    assert sorted(hit["metadata"]["year"] for hit in answer["hits"]) == EXPECTED
    assert answer["filter"]["year"] == {"$gte": 2010}
    with pytest.raises(CommandError, match="At character 7 of the filter") as failure:
        call_command(*options, "year>=")
    assert failure.value.returncode == 2


# --- the page ----------------------------------------------------------------------------------


def page(client: Client, **parameters: str) -> Any:
    return lxml_html.document_fromstring(client.get("/", parameters).text)


def addresses(tree: Any, within: str) -> list[dict[str, list[str]]]:
    links = tree.iterfind(f".//{within}//a")
    parts = [urlsplit(link.get("href")) for link in links]
    return [parse_qs(part.query) for part in parts if not part.fragment]


def test_facets_pages_and_modes_keep_the_filter(client: Client, collection: Collection) -> None:
    tree = page(client, q="nausea", filter="year>=2010")
    kept = addresses(tree, "aside") + addresses(tree, "nav[@aria-label='Pages']")
    kept += addresses(tree, "nav[@aria-label='Search by']")
    assert len(kept) > 5
    # A value of the metadata is one more condition.
    assert all(each["filter"][0].split("; ")[0] == "year>=2010" for each in kept)
    box = tree.find(".//form[@class='searchbox']")
    assert box.find(".//input[@name='filter']").get("value") == "year>=2010"


def test_the_filter_box_keeps_question_mode_and_facets(
    client: Client, collection: Collection
) -> None:
    tree = page(
        client, q="nausea", mode="lexical", collection="leaflets", filter="year>=2010", page="2"
    )
    box = tree.find(".//aside//form")
    fields = {field.get("name"): field.get("value") for field in box.iterfind(".//input")}
    assert fields == {
        "q": "nausea",
        "mode": "lexical",
        "collection": "leaflets",
        "filter": "year>=2010",
    }


def test_the_filter_is_a_chip_that_one_click_takes_away(
    client: Client, collection: Collection
) -> None:
    tree = page(client, q="nausea", filter='title~"<b>"')
    (chip,) = tree.iterfind(".//a[@class='chip']")
    assert 'title~"<b>"' in chip.text_content()
    assert parse_qs(urlsplit(chip.get("href")).query) == {"q": ["nausea"]}
    assert "within the filters above" in tree.text_content()


def test_a_filter_that_cannot_be_read_says_why_beside_its_box(
    client: Client, collection: Collection
) -> None:
    answer = client.get("/", {"q": "nausea", "filter": "year>=<script>", "collection": "leaflets"})
    tree = lxml_html.document_fromstring(answer.text)
    box = tree.find(".//input[@id='filter']")

    assert answer.status_code == 400
    assert (box.get("value"), box.get("aria-invalid")) == ("year>=<script>", "true")
    error = tree.get_element_by_id(box.get("aria-errormessage"))
    assert "character 7" in error.text_content()
    assert error.get("role") == "alert"
    assert tree.find(".//ol[@class='hits']") is None
    assert addresses(tree.get_element_by_id("page"), "div[@class='blank']") == [{"q": ["nausea"]}]
