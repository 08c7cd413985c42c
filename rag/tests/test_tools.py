"""The tools as a chat model calls them: text for text, and never more than its user may."""

import json
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from accounts.models import Membership
from common.errors import NotFound
from common.tools import ToolAnswer
from documents.models import Chunk
from documents.tests.factories import (
    ChunkFactory,
    CollectionFactory,
    DocumentFactory,
    MembershipFactory,
)
from graph.tests.factories import make_node
from inference.backends.hashing import HashingEmbedder
from inference.cancellation import Cancelled
from inference.interfaces import BackendUnavailable
from rag.context import RagContext
from rag.tools import TOOLS, call, schemas, tools_for

pytestmark = pytest.mark.django_db

SEARCHING = ("similarity_search", "hybrid_query")
READING = (
    *SEARCHING,
    "search_words",
    "search_vector",
    "get_document",
    "list_collections",
    "list_tables",
    "summarize_document",
    "query_tables",
)
OF_GRAPH = ("graph_find", "graph_neighbors", "graph_path")
OF_ALL = ("index_document", "remove_document", "graph_upsert")
OF_MEMORY = (
    "memory_search",
    "remember",
    "archive_turn",
    "clear_memory",
    "set_fact",
    "get_fact",
    "has_fact",
    "get_all_facts",
    "clear_fact",
    "history",
)
#: What each tool needs at least.
ARGUMENTS: dict[str, dict[str, Any]] = {
    "similarity_search": {"query": "lighthouse"},
    "hybrid_query": {"query": "lighthouse"},
    "search_words": {"query": "lighthouse"},
    "search_vector": {"vector": [1.0] * 384},
    "get_document": {"id": "log.md"},
    "summarize_document": {"id": "log.md"},
    "query_tables": {"question": "How many lighthouses are there?"},
    "remove_document": {"id": "log.md", "collection": "notes"},
    "index_document": {"id": "new", "content": "A new note.", "collection": "notes"},
    "memory_search": {"query": "lighthouse"},
    "remember": {"question": "Who keeps it?", "answer": "Mara."},
    "archive_turn": {"user_message": "Hello"},
    "clear_memory": {"question": "Who keeps it?"},
    "set_fact": {"key": "city", "value": "Bergen"},
    "get_fact": {"key": "city"},
    "has_fact": {"key": "city"},
    "clear_fact": {"key": "city"},
    "history": {"key": "city"},
    "graph_find": {"text": "mara"},
    "graph_neighbors": {"id": "src:mara"},
    "graph_path": {"source": "src:mara", "target": "src:light"},
    "graph_upsert": {"nodes": [{"id": "src:mara", "name": "Mara"}]},
}


def context_of(member: Membership, **narrowed: Any) -> RagContext:
    return RagContext(user=member.user, workspace=member.workspace, **narrowed)


def run(name: str, context: RagContext, /, **arguments: Any) -> ToolAnswer:
    return call(name, {**ARGUMENTS.get(name, {}), **arguments}, context=context)


def text_of(name: str, context: RagContext, /, **arguments: Any) -> str:
    answer = run(name, context, **arguments)
    assert not answer.is_error, answer.text
    return answer.text


@pytest.fixture
def alice() -> Membership:
    """An owner, with two collections."""
    alice = MembershipFactory()
    notes = CollectionFactory(workspace=alice.workspace, slug="notes", name="Notes")
    log = DocumentFactory(collection=notes, key="log.md", title="The log")
    ChunkFactory(document=log, text="The lighthouse burns oil.", heading_path=["Light"], page=3)
    other = CollectionFactory(workspace=alice.workspace, slug="other", name="Other")
    far = DocumentFactory(collection=other, key="far.md", title="Far")
    ChunkFactory(document=far, text="A lighthouse far away.")
    for key in ("src:mara", "src:light"):
        make_node(key, workspace=alice.workspace)
    return alice


@pytest.fixture
def context(alice: Membership) -> RagContext:
    return context_of(alice)


