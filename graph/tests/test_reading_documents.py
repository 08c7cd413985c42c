"""Documents and passages as nodes, and finding them by name."""

from typing import Any

import pytest
from django.db import connection
from hypothesis import given
from hypothesis import strategies as st

from accounts.models import Workspace
from documents.ingestion.sources import text_source
from documents.models import Collection, Document, IngestionRun
from documents.services import ingest_inline
from documents.tests.factories import ChunkFactory, CollectionFactory, DocumentFactory
from graph import services
from graph.extraction.normalized_names import normalize_name
from graph.models import Mention
from graph.node_ids import document_addresses, document_id, passage_address, passage_id
from graph.reading.search import _parameters
from graph.reading.vertices import load_sql
from graph.scopes import AccessFilter, GraphScope
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


def named(workspace: Workspace, *names: str) -> None:
    for name in names:
        make_node(
            f"ent:name:{normalize_name(name)}",
            workspace=workspace,
            name=name,
            form=normalize_name(name),
        )


def found(scope: GraphScope, text: str, **options: object) -> list[str]:
    return [vertex.name for vertex in services.find_nodes(scope=scope, text=text, **options)]


def test_what_is_called_so_comes_first_then_what_begins_so_then_what_holds_it(
    workspace: Workspace, scope: GraphScope
) -> None:
    named(workspace, "Lady Ada", "Adam Smith", "Ada", "Ada Lovelace", "Bob")
    assert found(scope, "ada") == ["Ada", "Adam Smith", "Ada Lovelace", "Lady Ada"]
    assert found(scope, "ADA", limit=2) == ["Ada", "Adam Smith"]
    assert found(scope, "a") == ["Ada", "Adam Smith", "Ada Lovelace"]


def test_a_misspelt_name_finds_what_is_like_it(workspace: Workspace, scope: GraphScope) -> None:
    named(workspace, "Ada Lovelace", "Charles Babbage")
    assert found(scope, "Lovelacce") == ["Ada Lovelace"]
    assert found(scope, "Xylophone") == []


def test_a_node_is_found_by_its_aliases_and_its_id(workspace: Workspace, scope: GraphScope) -> None:
    make_node("src:crm:4711", workspace=workspace, name="Big Customer", form="the whale")
    assert found(scope, "the wh") == []
    make_node(
        "src:crm:4712",
        workspace=workspace,
        name="Small Customer",
        form=normalize_name("Minnow Ltd"),
    )
    assert found(scope, "minnow") == ["Small Customer"]
    assert found(scope, "src:crm:4711") == ["Big Customer"]
    assert found(scope, "src:crm:") == ["Big Customer", "Small Customer"]


def test_documents_are_found_by_their_titles_and_passages_by_their_id(
    workspace: Workspace, scope: GraphScope
) -> None:
    collection = CollectionFactory(workspace=workspace, slug="notes")
    chunk = ChunkFactory(
        document=DocumentFactory(collection=collection, key="a.txt", title="The Analytical Engine")
    )
    assert found(scope, "analytical") == ["The Analytical Engine"]
    assert found(scope, "Analitical") == ["The Analytical Engine"]
    assert found(scope, "analytical", kinds=["node"]) == []
    assert found(scope, "doc:notes:a.txt") == [chunk.document.title]
    (passage,) = services.find_nodes(scope=scope, text="chunk:notes:a.txt:0")
    assert passage.kind == "chunk"


def test_labels_narrow_what_is_found(workspace: Workspace, scope: GraphScope) -> None:
    make_node("a", workspace=workspace, name="Mercury", labels=["Planet", "Place"], form="mercury")
    make_node("b", workspace=workspace, name="Mercury", labels=["Metal"])
    DocumentFactory(collection=CollectionFactory(workspace=workspace), title="Mercury")
    found = services.find_nodes(scope=scope, text="mercury", labels=["Planet"])
    assert [vertex.id for vertex in found] == ["a"]
    found = services.find_nodes(scope=scope, text="mercury", labels=["Metal", "Document"])
    assert [vertex.kind for vertex in found] == ["document", "node"]
    assert services.find_nodes(scope=scope, text="a", labels=["Metal"]) == ()


@pytest.mark.parametrize(
    "text", ["", "  ", "\0", "%", "_", "\\", "'", "%(text)s", "x" * 10_000, "\ud800"]
)
def test_anything_may_be_typed(workspace: Workspace, scope: GraphScope, text: str) -> None:
    named(workspace, "Ada")
    assert found(scope, text) == []


def test_names_with_marks_of_patterns_are_found_by_them(
    workspace: Workspace, scope: GraphScope
) -> None:
    make_node("x", workspace=workspace, name="100%_sure\\")
    make_node("y", workspace=workspace, name="1000 sure")
    assert found(scope, "100%_s") == ["100%_sure\\"]


def test_every_list_is_read_from_an_index(workspace: Workspace, scope: GraphScope) -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            """
            WITH made AS (
                INSERT INTO graph_node (
                    workspace_id, key, name, labels, props, origin, created_at, updated_at)
                SELECT %(workspace)s, 'ent:name:' || word, word, '{}', '{}', 'given', now(), now()
                FROM (SELECT md5(number::text) AS word FROM generate_series(1, 5000) AS number)
                RETURNING id, name
            )
            INSERT INTO graph_alias (workspace_id, form, node_id)
            SELECT %(workspace)s, name, id FROM made
            """,
            {"workspace": workspace.pk},
        )
        cursor.execute("SELECT gin_clean_pending_list('node_name_index')")  # as vacuum does
        cursor.execute("ANALYZE graph_node, graph_alias")
        cursor.execute("SET LOCAL enable_seqscan = off")  # whatever the table's size
        seen = AccessFilter(scope)
        statement = load_sql("find_nodes").format(node=seen.node("node"), labels="TRUE")
        given = seen.parameters | _parameters("cfcd208", "cfcd208", (), 10)
        cursor.execute(f"EXPLAIN {statement}", given)
        plan = "\n".join(line for (line,) in cursor.fetchall())
    assert "Seq Scan on graph_" not in plan
    for index in ("node_name_index", "alias_workspace_form_unique", "node_workspace_key_unique"):
        assert index in plan


def test_statistics_tell_what_a_graph_is_made_of(workspace: Workspace, scope: GraphScope) -> None:
    collection = CollectionFactory(workspace=workspace)
    chunk = ChunkFactory(document=DocumentFactory(collection=collection))
    ada = make_extracted("ent:name:ada", chunk, labels=["Person"], name="Ada")
    bob = make_node("bob", workspace=workspace, labels=["Person", "Owner"])
    thing = make_node("thing", workspace=workspace)
    make_mention(chunk, bob)
    for rel, target in (("KNOWS", ada), ("OWNS", thing), ("OWNS", bob)):
        make_edge(bob, rel, target)
    told = services.graph_statistics(scope=scope)
    assert (told.nodes, told.edges, told.documents, told.sampled) == (3, 3, 1, False)
    assert told.origins == {"given": 2, "extracted": 1}
    assert told.labels == {"Person": 2, "Owner": 1}
    assert told.rels == {"OWNS": 2, "KNOWS": 1}
    assert [(each.vertex.id, each.degree) for each in told.best_connected] == [
        ("bob", 3),
        ("ent:name:ada", 1),
        ("thing", 1),
    ]
