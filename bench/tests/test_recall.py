"""`bench.site recall` on real servers, small."""

import json
from io import StringIO

import pytest
from django.core.management import CommandError, call_command

from accounts.models import Workspace
from bench.measure_site import Command
from documents.models import Chunk, EmbeddingSpace
from documents.tests.factories import ChunkFactory, DocumentFactory

pytestmark = pytest.mark.django_db(transaction=True)


def test_every_filter_gets_what_an_exact_scan_gets_and_nothing_stays() -> None:
    document = DocumentFactory()
    before = {ChunkFactory(document=document, text=f"word{n} is here").pk for n in range(30)}
    out = StringIO()
    call_command(Command(), "recall", chunks=2000, queries=3, json=True, stdout=out)
    cases = {case["name"]: case for case in json.loads(out.getvalue())}
    assert cases["everything, no filter"]["matching"] == 2000
    assert cases["collection small"]["matching"] == 20
    assert 0 < cases["1.00% by metadata"]["matching"] < 60
    assert all(case["complete"] and case["recall"] >= 0.99 for case in cases.values())
    assert set(Chunk.objects.values_list("pk", flat=True)) == before
    assert EmbeddingSpace.objects.count() == 1
    assert not Workspace.objects.filter(slug="recall-measurement").exists()


def test_a_site_without_documents_is_told_what_to_do() -> None:
    with pytest.raises(CommandError, match="Ingest some documents first"):
        call_command(Command(), "recall")
