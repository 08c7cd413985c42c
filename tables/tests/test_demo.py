"""The questions that the demo suggests are computed rightly while it is loaded as `manage.py demo`
does."""

import pytest

from documents.demo_corpus import (
    DOCS_COLLECTION,
    TABLE_QUESTIONS,
    docs_sources,
    firm_pages,
    firm_sources,
)
from documents.models import Collection
from documents.services import ingest_inline
from documents.tests.factories import CollectionFactory
from tables.asking import ask_tables
from tables.evaluation import evaluate, load_questions
from tables.models import Table

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("media_root")]


def test_all_questions_that_the_demo_suggests_are_computed_rightly(collection: Collection) -> None:
    ingest_inline(collection=collection, sources=firm_sources())
    # Without the scan and the photograph, which have no table, and take seconds to read.
    contracts = [page for page in firm_pages() if str(page.path).endswith("contract.pdf")]
    ingest_inline(collection=collection, sources=contracts)
    docs = CollectionFactory(workspace=collection.workspace, slug=DOCS_COLLECTION)
    ingest_inline(collection=docs, sources=docs_sources())
    questions = load_questions(TABLE_QUESTIONS)
    assert len(questions) == 10
    tables = Table.objects.current()
    asked = evaluate(questions, lambda question: ask_tables(question, tables))
    assert [(each.question, each.found) for each in asked if each.outcome != "right"] == []
