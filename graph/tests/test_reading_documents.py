"""Documents and passages are part of the graph without a row of their own."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from documents.ingestion.sources import text_source
from documents.models import Collection, Document, IngestionRun
from documents.services import ingest_inline
from documents.tests.factories import ChunkFactory, CollectionFactory, DocumentFactory
from graph.models import Mention
from graph.node_ids import document_addresses, document_id, passage_address, passage_id
from graph.scopes import GraphScope
from graph.services import get_node, mentions_of, neighbors, shortest_path, subgraph, traverse
from graph.tests.factories import make_edge, make_extracted, make_mention, make_node

pytestmark = pytest.mark.django_db

LONG = "\n\n".join(f"# Part {n}\n\n" + f"Paragraph {n} has its say. " * 60 for n in range(4))
keys = st.one_of(
    st.text(
        st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1, max_size=20
    ),
    st.sampled_from(
        ["a@v2", "@v1", "a:1", "a:1@v3", "/x/y 'z' \"q\"", "a@v2@v2", ":", "::7", "a@v02"]
    ),
)


@pytest.fixture
def collection() -> Collection:
    return CollectionFactory(slug="notes", graph="off")


@pytest.fixture
def scope(collection: Collection) -> GraphScope:
    return GraphScope(collection.workspace_id)


def ingest(collection: Collection, key: str, text: str, **options: Any) -> Document:
    ingest_inline(collection=collection, sources=[text_source(key, text)], **options)
    return Document.objects.get(collection=collection, key=key, is_current=True)


def around(scope: GraphScope, id: str, **options: Any) -> list[tuple[str, str, bool]]:
    items = neighbors(scope=scope, id=id, **options).items
    return [(each.vertex.id, each.rel, each.outgoing) for each in items]


@given(key=keys, version=st.integers(1, 30), is_current=st.booleans())
def test_the_id_of_a_document_names_it_before_anything_else(
    key: str, version: int, is_current: bool
) -> None:
    written = document_id(collection="notes", key=key, version=version, is_current=is_current)
    first = document_addresses(written)[0]
    assert first in (("notes", key, version), ("notes", key, None))
    assert is_current or first[2] == version


@given(key=keys, ordinal=st.integers(0, 10**6))
def test_the_id_of_a_passage_names_it(key: str, ordinal: int) -> None:
    written = passage_id(collection="notes", key=key, ordinal=ordinal)
    assert passage_address(written) == ("notes", key, ordinal)


@pytest.mark.parametrize(
    "id", ["doc:", "doc:notes", "doc:notes:", "doc::x", "chunk:notes:x", "ent:x"]
)
def test_what_names_no_document_or_passage_is_no_such_id(id: str) -> None:
    assert document_addresses(id) == ()
    assert passage_address(id) is None


def test_keys_with_any_characters_are_resolved(collection: Collection, scope: GraphScope) -> None:
    awkward = ["a:1", "a@v2", 'it\'s "x"/y z', "a", "päge:10%", "line\nbreak", "::", "a@v1"]
    for key in awkward:
        ChunkFactory(document=DocumentFactory(collection=collection, key=key, version=2))
    for key in awkward:
        written = document_id(collection="notes", key=key, version=2, is_current=True)
        document = get_node(scope=scope, id=written)
        assert document is not None
        assert document.props is not None
        assert (document.id, document.props["key"]) == (written, key)
        passage = get_node(scope=scope, id=passage_id(collection="notes", key=key, ordinal=0))
        assert passage is not None
        assert passage.props is not None
        assert passage.props["document"] == key


def test_a_document_leads_to_its_passages_and_each_to_the_next(
    collection: Collection, scope: GraphScope
) -> None:
    document = ingest(collection, "long.md", LONG)
    assert document.chunk_count > 2
    ids = [f"chunk:notes:long.md:{n}" for n in range(document.chunk_count)]
    assert around(scope, "doc:notes:long.md") == [(id, "HAS_CHUNK", True) for id in ids]
    assert around(scope, ids[1], rel="NEXT") == [(ids[0], "NEXT", False), (ids[2], "NEXT", True)]
    assert around(scope, ids[1], direction="in") == [
        (ids[0], "NEXT", False),
        ("doc:notes:long.md", "HAS_CHUNK", False),
    ]
    last = traverse(scope=scope, start=ids[0], rels=["NEXT"], direction="out", max_depth=100)
    assert [each.vertex.id for each in last.items] == ids


def test_many_passages_come_in_their_order(collection: Collection, scope: GraphScope) -> None:
    document = DocumentFactory(collection=collection, key="many")
    for _ in range(12):
        ChunkFactory(document=document)
    page = neighbors(scope=scope, id="doc:notes:many", limit=7)
    rest = neighbors(scope=scope, id="doc:notes:many", limit=7, cursor=page.next)
    found = [each.vertex.id for each in (*page.items, *rest.items)]
    assert found == [f"chunk:notes:many:{n}" for n in range(12)]
    assert (page.total, rest.next) == (12, "")


def test_an_old_version_leads_to_the_current_one(collection: Collection, scope: GraphScope) -> None:
    for text in ("One text.", "Another text.", "A third text."):
        ingest(collection, "note", text, policy=IngestionRun.Policy.NEW_VERSION)
    assert around(scope, "doc:notes:note@v1") == [("doc:notes:note", "VERSION_OF", True)]
    assert around(scope, "doc:notes:note", rel="VERSION_OF") == [
        ("doc:notes:note@v1", "VERSION_OF", False),
        ("doc:notes:note@v2", "VERSION_OF", False),
    ]
    newest = get_node(scope=scope, id="doc:notes:note@v3")
    assert newest is not None
    assert newest.id == "doc:notes:note"


def test_a_document_mentions_what_its_passages_mention_together(
    collection: Collection, scope: GraphScope
) -> None:
    document = DocumentFactory(collection=collection, key="book")
    first, second = (ChunkFactory(document=document, text=f"Ada is here, {n}.") for n in (1, 2))
    ada = make_extracted("ent:name:ada", first, name="Ada")
    make_mention(second, ada, count=4, start=0, end=3)
    (mention,) = neighbors(scope=scope, id="ent:name:ada").items
    assert (mention.vertex.id, mention.rel, mention.outgoing) == (
        "doc:notes:book",
        "MENTIONS",
        False,
    )
    assert (mention.weight, mention.origin) == (5, "derived")
    assert around(scope, "ent:name:ada", grain="chunk") == [
        ("chunk:notes:book:0", "MENTIONS", False),
        ("chunk:notes:book:1", "MENTIONS", False),
    ]
    assert ("ent:name:ada", "MENTIONS", True) in around(scope, "doc:notes:book")
    assert ("ent:name:ada", "MENTIONS", True) in around(scope, "chunk:notes:book:1")
    page = mentions_of(scope=scope, id="ent:name:ada", limit=1)
    rest = mentions_of(scope=scope, id="ent:name:ada", cursor=page.next)
    assert [each.passage.id for each in (*page.items, *rest.items)] == [
        "chunk:notes:book:0",
        "chunk:notes:book:1",
    ]
    (told,) = rest.items
    assert (told.document.id, told.kind, told.count) == ("doc:notes:book", "text", 4)
    assert told.snippet[told.start - told.snippet_start : told.end - told.snippet_start] == "Ada"
    assert rest.next == ""


def test_a_snippet_stands_around_its_mention_in_a_long_text(
    collection: Collection, scope: GraphScope
) -> None:
    text = "far " * 400 + "Ada" + " away" * 400
    chunk = ChunkFactory(document=DocumentFactory(collection=collection), text=text)
    node = make_node("ent:name:ada", workspace=collection.workspace)
    start = text.index("Ada")
    make_mention(chunk, node, start=start, end=start + 3)
    (told,) = mentions_of(scope=scope, id=node.key).items
    assert told.snippet == text[told.snippet_start : told.snippet_start + len(told.snippet)]
    assert "Ada" in told.snippet
    assert len(told.snippet) < 300


def test_a_link_leads_to_the_document_that_is_called_so(
    collection: Collection, scope: GraphScope
) -> None:
    here, there, beside = (
        ChunkFactory(document=DocumentFactory(collection=collection, key=key))
        for key in ("here", "there", "beside")
    )
    again = ChunkFactory(document=there.document)
    target = make_node("ref:there", workspace=collection.workspace)
    make_mention(here, target, kind=Mention.Kind.LINK, count=2)
    make_mention(there, target, kind=Mention.Kind.SELF)
    make_mention(again, target, kind=Mention.Kind.SELF)
    make_mention(beside, target)
    (link,) = neighbors(scope=scope, id="doc:notes:here", rel="REFERS_TO").items
    assert (link.vertex.id, link.outgoing, link.weight) == ("doc:notes:there", True, 2)
    assert around(scope, "doc:notes:there", rel="REFERS_TO") == [
        ("doc:notes:here", "REFERS_TO", False)
    ]
    assert around(scope, "doc:notes:beside", rel="REFERS_TO") == []


def test_links_of_files_lead_from_one_to_the_other(scope: GraphScope) -> None:
    """Read by the rules, without a row made by hand."""
    collection = CollectionFactory(slug="site")
    sources = [
        text_source("docs/start.md", "# Start\n\nGo on with [the setup](setup.md) of it all."),
        text_source("docs/setup.md", "# Setup\n\nInstall everything first."),
    ]
    ingest_inline(collection=collection, sources=sources)
    mine = GraphScope(collection.workspace_id)
    assert around(mine, "doc:site:docs/start.md", rel="REFERS_TO") == [
        ("doc:site:docs/setup.md", "REFERS_TO", True)
    ]


def test_an_edge_of_a_caller_hangs_on_a_document_and_a_passage(
    collection: Collection, scope: GraphScope
) -> None:
    chunk = ChunkFactory(document=DocumentFactory(collection=collection, key="deed"))
    workspace = collection.workspace
    deed = make_node(
        "doc:notes:deed", workspace=workspace, document=chunk.document, labels=["Deed"]
    )
    clause = make_node("chunk:notes:deed:0", workspace=workspace, chunk=chunk)
    ada = make_node("ent:name:ada", workspace=workspace)
    make_edge(ada, "SIGNED", deed, props={"in": 1842})
    make_edge(clause, "BINDS", ada)
    (signed, bound) = sorted(
        neighbors(scope=scope, id="ent:name:ada").items, key=lambda each: each.outgoing
    )
    assert (signed.vertex.id, signed.vertex.kind) == ("chunk:notes:deed:0", "chunk")
    assert (bound.vertex.id, bound.vertex.kind) == ("doc:notes:deed", "document")
    assert bound.props == {"in": 1842}
    assert ("ent:name:ada", "SIGNED", False) in around(scope, "doc:notes:deed")
    document = get_node(scope=scope, id="doc:notes:deed")
    assert document is not None
    assert document.labels == ("Document", "Deed")
    drawn = subgraph(scope=scope, ids=["ent:name:ada"])
    assert {(link.source, link.rel, link.target) for link in drawn.links} == {
        ("ent:name:ada", "SIGNED", "doc:notes:deed"),
        ("chunk:notes:deed:0", "BINDS", "ent:name:ada"),
        ("doc:notes:deed", "HAS_CHUNK", "chunk:notes:deed:0"),
    }


def test_passages_that_are_asked_for_are_joined_over_what_they_mention(
    collection: Collection, scope: GraphScope
) -> None:
    first, second = (
        ChunkFactory(document=DocumentFactory(collection=collection, key=key)) for key in "ab"
    )
    make_extracted("ent:name:ada", first, second)
    asked = {"source": "chunk:notes:a:0", "target": "chunk:notes:b:0"}
    for grain in ("document", "chunk"):
        found = shortest_path(scope=scope, grain=grain, **asked)
        assert found.found
        assert [vertex.id for vertex in found.vertices] == [
            "chunk:notes:a:0",
            "ent:name:ada",
            "chunk:notes:b:0",
        ]
    drawn = subgraph(scope=scope, ids=["ent:name:ada"], hops=1, labels=["Document"])
    assert [vertex.kind for vertex in drawn.vertices] == ["node", "document", "document"]
    assert len(drawn.links) == 2
