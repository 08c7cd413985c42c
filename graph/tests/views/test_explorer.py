"""The explorer: where to start, what is drawn and listed around a node, what is known of it."""

from typing import Any

import pytest
from django.http import QueryDict
from django.test import Client

from documents.tests.factories import ChunkFactory, CollectionFactory, DocumentFactory
from documents.tests.views.reading import href, parse, words
from graph.forms import GraphState
from graph.tests.factories import make_edge, make_extracted, make_mention, make_node
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


def test_an_empty_graph_says_where_it_comes_from(client: Client) -> None:
    tree = parse(client.get("/graph/"))

    assert "No links yet" in words(tree)
    assert href(tree, "To the collections") == "/documents/"


def test_the_start_shows_numbers_and_the_best_connected(client: Client, harbour: Harbour) -> None:
    tree = parse(client.get("/graph/"))

    assert "3 things" in words(tree.find(".//*[@class='amounts']"))
    assert "Person 2" in words(tree.find(".//*[@class='amounts']"))
    tiles = [words(tile) for tile in tree.iterfind(".//ul[@class='tiles']/li")]
    assert tiles[0].startswith("Tobias Brandt")
    first = tree.find(".//ul[@class='tiles']/li/a").get("href")
    assert first == "/graph/?id=ent%3Aperson%3Atobias+brandt"


def named_in(tree: Any, collection: str) -> list[str]:
    """Names in the tiles of the collection, in order."""
    [heading] = [each for each in tree.iterfind(".//h3") if words(each) == collection]
    return [words(tile) for tile in heading.getnext().iterfind("./li//bdi")]


def test_each_collection_shows_what_most_of_its_documents_name(
    client: Client, harbour: Harbour
) -> None:
    manual = CollectionFactory(workspace=harbour.log.workspace, slug="manual", name="Manual")
    pages = [ChunkFactory(document=DocumentFactory(collection=manual)) for _ in range(9)]
    make_extracted("ent:code:manage py", *pages, name="manage.py", labels=["code"])
    make_extracted("ref:/settings", *pages, name="../settings.md", labels=["ref"])
    make_extracted("ent:date:2026", *pages, name="2026", labels=["date"])
    make_extracted("ent:name:valkey", *pages[:5], name="Valkey", labels=["name"])
    make_extracted("ent:name:postgresql", *pages[:7], name="PostgreSQL", labels=["name"])

    tree = parse(client.get("/graph/"))
    assert named_in(tree, "Harbour") == ["Mara Hillage", "Tobias Brandt"]
    assert named_in(tree, "Manual") == ["PostgreSQL", "Valkey"]


def test_a_collection_of_code_shows_its_identifiers(client: Client, harbour: Harbour) -> None:
    source = CollectionFactory(workspace=harbour.log.workspace, slug="source", name="Source")
    module = ChunkFactory(document=DocumentFactory(collection=source))
    make_extracted("ent:code:has chat", module, name="has_chat", labels=["code"])

    assert named_in(parse(client.get("/graph/")), "Source") == ["has_chat"]


def test_part_of_a_name_is_left_out_where_the_whole_stands_for_it(
    client: Client, harbour: Harbour
) -> None:
    letter = harbour.letter.chunks.get()
    log = harbour.log.chunks.first()
    make_extracted("ent:name:mara", letter, log, name="Mara", labels=["name"])
    make_extracted("ent:name:log", letter, log, name="Log", labels=["name"])

    names = named_in(parse(client.get("/graph/")), "Harbour")
    assert names == ["Mara Hillage", "Log", "Tobias Brandt"]


def test_nobody_is_shown_what_others_collections_name(
    client: Client, charlie: Client, harbour: Harbour
) -> None:
    secret = CollectionFactory(workspace=harbour.log.workspace, slug="secret", name="Secret")
    document = DocumentFactory(collection=secret, access=["user:0"])
    chunk = ChunkFactory(document=document, access=["user:0"])
    make_extracted("ent:name:zanzibar", chunk, name="Zanzibar", labels=["name"])

    assert "Zanzibar" not in words(parse(client.get("/graph/")))
    assert "Mara" not in words(parse(charlie.get("/graph/")))


def test_a_name_finds_nodes_and_documents(client: Client, harbour: Harbour) -> None:
    tree = parse(client.get("/graph/", {"find": "mara"}))
    assert href(tree, "Mara HillagePerson") == "/graph/?id=ent%3Aperson%3Amara+hillage"
    assert "The log" in words(parse(client.get("/graph/", {"find": "the log"})))


