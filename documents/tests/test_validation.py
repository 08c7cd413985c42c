"""`validate` is silent about what ingestion makes, and names whatever is broken by hand."""

import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from django.core.files.base import ContentFile
from django.db import connection, transaction
from django.db.models import F
from django.utils import timezone

from common.checks import check_database
from documents import lexical_index, services
from documents.ingestion.items import Item
from documents.ingestion.sources import text_source
from documents.ingestion.vector_indexes import drop_index
from documents.models import (
    Chunk,
    ChunkTokens,
    Collection,
    Document,
    IngestionItem,
    IngestionRun,
    LexicalSegment,
    StagedDocument,
)
from documents.tests.commands import run_command
from documents.tests.factories import (
    ChunkFactory,
    CollectionFactory,
    DocumentFactory,
    ItemFactory,
    RunFactory,
    WorkspaceFactory,
)
from documents.validation import validate

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("media_root")]

PARAGRAPHS = "\n\n".join(f"Paragraph {n} speaks of topic{n}. " * 25 for n in range(8))
LONG_AGO = timezone.now() - timedelta(days=1)


@pytest.fixture
def collection() -> Collection:
    """Two ingested documents of several chunks, whose words are counted."""
    collection = CollectionFactory(default_language="en")
    sources = [text_source("one", PARAGRAPHS), text_source("two", PARAGRAPHS.replace("s", "z"))]
    services.ingest_inline(collection=collection, sources=sources)
    return collection


def problems(collection: Collection | None = None) -> dict[str, int]:
    report = validate(collection_id=collection.pk if collection else None)
    return {finding.check.name: finding.count for finding in report.findings}


def of(collection: Collection, key: str = "one") -> Document:
    return Document.objects.get(collection=collection, key=key)


def change(there: Collection, ordinal: int = 1, **values: Any) -> None:
    of(there).chunks.filter(ordinal=ordinal).update(**values)


def change_document(collection: Collection, **values: Any) -> None:
    Document.objects.filter(pk=of(collection).pk).update(**values)


def change_run(collection: Collection, **values: Any) -> None:
    IngestionRun.objects.filter(collection=collection).update(**values)


def drop_chunk(collection: Collection, ordinal: int) -> None:
    chunks = of(collection).chunks.filter(ordinal=ordinal)
    lexical_index.forget_words(chunks)
    chunks.delete()


def other_space() -> Any:
    return services.add_space(name="other")[0]


def without_index(collection: Collection) -> None:
    """Which would refuse a vector of other dimensions."""
    with connection.cursor() as cursor:
        cursor.execute(collection.space.sql.drop_index())


def open_run(collection: Collection, **values: Any) -> IngestionRun:
    run = RunFactory(collection=collection, **values)
    IngestionRun.objects.filter(pk=run.pk).update(updated_at=LONG_AGO)
    return run


def test_nothing_is_wrong_with_what_ingestion_makes(collection: Collection) -> None:
    services.ingest_inline(
        collection=collection, sources=[text_source("one", PARAGRAPHS + "\n\nAnother end.")]
    )
    services.store_items(
        collection=collection,
        items=[Item(id="vector", vector=np.ones(384)), Item(id="text", text="A note.")],
    )
    upload = services.Upload(name="three.txt", file=ContentFile(b"It waits for a worker."))
    services.ingest_uploads(collection=collection, uploads=[upload])
    services.delete_document(document=of(collection, "two"))
    assert problems() == {}


def finished_run(collection: Collection, **values: Any) -> IngestionRun:
    return RunFactory(
        collection=collection, state="succeeded", finished_at=timezone.now(), **values
    )


def overwrite_overlap(collection: Collection) -> None:
    """The first character of a chunk is one that the chunk before it ends with, too."""
    before, chunk = of(collection).chunks.order_by("ordinal")[:2]
    assert chunk.start < before.end
    change(collection, text="#" + chunk.text[1:])
    lexical_index.index_pending(collection.pk)


