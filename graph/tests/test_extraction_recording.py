"""Documents that are loaded or edited are read, and the graph holds exactly what they say now."""

from typing import Any

import pytest

from documents.ingestion.sources import text_source
from documents.models import Chunk, Collection, Document, IngestionRun
from documents.services import edit_chunk, ingest_inline, update_collection
from documents.tests.factories import CollectionFactory
from graph.extraction import queue, worker
from graph.extraction.mentions import Extraction as Found
from graph.extraction.mentions import Mention as FoundMention
from graph.extraction.mentions import Relation
from graph.extraction.worker import DocumentReading, load_documents
from graph.models import Alias, Edge, Evidence, Extraction, Mention, Node
from graph.querysets import Origin
from graph.services.extraction import extract_waiting, extraction_state, reextract_collection
from graph.tests.factories import make_edge, make_node
from graph.tests.factories_extraction import waiting

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("media_root")]
State = Extraction.State
TEXT = "Ada Lovelace wrote notes on the Analytical Engine. See [setup](setup.md) and has_chat()."


def ingest(collection: Collection, key: str, text: str, **declared: Any) -> IngestionRun:
    return ingest_inline(collection=collection, sources=[text_source(key, text, **declared)])


def stored(collection: Collection) -> set[tuple[str, str, int, int, int]]:
    """Every mention by what identifies it."""
    rows = Mention.objects.filter(chunk__collection=collection)
    columns = "chunk__document__key", "node__key", "kind", "count", "start"
    return set(rows.values_list(*columns))


def keys() -> set[str]:
    return set(Node.objects.values_list("key", flat=True))


def record(
    document: Document, *found: FoundMention, relations: tuple[Relation, ...] = ()
) -> list[int]:
    """Record this of a document, whoever read it."""
    Extraction.objects.filter(document=document).update(
        state=State.WAITING, due_at=document.created_at
    )
    claim = queue.claim(queue.due_documents([document.pk]))
    assert claim is not None
    [stored] = load_documents([document.pk])
    return worker.record_readings(claim, [DocumentReading(stored, Found(found, relations), "test")])


def named(form: str, **fields: Any) -> FoundMention:
    return FoundMention(0, form, form.title(), fields.pop("type", "name"), **fields)


def test_what_is_ingested_is_read_and_counted_on_the_run(collection: Collection) -> None:
    run = ingest(collection, "docs/guide.md", TEXT)
    run.refresh_from_db()
    assert {"ent:name:ada lovelace", "ent:code:has chat", "ref:/docs/setup"} <= keys()
    row = Extraction.objects.get()
    assert (row.state, row.recipe, row.error) == (State.DONE, "rules 2", "")
    assert row.mentions == run.mentions == Mention.objects.count() > 3
    assert row.run == run
    assert extraction_state(collection=collection).done == 1


def test_what_prose_calls_by_name_is_no_code(collection: Collection) -> None:
    ingest(collection, "a.md", "Type `python` first.\n\n# Why\n\nIt runs on Python here.")
    assert Node.objects.get(aliases__form="python").labels == ["name"]


def test_reading_by_newer_rules_corrects_what_earlier_ones_took_for_names(
    collection: Collection,
) -> None:
    ingest(collection, "a.md", "Set `password` for Ada Lovelace.")
    Node.objects.filter(aliases__form="password").update(name="PASSWORD", labels=["name"])
    Node.objects.filter(aliases__form="ada lovelace").update(labels=["Person"])

    reextract_collection(collection=collection)
    extract_waiting(collection=collection)
    assert Node.objects.get(aliases__form="password").labels == ["name"], "by the same rules"

    Extraction.objects.update(recipe="rules 0")
    reextract_collection(collection=collection, only_stale=True)
    extract_waiting(collection=collection)
    password = Node.objects.get(aliases__form="password")
    assert (password.name, password.labels) == ("password", ["code"])
    assert Node.objects.get(aliases__form="ada lovelace").labels == ["Person"], "as people had it"


def test_reading_again_changes_nothing(collection: Collection) -> None:
    run = ingest(collection, "docs/guide.md", TEXT)
    before = stored(collection), keys(), set(Node.objects.values_list("pk", flat=True))
    run.refresh_from_db()
    found = run.mentions
    assert reextract_collection(collection=collection) == 1
    assert extract_waiting(collection=collection) == 1
    assert (stored(collection), keys(), set(Node.objects.values_list("pk", flat=True))) == before
    run.refresh_from_db()
    assert run.mentions == found
    assert Alias.objects.count() == Node.objects.count()


