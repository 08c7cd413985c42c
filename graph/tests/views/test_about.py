"""What is known of one node."""

import pytest
from django.test import Client

from documents.tests.views.reading import href, parse, words
from graph.tests.factories import make_edge, make_mention, make_node
from graph.tests.views.conftest import Harbour

pytestmark = pytest.mark.django_db
TOBIAS = "ent:person:tobias brandt"


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