def test_the_tools_say_what_they_do_and_take() -> None:
    assert set(TOOLS) == {*READING, *OF_GRAPH, *OF_ALL, *OF_MEMORY}
    for tool in TOOLS.values():
        Draft202012Validator.check_schema(tool.parameters)
        assert json.loads(json.dumps(tool.parameters))["additionalProperties"] is False
        assert tool.description.endswith(".")
        assert all("description" in field for field in tool.parameters["properties"].values())


def test_a_chat_model_is_told_of_each(context: RagContext) -> None:
    told = schemas(tools_for(context, ["get_document", "list_tables"]))
    assert [tool["name"] for tool in told] == ["get_document", "list_tables"]
    assert told[0]["parameters"] == TOOLS["get_document"].parameters


@pytest.mark.parametrize("field", ["scope", "user", "workspace", "collections", "context"])
def test_no_tool_lets_the_model_choose_for_whom(context: RagContext, field: str) -> None:
    for name in TOOLS:
        answer = run(name, context, **{field: "bob"})
        assert answer.is_error, name
        assert field in answer.text


@pytest.mark.parametrize("name", sorted(TOOLS))
def test_each_tool_answers_its_user(context: RagContext, name: str) -> None:
    text_of(name, context)


def test_passages_are_told_with_the_number_that_cites_them(context: RagContext) -> None:
    told = text_of("hybrid_query", context, query="oil", collection="notes")
    [passage] = context.found.passages
    assert told == (
        "Found 1 relevant documents:\n"
        "\n"
        f"--- Document 1 (score: {passage.fused:.3f}) ---\n"
        '[1] "The log > Light", page 3, collection "notes", id "log.md"\n'
        "| The lighthouse burns oil."
    )


def test_a_passage_keeps_its_number_over_several_calls(context: RagContext) -> None:
    first = text_of("similarity_search", context, query="lighthouse", collection="other")
    second = text_of("hybrid_query", context, query="lighthouse")
    read = text_of("get_document", context, id="log.md")
    assert '[1] "Far"' in first
    assert '[1] "Far"' in second
    assert '[2] "The log > Light"' in second
    assert "[2] page 3\n| The lighthouse" in read
    assert [passage.number for passage in context.found.passages] == [1, 2]


def test_nothing_found_is_said_in_so_many_words(context: RagContext) -> None:
    assert text_of("hybrid_query", context, query='"no such phrase"') == (
        "No similar documents found."
    )
    assert text_of("similarity_search", context, filter={"year": 1}) == (
        "No similar documents found."
    )


@pytest.mark.parametrize("name", SEARCHING)
def test_no_more_are_told_than_asked_for(context: RagContext, name: str) -> None:
    told = text_of(name, context, k=1)
    assert told.startswith("Found 1 relevant documents:")
    assert told.count("--- Document") == 1


def test_a_long_document_is_read_in_parts(alice: Membership, context: RagContext) -> None:
    notes = alice.workspace.collections.get(slug="notes")
    book = DocumentFactory(collection=notes, key="book.md", title="Book")
    for number in range(30):
        ChunkFactory(document=book, text=f"{number} ".rjust(1000, "x"))

    first = text_of("get_document", context, id="book.md")
    assert first.startswith('Document "Book", collection "notes", characters 0 to 20000 of 30000:')
    assert first.endswith("There is more: read on with start 20000.")
    second = text_of("get_document", context, id="book.md", start=20_000)
    assert "characters 20000 to 30000 of 30000" in second
    assert "There is more" not in second
    assert "no text behind" in text_of("get_document", context, id="book.md", start=30_000)
    assert len(context.found.passages) == 30


def test_what_two_passages_share_is_read_once(alice: Membership, context: RagContext) -> None:
    notes = alice.workspace.collections.get(slug="notes")
    document = DocumentFactory(collection=notes, key="two.md")
    ChunkFactory(document=document, text="One. Two.", start=0, end=9)
    ChunkFactory(document=document, text="Two. Three.", start=5, end=16)
    told = text_of("get_document", context, id="two.md")
    assert "| One. Two.\n" in told
    assert "|  Three." in told
    assert told.count("Two.") == 1


