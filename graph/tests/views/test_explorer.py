"""The explorer: what is drawn and listed around a node, filtered, expanded, hidden, cut."""

import pytest
from django.http import QueryDict
from django.test import Client

from documents.tests.factories import ChunkFactory
from documents.tests.views.reading import href, parse, words
from graph.forms import GraphState
from graph.tests.factories import make_edge, make_extracted, make_node
from graph.tests.views.conftest import Harbour
from graph.tests.views.reading import drawn, explored, listed

pytestmark = pytest.mark.django_db
TOBIAS = "ent:person:tobias brandt"


def test_the_neighbours_of_a_node_are_drawn_and_listed(client: Client, harbour: Harbour) -> None:
    names, links = drawn(client, id=TOBIAS)
    tree = explored(client, id=TOBIAS)

    assert names == {"Tobias Brandt", "The log", "Lighthouse"}
    assert ("The log", "MENTIONS", "Tobias Brandt") in links
    assert ("Tobias Brandt", "KEEPS", "Lighthouse") in links
    assert set(listed(tree)) == names
    assert words(tree.find(".//*[@data-told]")) == "3 things, 2 links"
    assert words(tree.find(".//*[@id='about']//h2")) == "Tobias Brandt"


def test_two_hops_go_further(client: Client, harbour: Harbour) -> None:
    names, links = drawn(client, id=TOBIAS, hops=2)

    assert names == {"Tobias Brandt", "The log", "Lighthouse", "Mara Hillage"}
    assert ("The log", "MENTIONS", "Mara Hillage") in links


def test_passages_are_drawn_in_place_of_documents(client: Client, harbour: Harbour) -> None:
    names, links = drawn(client, id=TOBIAS, grain="chunk")

    assert {"The log #1", "The log #2"} <= names
    assert "The log" not in names
    assert ("The log #2", "MENTIONS", "Tobias Brandt") in links


def test_expanding_a_node_adds_its_neighbours(client: Client, harbour: Harbour) -> None:
    tree = explored(client, id=TOBIAS)
    row = tree.find(".//tr[@data-row='doc:harbour:log/1.txt']")
    address = href(row, "Expand")
    names = listed(parse(client.get(address)))

    assert "open=doc%3Aharbour%3Alog%2F1.txt" in address
    assert set(names) == {"Tobias Brandt", "The log", "Lighthouse", "Mara Hillage"}
    assert "1 expanded" in words(parse(client.get(address)).find(".//*[@id='told']"))


def test_filters_tell_their_counts_and_can_be_taken_back(client: Client, harbour: Harbour) -> None:
    tree = explored(client, id=TOBIAS)
    relations = tree.find(".//section[@aria-labelledby='facet-rel']")
    assert [words(choice) for choice in relations.iterfind(".//li")] == ["keeps 1", "mentions 1"]

    filtered = parse(client.get(relations.find(".//li/a").get("href")))
    assert set(listed(filtered)) == {"Tobias Brandt", "Lighthouse"}
    choices = filtered.findall(".//section[@aria-labelledby='facet-rel']//li/a")
    assert [words(choice) for choice in choices] == ["keeps 1", "mentions 1"]
    assert choices[0].get("aria-current") == "true"
    assert set(listed(parse(client.get(choices[0].get("href"))))) == set(listed(tree))


def test_a_filter_by_kind_keeps_where_the_drawing_starts(client: Client, harbour: Harbour) -> None:
    names, _ = drawn(client, id=TOBIAS, label="Place")

    assert names == {"Tobias Brandt", "Lighthouse"}


def test_a_filter_that_leaves_nothing_says_so(client: Client, harbour: Harbour) -> None:
    tree = explored(client, id=TOBIAS, rel="PAINTS")

    told = tree.find(".//*[@id='told']")
    assert "No links match this filter" in words(told)
    assert set(listed(parse(client.get(href(told, "Show all links"))))) >= {"Lighthouse"}


def test_what_is_hidden_goes_with_its_links_and_comes_back(
    client: Client, harbour: Harbour
) -> None:
    tree = explored(client, id=TOBIAS)
    hidden = client.get(href(tree.find(".//tr[@data-row='ent:place:lighthouse']"), "Hide"))

    tree = parse(hidden)
    assert set(listed(tree)) == {"Tobias Brandt", "The log"}
    assert words(tree.find(".//*[@data-told]")) == "2 things, 1 link"
    back = next(
        link.get("href") for link in tree.iterfind(".//*[@id='told']//a") if "hidden" in words(link)
    )
    assert "Lighthouse" in listed(parse(client.get(back)))


