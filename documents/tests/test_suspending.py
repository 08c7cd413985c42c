"""Bulk loading without the vector index, which is there again afterwards."""

import pytest

from common.errors import Conflict
from documents.ingestion.sources import text_source
from documents.ingestion.vector_indexes import index_states
from documents.models import IngestionRun
from documents.services import build_space_index, ingest_inline
from documents.tests.factories import CollectionFactory

pytestmark = pytest.mark.django_db(transaction=True)

SOURCES = [text_source(str(number), f"Passage {number} of many.") for number in range(20)]


def test_the_index_is_away_while_loading_and_valid_afterwards() -> None:
    collection = CollectionFactory()
    build_space_index(space=collection.space)
    seen: list[object] = []

    def look(run: IngestionRun) -> None:
        seen.append(index_states([collection.space]).get(collection.space_id))

    run = ingest_inline(
        collection=collection, sources=SOURCES, suspend_index=True, on_progress=look
    )
    assert run.ready == len(SOURCES)
    assert set(seen) == {None}
    assert index_states([collection.space])[collection.space_id].valid


def test_the_index_comes_back_when_loading_fails() -> None:
    collection = CollectionFactory()
    build_space_index(space=collection.space)

    def fail(run: IngestionRun) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        ingest_inline(collection=collection, sources=SOURCES, suspend_index=True, on_progress=fail)
    assert index_states([collection.space])[collection.space_id].valid


def test_the_index_of_a_space_that_others_search_stays() -> None:
    collection = CollectionFactory()
    other = CollectionFactory(workspace=collection.workspace, slug="other", space=collection.space)
    build_space_index(space=collection.space)
    ingest_inline(collection=other, sources=SOURCES)
    with pytest.raises(Conflict, match="spaces add"):
        ingest_inline(collection=collection, sources=SOURCES, suspend_index=True)
    assert index_states([collection.space])[collection.space_id].valid
    assert not collection.runs.exists()