def test_a_name_that_nothing_has_leads_on(client: Client, harbour: Harbour) -> None:
    tree = parse(client.get("/graph/", {"find": "zzz & <b>qqq</b>"}))

    assert tree.findtext(".//h2/bdi") == "zzz & <b>qqq</b>"
    assert words(tree.find(".//h2")).startswith("No name contains")
    assert href(tree, "Search the text of documents").startswith("/?q=zzz%20%26%20%3Cb%3E")


def test_options_are_offered_while_typing(client: Client, harbour: Harbour) -> None:
    tree = parse(client.get("/graph/find/", {"find": "tobi"}))
    option = tree.find(".//li[@role='option']")
    assert words(option).startswith("Tobias Brandt")
    assert option.get("data-href") == "/graph/?id=ent%3Aperson%3Atobias+brandt"

    none = parse(client.get("/graph/find/", {"find": "zzzz"}))
    assert none.find(".//li").get("aria-disabled") == "true"
    assert client.get("/graph/find/").status_code == 200


def test_a_node_shows_the_passages_that_speak_of_it(client: Client, harbour: Harbour) -> None:
    chunk = harbour.log.chunks.get(ordinal=1)
    chunk_mention = harbour.tobias.mentions.get(chunk=chunk)
    start = chunk.text.index("Tobias Brandt")
    harbour.tobias.mentions.filter(chunk=chunk).update(start=start, end=start + 13)
    assert chunk_mention.node == harbour.tobias

    tree = parse(client.get("/graph/about/", {"id": TOBIAS}))
    passages = tree.findall(".//ul[@class='mentions']/li")
    assert [words(each) for each in passages] == [
        "The log Mara Hillage met Tobias Brandt at the pier.",
        "The log At night Tobias Brandt lit the lamp.",
    ]
    assert passages[1].findtext(".//mark") == "Tobias Brandt"
    assert href(passages[1], "The log") == (
        f"/documents/harbour/{harbour.log.pk}/?chunk={chunk.pk}#passage"
    )


def test_its_relations_are_grouped_by_what_they_say(client: Client, harbour: Harbour) -> None:
    tree = parse(client.get("/graph/about/", {"id": TOBIAS}))

    titles = [words(title) for title in tree.iterfind(".//h3")]
    assert "Keeps 1" in titles
    assert "Is mentioned by 1" in titles
    neighbours = [words(each) for each in tree.iterfind(".//ul[@class='neighbours']/li")]
    assert sorted(neighbours) == ["Lighthouse", "The log"]


def test_its_properties_are_shown_as_they_were_written(client: Client, harbour: Harbour) -> None:
    tree = parse(client.get("/graph/about/", {"id": "ent:place:lighthouse"}))

    properties = tree.find(".//dl")
    assert words(properties) == "of stone built 1891"


def test_a_document_can_be_read_and_has_a_way_back(client: Client, harbour: Harbour) -> None:
    tree = parse(client.get("/graph/about/", {"id": "doc:harbour:log/1.txt"}))
    page = f"/documents/harbour/{harbour.log.pk}/"
    assert href(tree, "Read") == page
    assert "Mentions 2" in [words(title) for title in tree.iterfind(".//h3")]

    back = parse(client.get(page)).find(".//section[@id='graph']//a").get("href")
    assert words(parse(client.get(back)).find(".//*[@id='about']//h2")) == "The log"


def test_a_passage_is_read_in_its_document(client: Client, harbour: Harbour) -> None:
    tree = parse(client.get("/graph/about/", {"id": "chunk:harbour:log/1.txt:1"}))

    chunk = harbour.log.chunks.get(ordinal=1)
    page = f"/documents/harbour/{harbour.log.pk}/"
    assert href(tree, "Read") == f"{page}?chunk={chunk.pk}#passage"


def test_long_lists_say_what_is_left_out(client: Client, harbour: Harbour) -> None:
    node = harbour.lighthouse
    node.props = {f"key {number:02}": number for number in range(45)}
    node.save()
    for number in range(20):
        other = make_node(f"ent:x:{number}", workspace=node.workspace, name=f"X {number}")
        make_edge(node, "SHINES_ON", other)
    for chunk in harbour.log.chunks.all():
        make_mention(chunk, node)

    said = words(parse(client.get("/graph/about/", {"id": node.key})))
    assert "Shines on 20" in said
    assert "12 more, not listed." in said
    assert "15 more." in said


def test_a_node_that_is_not_there_is_said_not_to_be(client: Client, harbour: Harbour) -> None:
    answer = client.get("/graph/about/", {"id": "ent:person:nobody"})

    assert "Not found: ent:person:nobody" in words(parse(answer))