def test_a_name_that_two_collections_know_is_asked_back(
    alice: Membership, context: RagContext
) -> None:
    DocumentFactory(collection=alice.workspace.collections.get(slug="other"), key="log.md")
    answer = run("get_document", context)
    assert answer.is_error
    assert "notes, other" in answer.text
    assert "The log" in text_of("get_document", context, collection="notes")


def test_collections_are_listed_with_their_documents(context: RagContext) -> None:
    assert text_of("list_collections", context) == (
        'Found 2 collection(s):\n1. "notes" ("Notes"), 1 document(s)\n'
        '2. "other" ("Other"), 1 document(s)'
    )


def test_tables_are_listed_with_their_columns(alice: Membership, context: RagContext) -> None:
    notes = alice.workspace.collections.get(slug="notes")
    columns = [{"name": "id", "type": "INT"}, {"name": "revenueEur", "type": "DECIMAL"}]
    for table, database in (("crm.revenue", "shop"), ("crm.visit", "web")):
        metadata = {"kind": "table", "database": database, "columns": columns}
        DocumentFactory(collection=notes, key=table, metadata=metadata)
    told = text_of("list_tables", context)
    assert told.splitlines()[:2] == [
        "Found 2 table(s):",
        '1. "crm.revenue", table of database "shop", collection "notes": "id", "revenueEur"',
    ]
    assert "crm.visit" not in text_of("list_tables", context, database="shop")
    assert "crm.revenue" not in text_of("list_tables", context, name_contains="VISIT")


def test_what_is_indexed_is_found_at_once(context: RagContext) -> None:
    said = text_of("index_document", context, content="Keepers drink chicory.", metadata={"y": 1})
    assert said == 'Indexed: "new" in collection "notes". It can be searched now.'
    assert "Keepers drink chicory." in text_of("hybrid_query", context, query="chicory")
    assert "chicory" in text_of("similarity_search", context, query="chicory", filter="y=1")
    again = text_of("index_document", context, content="Keepers drink chicory.", metadata={"y": 1})
    assert again.startswith('Unchanged: "new"')


def test_several_are_indexed_at_once_and_removed(context: RagContext) -> None:
    into = {"id": None, "content": None, "collection": "notes"}
    several = [{"id": "a", "content": "Gulls."}, {"id": "b", "content": "Terns.", "title": "Birds"}]
    said = text_of("index_document", context, documents=several, **into)
    assert said.startswith('Indexed 2 of 2 documents in collection "notes"')
    texts = ["Seals sleep on the quay.", "Otters swim."]
    text_of("index_document", context, texts=texts, id_prefix="animals", **into)
    assert 'id "animals:0"' in text_of("search_words", context, query="seals")
    assert text_of("remove_document", context, id="animals:0") == (
        'Removed: "animals:0" from collection "notes".'
    )
    assert "animals:0" not in text_of("search_words", context, query="seals")
    answer = run("remove_document", context, id="animals:0")
    assert answer.is_error
    assert 'no document "animals:0"' in answer.text


def test_chunks_and_texts_as_json_are_indexed(context: RagContext) -> None:
    into = {"id": None, "content": None, "collection": "notes"}
    chunk = {"chunk_id": "seals_chunk_1", "chunk_text": "Seals sleep on the quay."}
    described = {**chunk, "metadata": {"chapter_title": "Animals", "section_title": "Seals"}}
    said = text_of("index_document", context, chunks=[described], **into)
    assert said == 'Indexed: "seals_chunk_1" in collection "notes". It can be searched now.'
    stored = Chunk.objects.get(document__key="seals_chunk_1")
    assert (stored.text, stored.heading_path) == (chunk["chunk_text"], ["Animals", "Seals"])
    texts = json.dumps(["Otters swim.", "Herons wade."])
    text_of("index_document", context, texts_json=texts, id_prefix="animals", **into)
    assert 'id "animals:1"' in text_of("search_words", context, query="herons")
    wrapped = json.dumps({"chunks": [{"text": "Gulls cry.", "year": 2020}]})
    first = text_of("index_document", context, texts_json=wrapped, **into)
    again = text_of("index_document", context, texts_json=wrapped, **into)
    assert again == first.replace("Indexed", "Unchanged")
    assert "Gulls cry." in text_of("similarity_search", context, query="gulls", filter="year=2020")


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"texts_json": "["}, "not valid JSON"),
        ({"texts_json": "{}"}, "list of 1 to 100"),
        ({"texts_json": "[]"}, "list of 1 to 100"),
        ({"texts_json": "[1]"}, "needs a text"),
        ({"chunks": [{"chunk_id": "x"}]}, "needs a text"),
        ({"chunks": [{"text": "x", "metadata": [1]}]}, "metadata"),
        ({"chunks": [{"text": "x"}], "texts": ["y"]}, "or chunks"),
    ],
)
def test_chunks_that_cannot_be_are_refused(context: RagContext, given: Any, said: str) -> None:
    none = {"id": None, "content": None}
    answer = run("index_document", context, **none, **given, collection="notes")
    assert answer.is_error
    assert said in answer.text


