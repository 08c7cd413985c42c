"""Broken vectors are made anew, one by one or all, and everything else stays."""

import json
from typing import Any

import numpy as np
import pytest
from django.core.management import CommandError, call_command

from documents import services
from documents.ingestion.items import Item
from documents.ingestion.sources import text_source
from documents.ingestion.vector_indexes import drop_index, index_states
from documents.models import Chunk, Collection
from documents.tests.commands import run_command
from documents.tests.factories import CollectionFactory
from documents.validation import validate

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("media_root")]

TEXT = "\n\n".join(f"Paragraph {n} speaks of topic{n}. " * 25 for n in range(8))


@pytest.fixture
def collection() -> Collection:
    collection = CollectionFactory(slug="notes", default_language="en")
    sources = [text_source("one", TEXT), text_source("two", TEXT.replace("s", "z"))]
    services.ingest_inline(collection=collection, sources=sources)
    return collection


def vectors(collection: Collection) -> dict[int, Any]:
    rows = Chunk.objects.filter(collection=collection).values_list("id", "embedding")
    return {pk: None if vector is None else np.asarray(vector) for pk, vector in rows}


def damage(collection: Collection, count: int = 2) -> list[int]:
    ids = list(Chunk.objects.filter(collection=collection).values_list("id", flat=True)[:count])
    Chunk.objects.filter(pk__in=ids[:1]).update(embedding=None)
    Chunk.objects.filter(pk__in=ids[1:]).update(embedding=[0.0] * 384)
    return ids


def same(before: dict[int, Any], after: dict[int, Any]) -> bool:
    return before.keys() == after.keys() and all(
        np.array_equal(before[pk], after[pk]) for pk in before
    )


def test_named_chunks_get_the_vectors_that_they_had(collection: Collection) -> None:
    before = vectors(collection)
    ids = damage(collection)
    code, said = run_command("reindex", "--chunk-ids", ",".join(map(str, ids)))
    assert (code, said) == (0, "2 chunks embedded; words of 1 collection counted\n")
    assert same(before, vectors(collection))
    assert validate().is_clean


def test_unknown_chunks_are_named_and_the_others_done(collection: Collection) -> None:
    before = vectors(collection)
    (pk,) = damage(collection, 1)
    code, said = run_command("reindex", "--chunk-ids", f"{pk}, 999999999")
    assert code == 1
    assert "999999999: there is no such chunk" in said
    assert same(before, vectors(collection))


def test_a_chunk_in_a_space_that_is_not_searched_comes_into_the_collections(
    collection: Collection,
) -> None:
    before = vectors(collection)
    space, _ = services.add_space(name="other")
    pk = min(before)
    Chunk.objects.filter(pk=pk).update(space=space)
    assert run_command("reindex", "--chunk-ids", str(pk))[0] == 0
    assert Chunk.objects.get(pk=pk).space_id == collection.space_id
    assert validate().is_clean


def test_a_vector_without_text_cannot_be_made_again(collection: Collection) -> None:
    services.store_items(collection=collection, items=[Item(id="vector", vector=np.ones(384))])
    lonely = Chunk.objects.get(document__key="vector")
    (damaged,) = damage(collection, 1)
    code, said = run_command("reindex", "--chunk-ids", f"{lonely.pk},{damaged}")
    assert code == 1
    assert f"{lonely.pk}: the model has no usable vector for its text" in said
    assert np.array_equal(vectors(collection)[lonely.pk], np.ones(384))
    assert vectors(collection)[damaged] is not None


def test_a_document_or_collection_is_embedded_only_when_asked(collection: Collection) -> None:
    before = vectors(collection)
    damage(collection)
    document = str(Chunk.objects.get(embedding=None).document_id)
    workspace = ("--workspace", collection.workspace.slug)
    assert run_command("reindex", "--document", document)[0] == 0
    assert run_command("reindex", "--collection", "notes", *workspace)[0] == 0
    assert not validate().is_clean
    code, said = run_command("reindex", "--document", document, "--embed", "--json")
    assert (code, json.loads(said)["embedded"]) == (0, len(before) // 2)
    assert validate().is_clean
    damage(collection)
    assert run_command("reindex", "--collection", "notes", "--embed", *workspace)[0] == 0
    assert same(before, vectors(collection))


def test_the_index_of_words_is_built_anew(collection: Collection) -> None:
    assert collection.lexical_segments.update(total_length=1) > 0
    assert not validate().is_clean
    run_command("reindex", "--collection", "notes", "--workspace", collection.workspace.slug)
    assert validate().is_clean


@pytest.mark.django_db(transaction=True)
def test_the_vector_index_is_built_anew(collection: Collection) -> None:
    arguments = ("--collection", "notes", "--workspace", collection.workspace.slug, "--index")
    assert "index of minilm-384 built" in run_command("reindex", *arguments)[1]
    drop_index(collection.space)
    assert "index of minilm-384 built" in run_command("reindex", *arguments)[1]
    assert index_states([collection.space])[collection.space_id].valid


@pytest.mark.parametrize(
    "arguments",
    [
        ("--chunk-ids", "one"),
        ("--chunk-ids", ""),
        ("--chunk-ids", "99999999999999999999"),
        ("--document", "123456789"),
        ("--collection", "nowhere"),
        (),
        ("--chunk-ids", "1", "--document", "2"),
    ],
)
def test_what_cannot_be_is_refused(arguments: tuple[str, ...]) -> None:
    with pytest.raises(CommandError):
        call_command("reindex", *arguments)