BROKEN: dict[str, Callable[[Collection], Any]] = {
    "document_counts": lambda c: change_document(c, chunk_count=1),
    "ready_without_chunks": lambda c: DocumentFactory(collection=c),
    "chunk_ordinals": lambda c: (
        drop_chunk(c, 1),
        Document.objects.filter(pk=of(c).pk).update(
            chunk_count=F("chunk_count") - 1,
            token_count=sum(of(c).chunks.values_list("token_count", flat=True)),
        ),
    ),
    "document_stuck": lambda c: ItemFactory(
        run=open_run(c, total=1),
        document=DocumentFactory(
            collection=c, status="processing", claimed_by=None, claimed_until=LONG_AGO
        ),
    ),
    "document_claim_left": lambda c: change_document(c, claimed_by="0" * 32),
    "document_duplicate_of": lambda c: change_document(c, duplicate_of=of(c)),
    "staged_not_waiting": lambda c: StagedDocument.objects.create(
        workspace=c.workspace, document=of(c), payload=b""
    ),
    "chunk_workspace": lambda c: change(c, workspace=WorkspaceFactory()),
    "chunk_access": lambda c: change(c, access=["user:1"]),
    "chunk_media_type": lambda c: change(c, media_type="text/html"),
    "chunk_is_current": lambda c: change(c, is_current=False),
    "chunk_without_vector": lambda c: change(c, embedding=None),
    "chunk_space": lambda c: change(c, space=other_space()),
    "chunk_offsets": lambda c: change(c, of(c).chunk_count - 1, end=F("end") + 1),
    "chunk_overlap": overwrite_overlap,
    "vector_dimensions": lambda c: (without_index(c), change(c, embedding=[1.0, 2.0])),
    "vector_unusable": lambda c: change(c, embedding=[0.0] * 384),
    "former_space_missing": lambda c: Collection.objects.filter(pk=c.pk).update(
        former_spaces=[987654]
    ),
    "run_counters": lambda c: change_run(c, ready=7),
    "run_state": lambda c: change_run(c, state="running"),
    "run_finished_too_early": lambda c: ItemFactory(
        run=finished_run(c, total=1), document=DocumentFactory(collection=c, status="queued")
    ),
    "run_not_closed": open_run,
    "run_abandoned": lambda c: open_run(c, total=3),
    "item_open_for_nothing": lambda c: ItemFactory(
        run=RunFactory(collection=c, total=1), document=of(c)
    ),
    "document_workspace": lambda c: DocumentFactory(
        collection=c, workspace=WorkspaceFactory(), status="failed"
    ),
    "ingestionrun_workspace": lambda c: change_run(c, workspace=WorkspaceFactory()),
    "ingestionitem_workspace": lambda c: IngestionItem.objects.filter(run__collection=c).update(
        workspace=WorkspaceFactory()
    ),
    "lexicalsegment_workspace": lambda c: c.lexical_segments.update(workspace=WorkspaceFactory()),
    "chunktokens_workspace": lambda c: ChunkTokens.objects.create(
        chunk=Chunk.objects.filter(collection=c)[0], workspace=WorkspaceFactory(), model="letters"
    ),
    "lexical_index": lambda c: c.lexical_segments.update(total_length=1),
}
#: What goes with it: a run of another workspace has items of another workspace.
#: What the graph knows of them is elsewhere then, too.
ALONGSIDE = {
    "ingestionrun_workspace": {"ingestionitem_workspace"},
    "chunk_workspace": {"mention_workspace"},
}


@contextmanager
def broken(collection: Collection, check: str) -> Iterator[None]:
    """The collection is broken in this way until the block ends."""
    with transaction.atomic():
        BROKEN[check](collection)
        yield
        transaction.set_rollback(True)


def test_what_is_broken_is_named(collection: Collection) -> None:
    other = CollectionFactory()
    for check in BROKEN:
        with broken(collection, check):
            assert set(problems()) == {check} | ALONGSIDE.get(check, set()), check
            assert check in problems(collection)
            assert problems(other) == {}, check


def test_another_version_of_the_collation_is_named(collection: Collection) -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE pg_database SET datcollversion = '2.28' WHERE datname = current_database()"
        )
    assert problems() == {"collation_version": 1}
    assert problems(collection) == {}
    (message,) = check_database(databases=["default"])
    assert message.id == "common.W004"
    assert "REFRESH COLLATION VERSION" in str(message.hint)


def test_the_words_of_chunks_that_are_in_no_index_are_named(collection: Collection) -> None:
    LexicalSegment.objects.filter(collection=collection).delete()
    assert problems() == {"lexical_index": 1}


def test_chunks_of_a_document_must_come_in_the_order_of_their_texts(collection: Collection) -> None:
    first = of(collection).chunks.get(ordinal=0)
    change(collection, ordinal=0, start=first.start + 9000, end=first.end + 9000)
    assert problems() == {"chunk_order": 1}


def test_a_chunk_of_another_collection_than_its_document_is_named(collection: Collection) -> None:
    other = CollectionFactory(workspace=collection.workspace)
    change(collection, collection=other)
    assert problems()["chunk_collection"] == 1
    assert problems(collection)["chunk_collection"] == 1


def test_what_is_safe_to_mend_is_mended(collection: Collection) -> None:
    for check in (
        *("document_counts", "document_stuck", "staged_not_waiting", "chunk_access"),
        *("chunk_media_type", "chunk_is_current", "former_space_missing", "run_counters"),
        *("run_not_closed", "run_abandoned", "chunktokens_workspace", "lexical_index"),
    ):
        with broken(collection, check):
            report = validate(fix=True)
            assert check in report.fixed
            assert report.findings == (), check


