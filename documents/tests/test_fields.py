"""Lookups that differ from Django's."""

import pytest
from django.db import connection
from django.db.models import Q
from django.test.utils import CaptureQueriesContext

from documents.models import Document
from documents.tests.factories import CollectionFactory, DocumentFactory

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize("others", [0, 200])
def test_few_and_many_values_find_the_same_rows(others: int) -> None:
    first, second = CollectionFactory(), CollectionFactory()
    rows = [DocumentFactory(collection=first, key=f"a{{}}'\\,\"{n}") for n in range(3)]
    DocumentFactory(collection=second)
    pks = [rows[0].pk, rows[2].pk, *range(10**9, 10**9 + others)]
    keys = [rows[1].key, *(f"none {n}" for n in range(others))]
    collections = [first.pk, *range(10**9, 10**9 + others)]
    documents = Document.objects.order_by("pk")
    assert list(documents.filter(pk__in=pks)) == [rows[0], rows[2]]
    assert list(documents.filter(pk__in=[None, *pks])) == [rows[0], rows[2]]
    assert list(documents.filter(key__in=keys)) == [rows[1]]
    assert list(documents.filter(collection__in=collections)) == rows
    assert list(documents.filter(collection__in=[first, *[second] * others])[:3]) == rows
    assert list(documents.filter(Q(pk__in=pks) & ~Q(key__in=[rows[0].key, *keys]))) == [rows[2]]
    assert not documents.filter(pk__in=[2**70 + n for n in range(others)]).exists()


def test_many_values_are_one_parameter() -> None:
    with CaptureQueriesContext(
        connection,
    ) as asked:
        list(Document.objects.filter(pk__in=range(500)))
    assert "ANY" in asked[0]["sql"]