def test_links_meet_the_documents_they_lead_to_in_any_order(collection: Collection) -> None:
    ingest(collection, "docs/guide.md", "See [setup](setup.md).")
    ingest(collection, "docs/setup.md", "Back to [the guide](./guide.md#start).")
    for key in ("setup", "guide"):
        node = Node.objects.get(key=f"ref:/docs/{key}")
        kinds = set(node.mentions.values_list("kind", flat=True))
        assert kinds == {Mention.Kind.SELF, Mention.Kind.LINK}


def test_tables_meet_by_their_foreign_keys_within_their_database() -> None:
    references = [{"columns": ["user"], "references": "public.users"}]
    table = {"kind": "table", "schema": "public"}
    orders, users, others = (
        {**table, "database": "shop", "table": "orders", "foreign_keys": references},
        {**table, "database": "shop", "table": "users"},
        {**table, "database": "forum", "table": "users"},
    )
    collection = CollectionFactory()
    for metadata in (orders, users, others):
        waiting("A table.", collection=collection, metadata=metadata)
    extract_waiting(collection=collection)
    kinds = Node.objects.get(key="ent:table:shop/public.users").mentions
    assert set(kinds.values_list("kind", flat=True)) == {Mention.Kind.SELF, Mention.Kind.LINK}
    assert Node.objects.get(key="ent:table:forum/public.users").mentions.count() == 1


def test_merged_nodes_stay_merged(collection: Collection) -> None:
    [document] = waiting("ABC")
    kept = make_node("ent:name:united states", workspace=document.workspace, form="usa")
    Alias.objects.create(workspace=document.workspace, node=kept, form="united states")
    record(document, named("usa", count=2, start=9, end=12), named("united states", kind="heading"))
    [mention] = Mention.objects.all()
    assert (mention.node, mention.count, mention.kind) == (kept, 3, Mention.Kind.HEADING)
    assert keys() == {"ent:name:united states"}


def test_a_node_that_was_given_is_met_by_its_id() -> None:
    [document] = waiting("ABC")
    given = make_node("ent:name:ada", workspace=document.workspace, name="The Countess")
    record(document, named("ada"))
    assert Mention.objects.get().node == given
    record(document)
    assert Node.objects.get() == given


def test_relations_are_edges_with_their_sentence() -> None:
    [document] = waiting("Ada wrote Notes.")
    ends = named("ada"), named("notes")
    record(document, *ends, relations=(Relation(0, "ada", "WROTE", "notes", 0, 15),))
    edge = Edge.objects.get()
    assert (edge.source.key, edge.rel, edge.target.key) == (
        "ent:name:ada",
        "WROTE",
        "ent:name:notes",
    )
    assert edge.origin == Origin.EXTRACTED
    assert Evidence.objects.values_list("edge", "start", "end").get() == (edge.pk, 0, 15)
    assert Extraction.objects.get().relations == 1


def test_relations_that_are_not_found_again_go_and_those_of_others_stay() -> None:
    first, second = waiting("Ada wrote Notes.", "Ada wrote Notes, too.")
    ends = named("ada"), named("notes")
    wrote = Relation(0, "ada", "WROTE", "notes")
    read = Relation(0, "ada", "READ", "notes")
    record(first, *ends, relations=(wrote, read))
    record(second, *ends, relations=(wrote,))
    record(first)
    assert list(Edge.objects.values_list("rel", flat=True)) == ["WROTE"]
    record(second)
    assert not Edge.objects.exists()
    assert not Node.objects.exists()


def test_an_edge_that_was_given_outlives_its_evidence() -> None:
    [document] = waiting("Ada wrote Notes.")
    ada = make_node("ent:name:ada", workspace=document.workspace, form="ada")
    notes = make_node("ent:name:notes", workspace=document.workspace, form="notes")
    given = make_edge(ada, "WROTE", notes, props={"in": 1843})
    record(
        document, named("ada"), named("notes"), relations=(Relation(0, "ada", "WROTE", "notes"),)
    )
    assert Evidence.objects.get().edge == given
    record(document)
    assert Edge.objects.get().props == {"in": 1843}


