"""Files that questions to tables are tried on."""

from pathlib import Path

import pytest

from documents.ingestion.sources import discover
from documents.models import Collection
from documents.services import ingest_inline
from documents.tests.factories import CollectionFactory


@pytest.fixture(scope="module")
def corpus(shared_rows: None) -> Collection:
    """Files in English, German and Spanish: CSV, Excel, HTML, Markdown; the same for all tests of a
    module."""
    folder = Path(__file__).with_name("corpus")
    collection: Collection = CollectionFactory()
    files = [path for path in sorted(folder.iterdir()) if path.suffix != ".toml"]
    ingest_inline(collection=collection, sources=discover(files))
    return collection
