"""A passage that a person changes: what it told is forgotten, and what it tells is read."""

import pytest

from documents.ingestion.sources import text_source
from documents.models import Chunk, Document
from documents.services import edit_chunk, ingest_inline
from documents.tests.factories import CollectionFactory
from graph.extraction import worker
from graph.models import Extraction, Mention, Node

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("media_root")]


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