def test_a_vector_of_ones_own_finds_what_is_nearest(context: RagContext) -> None:
    chunk = Chunk.objects.get(document__key="log.md")
    told = text_of("search_vector", context, vector=list(map(float, chunk.embedding)), k=1)
    assert "(score: 1.000)" in told
    assert "The lighthouse burns oil." in told


def test_the_collection_need_not_be_named_where_there_is_one(context: RagContext) -> None:
    answer = run("index_document", context, collection=None)
    assert answer.is_error
    assert "notes, other" in answer.text
    alone = RagContext(user=context.user, workspace=context.workspace, collections=("other",))
    assert 'collection "other"' in text_of("index_document", alone, collection=None)


class Broken(HashingEmbedder):
    """A model that is out of order."""

    def embed_query(self, text: str, instruction: str | None = None) -> Any:
        raise BackendUnavailable("the model host does not answer; start it.")

    def embed_documents(self, texts: Any) -> Any:
        raise BackendUnavailable("the model host does not answer; start it.")


@pytest.fixture
def broken_embedder(settings: Any) -> None:
    path = f"{__name__}.Broken"
    settings.INFERENCE = {"embedder": {"default": {"BACKEND": path}}, "reranker": {}}


@pytest.mark.parametrize("name", SEARCHING)
def test_words_are_searched_where_the_model_is_down_and_that_is_said(
    context: RagContext, broken_embedder: None, name: str
) -> None:
    told = text_of(name, context, query="oil")
    assert told.startswith("Found 1 relevant documents:")
    assert "| The lighthouse burns oil." in told
    assert told.endswith("these hold the words of the query.")


def test_what_cannot_be_embedded_is_not_said_to_be_indexed(
    context: RagContext, broken_embedder: None
) -> None:
    answer = run("index_document", context)
    assert answer.is_error
    assert "try again later" in answer.text
    assert "not found" in run("get_document", context, id="new").text


def test_a_document_that_is_stored_once_is_read_under_both_ids(
    alice: Membership, context: RagContext
) -> None:
    notes = alice.workspace.collections.get(slug="notes")
    original = notes.documents.get(key="log.md")
    DocumentFactory(collection=notes, key="copy.md", title="Copy", duplicate_of=original)
    filtered = context_of(alice, filter={"language": "en"})
    for reader in (context, filtered):
        assert "burns oil" in text_of("get_document", reader, id="copy.md")


def test_arguments_may_be_the_text_that_a_model_sent(context: RagContext) -> None:
    told = call("hybrid_query", '{"query": "oil", "filter": null}', context=context)
    assert told.text.startswith("Found 2 relevant")
    assert call("list_collections", "", context=context).text.startswith("Found 2 collection(s)")


def test_nothing_is_begun_for_whoever_has_gone(context: RagContext) -> None:
    context.cancelled.set()
    with pytest.raises(Cancelled):
        run("index_document", context)
    assert not context.workspace.collections.get(slug="notes").documents.filter(key="new").exists()


def test_a_tool_that_does_not_exist_is_the_callers_mistake(context: RagContext) -> None:
    with pytest.raises(NotFound, match="similarity_search"):
        call("drop_table", {}, context=context)
    with pytest.raises(NotFound, match="similarity_search"):
        tools_for(context, ["drop_table"])