def test_what_two_names_of_one_node_say_of_each_other_is_no_edge() -> None:
    [document] = waiting("The USA is the United States.")
    node = make_node("ent:name:usa", workspace=document.workspace, form="usa")
    Alias.objects.create(workspace=document.workspace, node=node, form="united states")
    said = Relation(0, "usa", "SAME_AS", "united states")
    record(document, named("usa"), named("united states"), relations=(said,))
    assert not Edge.objects.exists()


def test_a_document_that_was_loaded_meanwhile_waits_again() -> None:
    [document] = waiting("Ada")
    claim = queue.claim(queue.due_documents([document.pk]))
    assert claim is not None
    [read] = load_documents([document.pk])
    Extraction.objects.update(state=State.WAITING, token=None)
    assert (
        worker.record_readings(claim, [DocumentReading(read, Found((named("ada"),)), "test")]) == []
    )
    assert Extraction.objects.get().state == State.WAITING
    assert not Node.objects.exists()


def test_passages_that_changed_meanwhile_are_not_recorded() -> None:
    [document] = waiting("Ada")
    claim = queue.claim(queue.due_documents([document.pk]))
    assert claim is not None
    [read] = load_documents([document.pk])
    Chunk.objects.all()._raw_delete("default")
    assert (
        worker.record_readings(claim, [DocumentReading(read, Found((named("ada"),)), "test")]) == []
    )
    assert not Node.objects.exists()


def test_turning_the_graph_off_forgets_what_was_found(collection: Collection) -> None:
    run = ingest(collection, "a", TEXT)
    update_collection(collection=collection, graph="off")
    assert (Node.objects.count(), Extraction.objects.count()) == (0, 0)
    run.refresh_from_db()
    assert run.mentions == 0
    ingest(collection, "b", TEXT)
    assert not Node.objects.exists()
    assert reextract_collection(collection=collection) == 0
    update_collection(collection=collection, graph="rules")
    assert extract_waiting(collection=collection) == 2


def test_only_what_was_read_by_another_recipe_is_read_again(collection: Collection) -> None:
    ingest(collection, "a", "Ada Lovelace.")
    ingest(collection, "b", "Grace Hopper.")
    Extraction.objects.filter(document__key="b").update(recipe="rules 0")
    assert extraction_state(collection=collection).stale == 1
    assert reextract_collection(collection=collection, only_stale=True) == 1
    assert extract_waiting(collection=collection) == 1
    assert extraction_state(collection=collection).stale == 0


def test_a_second_message_does_nothing() -> None:
    [document] = waiting("Ada Lovelace met Charles Babbage.")
    assert worker.extract([document.pk]).read == 1
    assert worker.extract([document.pk]).read == 0


def test_dates_are_known_by_their_iso_form() -> None:
    [document] = waiting("Born on 12 March 1943, and again on 1943-03-12, in 1999.")
    assert worker.extract([document.pk]).read == 1
    dates = Node.objects.filter(labels=["date"])
    assert set(dates.values_list("key", flat=True)) == {"ent:date:1943-03-12", "ent:date:1999"}
    assert set(dates.values_list("aliases__form", flat=True)) == {"1943 03 12", "1999"}


def names() -> set[str]:
    return set(Node.objects.values_list("name", flat=True))


def test_what_only_the_former_text_named_goes_at_once_and_the_new_is_read() -> None:
    text = "Ada Lovelace wrote to Charles Babbage about the Analytical Engine."
    ingest_inline(collection=CollectionFactory(), sources=[text_source("letter", text)])
    assert {"Ada Lovelace", "Charles Babbage"} <= names()
    chunk = Chunk.objects.get()
    edit_chunk(chunk=chunk, text=text.replace("Charles Babbage", "Mary Somerville"))
    assert "Charles Babbage" not in names()
    assert not Mention.objects.filter(chunk=chunk).exists()
    assert Extraction.objects.get().state == Extraction.State.WAITING
    worker.extract([Document.objects.get().pk])
    assert {"Ada Lovelace", "Mary Somerville"} <= names()
    assert set(Mention.objects.values_list("chunk", flat=True)) == {chunk.pk}