def test_the_rest_is_counted_where_there_is_too_much(client: Client, harbour: Harbour) -> None:
    for number in range(230):
        other = make_node(f"ent:x:{number}", workspace=harbour.mara.workspace, name=f"X {number}")
        make_edge(harbour.lighthouse, "SHINES_ON", other)

    tree = explored(client, id="ent:place:lighthouse")
    told = tree.find(".//*[@id='told']")
    assert words(told.find(".//*[@data-told]")) == (
        "200 things, 199 links · 32 more links, not shown"
    )
    assert len(listed(tree)) == 50
    assert "150 more" in words(tree.find(".//nav[@aria-label='Pages of the list']"))
    assert len(listed(parse(client.get(href(tree, "150 more"))))) == 50

    larger = parse(client.get(href(told, "Show up to 500")))
    assert words(larger.find(".//*[@data-told]")) == "232 things, 231 links"


def test_what_is_not_there_is_said_to_be_missing(client: Client, harbour: Harbour) -> None:
    answer = client.get("/graph/", {"id": "ent:person:nobody"})
    assert answer.status_code == 404
    assert "Not found: ent:person:nobody" in words(parse(answer))

    both = client.get("/graph/", {"id": [TOBIAS, "ent:person:nobody"]})
    assert both.status_code == 200
    assert "Not found and left out: ent:person:nobody" in words(parse(both))
    nothing = {"elements": {"nodes": [], "edges": []}}
    assert client.get("/graph/elements/?id=ent:person:nobody").json() == nothing


@pytest.mark.parametrize(
    "name",
    [
        "<script>alert(1)</script>",
        'O\'Brien "the \\ quote" & co',
        "שלום \u202egnp.exe",
        "🦆 duck",
        "x" * 900,
        "a/b?c=d#e%20f&id=g",
    ],
)
def test_strange_names_and_ids_are_only_text(client: Client, harbour: Harbour, name: str) -> None:
    node = make_node(name[:1000], workspace=harbour.mara.workspace, name=name)
    make_edge(harbour.mara, "<b>KNOWS</b>", node)

    tree = explored(client, id=node.key)
    assert "Mara Hillage" in listed(tree)
    assert not tree.xpath("//script[contains(., 'alert')]")
    assert not tree.xpath("//b")
    assert drawn(client, id=node.key)[0] == {name, "Mara Hillage"}


@pytest.mark.parametrize(
    "query",
    ["hops=9", "size=7", "page=0", "page=-1", "page=x", "grain=word", "at=%00", "id=%00", "hide="],
)
def test_an_address_that_makes_no_sense_shows_something(
    client: Client, harbour: Harbour, query: str
) -> None:
    answer = client.get(f"/graph/?id=ent:place:lighthouse&{query}")

    assert answer.status_code == 200
    assert "Lighthouse" in listed(parse(answer))


def test_a_node_known_only_by_a_passage_of_long_ago_is_gone(
    client: Client, harbour: Harbour
) -> None:
    chunk = ChunkFactory(document=harbour.letter, text="Ines waved.", is_current=False)
    make_extracted("ent:person:ines", chunk, name="Ines", labels=["Person"])

    assert client.get("/graph/", {"id": "ent:person:ines"}).status_code == 404


def test_the_state_survives_its_own_address() -> None:
    state = GraphState(
        ids=("a&b", "c=d"),
        opened=("e/f",),
        hidden=("g#h",),
        rels=("X Y",),
        labels=("Ö",),
        hops=2,
        at="i?j",
        size=500,
        grain="chunk",
        page=3,
    )
    assert GraphState.read(QueryDict(state.url(page=3).partition("?")[2])) == state


def test_the_best_connected_stand_first(client: Client, harbour: Harbour) -> None:
    make_edge(harbour.mara, "VISITS", harbour.lighthouse)

    tree = explored(client, id=TOBIAS, hops=2)
    assert listed(tree) == ["Lighthouse", "Mara Hillage", "The log", "Tobias Brandt"]
    assert [words(row.find("td[2]")) for row in tree.iterfind(".//tr[@data-row]")] == list("2222")
    assert listed(explored(client, id=TOBIAS))[0] == "Tobias Brandt"