def test_mending_a_collection_leaves_others_alone(collection: Collection) -> None:
    change_document(collection, chunk_count=1)
    assert validate(collection_id=CollectionFactory().pk, fix=True).fixed == {}
    assert problems() == {"document_counts": 1}


def test_a_recount_takes_the_chunks_for_true(collection: Collection) -> None:
    right = (of(collection).chunk_count, of(collection).token_count)
    change_document(collection, chunk_count=0, token_count=1)
    validate(fix=True)
    assert (of(collection).chunk_count, of(collection).token_count) == right


def test_a_command_that_died_is_ended_with_what_it_did(collection: Collection) -> None:
    run = open_run(collection, total=256)
    ItemFactory(run=run, document=of(collection), state="ready")
    IngestionRun.objects.filter(pk=run.pk).update(ready=1)
    validate(fix=True)
    run.refresh_from_db()
    assert (run.state, run.total, run.is_finished) == ("partial", 1, True)


def test_a_run_at_work_is_no_problem(collection: Collection) -> None:
    run = RunFactory(collection=collection, total=300)
    document = DocumentFactory(collection=collection, status="queued")
    ItemFactory(run=run, document=document)
    assert problems() == {}


def stored(media_root: Path, collection: Collection) -> Path:
    upload = services.Upload(name="three.txt", file=ContentFile(b"It waits for a worker."))
    services.ingest_uploads(collection=collection, uploads=[upload])
    return media_root / of(collection, "three.txt").file.name


def test_a_stored_file_that_is_gone_is_named(collection: Collection, media_root: Path) -> None:
    stored(media_root, collection).unlink()
    assert problems() == {"file_missing": 1}
    assert problems(collection) == {"file_missing": 1}


def test_a_file_of_nobody_goes_once_it_is_older_than_an_hour(
    collection: Collection, media_root: Path
) -> None:
    file = stored(media_root, collection)
    orphan = file.with_name("999999")
    orphan.write_bytes(b"of nobody")
    assert problems() == {}  # it may be of an upload that has not ended
    os.utime(orphan, (0, 0))
    assert problems() == {"file_unknown": 1}
    validate(fix=True)
    assert not orphan.exists()
    assert file.exists()


@pytest.mark.django_db(transaction=True)
def test_a_large_space_without_its_index_is_named_and_gets_one(settings: Any) -> None:
    settings.EXACT_SCAN_CHUNKS = 2
    document = DocumentFactory(title="", collection__graph="off")
    for _ in range(3):
        ChunkFactory(document=document)
    lexical_index.index_pending(document.collection_id)
    assert problems() == {}
    drop_index(document.collection.space)
    report = validate()
    assert [(f.check.name, f.examples) for f in report.findings] == [
        ("space_index", ("minilm-384",))
    ]
    assert problems(document.collection) == {"space_index": 1}
    other, _ = services.add_space(name="other")
    assert problems(CollectionFactory(space=other)) == {}
    assert validate(fix=True).is_clean


def test_two_current_versions_are_named_should_the_constraint_be_gone(
    collection: Collection,
) -> None:
    with connection.cursor() as cursor:
        cursor.execute("DROP INDEX document_current_key_unique")
    DocumentFactory(collection=collection, key="one", version=2, status="failed")
    assert problems() == {"document_current_versions": 1}


def test_the_command_exits_with_0_or_3_and_says_the_cure(collection: Collection) -> None:
    code, said = run_command("validate")
    assert (code, said.startswith("clean: ")) == (0, True)
    change(collection, embedding=None)
    chunk = Chunk.objects.get(embedding=None)
    code, said = run_command("validate")
    assert code == 3
    assert f"chunk_without_vector: 1 chunks ({chunk.pk}) of ready documents have no vector" in said
    assert "reindex" in said


def test_a_program_reads_what_was_looked_for_found_and_fixed(collection: Collection) -> None:
    change_document(collection, chunk_count=1)
    code, said = run_command("validate", "--json")
    report = json.loads(said)
    assert (code, report["clean"]) == (3, False)
    assert [(p["check"], p["count"], p["examples"]) for p in report["problems"]] == [
        ("document_counts", 1, [of(collection).pk])
    ]
    assert {"searchlog_orphans", "vector_unusable"} < set(report["checks"])
    code, said = run_command("validate", "--json", "--fix")
    assert (code, json.loads(said)["fixed"]) == (0, {"document_counts": 1})


def test_checks_have_one_name_each() -> None:
    names = validate().checks
    assert len(names) > 35
    assert len(set(names)) == len(names)
