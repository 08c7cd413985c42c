"""What a tool does for whom: by membership, role, key, access list and what a request leaves."""

from typing import Any

import pytest

from accounts.models import Membership, Role
from common.errors import NotFound
from common.tools import ToolAnswer
from documents.models import Document
from documents.tests.factories import (
    ChunkFactory,
    CollectionFactory,
    DocumentFactory,
    MembershipFactory,
)
from graph.tests.factories import make_extracted, make_mention, make_node
from memory.models import Fact
from rag.context import RagContext
from rag.tests.test_tools import OF_ALL, OF_GRAPH, OF_MEMORY, READING, run, text_of
from rag.tools import tools_for

pytestmark = pytest.mark.django_db

NOTHING = "No similar documents found."
WRITING = {
    "index_document": {"id": "new", "content": "A new note.", "collection": "notes"},
    "remove_document": {"id": "log.md", "collection": "notes"},
    "graph_upsert": {"nodes": [{"id": "src:new"}]},
}


@pytest.fixture
def alice() -> Membership:
    """An owner. Notes for all, a plan for her alone, and another collection."""
    alice = MembershipFactory()
    notes = CollectionFactory(workspace=alice.workspace, slug="notes")
    ChunkFactory(document=DocumentFactory(collection=notes, key="log.md"), text="Lamp oil.")
    plan = DocumentFactory(
        collection=notes, key="plan.md", title="Plan", access=[f"user:{alice.user.pk}"],
        metadata={"kind": "table", "database": "secret"},
    )  # fmt: skip
    ChunkFactory(document=plan, text="The secret lamp.")
    other = CollectionFactory(workspace=alice.workspace, slug="other")
    table = DocumentFactory(
        collection=other, key="lamps", metadata={"kind": "table", "database": "shop"}
    )
    ChunkFactory(document=table, text="Table of lamps.", metadata={"kind": "table"})
    for key in ("src:mara", "src:light"):
        make_node(key, workspace=alice.workspace)
    return alice


def context_of(member: Membership, **narrowed: Any) -> RagContext:
    return RagContext(user=member.user, workspace=member.workspace, **narrowed)


def error_of(name: str, context: RagContext, **arguments: Any) -> str:
    answer = run(name, context, **arguments)
    assert answer.is_error, answer.text
    return answer.text


def is_missing(answer: ToolAnswer) -> bool:
    return answer.is_error and answer.text.startswith("Error: Document not found")


# --- members and others ---------------------------------------------------------------------------


def test_another_workspace_of_ones_own_is_another_world(alice: Membership) -> None:
    elsewhere = context_of(MembershipFactory(user=alice.user))
    assert text_of("hybrid_query", elsewhere, query="lamp") == NOTHING
    assert is_missing(run("get_document", elsewhere, id="log.md"))
    assert run("index_document", elsewhere, **WRITING["index_document"]).is_error
    text_of("set_fact", context_of(alice), key="city", value="Bergen")
    assert "not found" in text_of("get_fact", elsewhere, key="city")


# --- access lists ---------------------------------------------------------------------------------


# --- keys -----------------------------------------------------------------------------------------


# --- what a request leaves ------------------------------------------------------------------------


def test_collections_of_a_request_narrow_every_tool(alice: Membership) -> None:
    context = context_of(alice, collections=("other",))
    assert "oil" not in text_of("hybrid_query", context, query="lamp oil", k=50)
    assert "oil" not in text_of("similarity_search", context, query="lamp oil", k=50)
    assert is_missing(run("get_document", context, id="log.md"))
    assert text_of("list_collections", context).count("\n") == 1
    assert "plan.md" not in text_of("list_tables", context)
    for name in ("hybrid_query", "similarity_search", "get_document", "list_tables"):
        answer = run(name, context, collection="notes")
        assert answer.is_error, name
        assert "other" in answer.text
    written = run("index_document", context, **WRITING["index_document"])
    assert written.is_error
    assert "Choose one of: other." in written.text


def test_they_narrow_what_the_graph_shows(alice: Membership) -> None:
    [log] = Document.objects.filter(key="log.md")
    [lamps] = Document.objects.filter(key="lamps")
    spy = make_extracted("ent:name:spy", log.chunks.get(), name="Spy")
    given = make_node("src:lamp", workspace=alice.workspace, name="Lamp")
    make_mention(log.chunks.get(), given)
    make_mention(lamps.chunks.get(), given)
    whole, narrowed = context_of(alice), context_of(alice, collections=("other",))

    assert "Found 1" in text_of("graph_find", whole, text="spy")
    assert "Found 0" in text_of("graph_find", narrowed, text="spy")
    assert "not found" in error_of("graph_neighbors", narrowed, id=spy.key)
    assert "log.md" in text_of("graph_neighbors", whole, id="src:lamp")
    beside = text_of("graph_neighbors", narrowed, id="src:lamp")
    assert "lamps" in beside
    assert "log.md" not in beside
    path = {"source": "doc:notes:log.md", "target": "doc:other:lamps"}
    assert "Found a way" in text_of("graph_path", whole, **path)
    assert "not found" in error_of("graph_path", narrowed, **path)


def test_a_filter_of_a_request_holds_in_every_tool(alice: Membership) -> None:
    context = context_of(alice, filter={"kind": "table"})
    assert "oil" not in text_of("hybrid_query", context, query="lamp oil", k=50)
    assert "lamps" in text_of("hybrid_query", context, query="lamp oil", filter={"kind": "table"})
    assert is_missing(run("get_document", context, id="log.md"))
    assert "Table of lamps." in text_of("get_document", context, id="lamps")
    assert text_of("list_tables", context).startswith("Found 1 table(s)")
    for name in OF_GRAPH:
        answer = run(name, context)
        assert answer.is_error
        assert "hybrid_query" in answer.text
    offered = {tool.name for tool in tools_for(context)}
    assert offered == {*READING, *OF_MEMORY, *OF_ALL}


def test_a_filter_of_the_model_cannot_widen_that_of_the_request(alice: Membership) -> None:
    context = context_of(alice, filter={"kind": "table"})
    wider = {"$or": [{"kind": "table"}, {"language": "en"}, {"kind": None}]}
    for name in ("hybrid_query", "similarity_search", "search_words"):
        assert "oil" not in text_of(name, context, query="lamp oil", filter=wider, k=50)


def test_collections_that_are_gone_are_named(alice: Membership) -> None:
    context = context_of(alice, collections=("gone",))
    answer = run("hybrid_query", context, query="lamp")
    assert answer.is_error
    assert "“gone”" in answer.text


# --- memory ---------------------------------------------------------------------------------------


def test_a_program_remembers_for_its_own_users(alice: Membership) -> None:
    for_kim = context_of(alice, memory_user="kim")
    text_of("set_fact", for_kim, key="city", value="Oslo")
    assert Fact.objects.get().user_id == "kim"
    assert "Oslo" in text_of("get_fact", for_kim, key="city")
    assert "not found" in text_of("get_fact", context_of(alice), key="city")
    viewer = MembershipFactory(workspace=alice.workspace, role=Role.VIEWER)
    answer = run("get_fact", context_of(viewer, memory_user="kim"), key="city")
    assert answer.is_error


def test_names_of_tools_are_checked_whoever_asks(alice: Membership) -> None:
    with pytest.raises(NotFound):
        tools_for(RagContext(user=MembershipFactory().user, workspace=alice.workspace), ["nothing"])
