"""How a collection's chunker reaches its chunks, and what a change of it does."""

from itertools import groupby

import pytest

from documents.ingestion.items import Item
from documents.ingestion.sources import text_source
from documents.models import Chunk, Collection, IngestionRun
from documents.services import document_text, ingest_inline, store_items, update_collection
from documents.tests.factories import CollectionFactory

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("media_root")]

TOPICS = ("The heart pumps blood through its valves.", "Income tax is paid each year.")
TEXT = "\n\n".join(" ".join(f"{sentence} ({n})." for n in range(12)) for sentence in TOPICS * 3)


def ingest(collection: Collection, text: str = TEXT) -> IngestionRun:
    return ingest_inline(collection=collection, sources=[text_source("doc", text)])


def chunks(collection: Collection) -> list[Chunk]:
    return list(Chunk.objects.filter(collection=collection).order_by("ordinal"))


def counts(run: IngestionRun) -> tuple[int, int, int]:
    return run.ready, run.skipped, run.failed


def test_a_change_of_the_chunker_cuts_unchanged_files_anew() -> None:
    collection = CollectionFactory()
    assert counts(ingest(collection)) == (1, 0, 0)
    before = chunks(collection)
    assert counts(ingest(collection)) == (0, 1, 0)

    update_collection(
        collection=collection, chunker="window", chunker_options={"size": 4, "step": 4}
    )
    assert chunks(collection) == before, "nothing is cut before it is ingested"
    assert counts(ingest(collection)) == (1, 0, 0)
    after = chunks(collection)
    assert len(after) > len(before)
    assert document_text(after[0].document).text.split() == TEXT.split()
    assert counts(ingest(collection)) == (0, 1, 0)


def test_a_change_that_cuts_alike_embeds_nothing_and_keeps_the_chunks() -> None:
    collection = CollectionFactory()
    ingest(collection)
    before = chunks(collection)
    update_collection(collection=collection, chunker="recursive")
    run = ingest(collection)
    assert (run.ready, run.embedded) == (1, 0)
    assert chunks(collection) == before


def test_parts_of_a_passage_share_a_number_that_moves_with_them() -> None:
    options = {"max_tokens": 40, "parent_tokens": 160}
    collection = CollectionFactory(chunker="parent_child", chunker_options=options)
    ingest(collection)
    before = chunks(collection)
    families = [list(family) for _, family in groupby(before, key=lambda chunk: chunk.parent)]
    assert [family[0].parent for family in families] == list(range(len(families)))
    assert len(families) > 2
    assert all(sum(chunk.token_count for chunk in family) <= 160 for family in families)

    preface = " ".join(f"A preface is put before it, number {n}." for n in range(30))
    run = ingest(collection, f"{preface}\n\n{TEXT}")
    parents = {chunk.pk: chunk.parent for chunk in chunks(collection)}
    kept = [chunk for chunk in before if chunk.pk in parents]
    assert kept
    assert run.embedded == len(parents) - len(kept)
    assert parents[kept[-1].pk] > kept[-1].parent
    assert list(parents.values()) == sorted(parents.values())


@pytest.mark.parametrize("as_items", [False, True], ids=["ingested", "stored"])
def test_texts_are_cut_by_meaning_with_the_models_help(as_items: bool) -> None:
    collection = CollectionFactory(chunker="semantic", chunker_options={"min_tokens": 30})
    if as_items:
        store_items(collection=collection, items=[Item(id="doc", text=TEXT)])
    else:
        ingest(collection)
    found = chunks(collection)
    assert len(found) >= len(TOPICS * 3)
    assert not [chunk for chunk in found if all(topic[:10] in chunk.text for topic in TOPICS)]
