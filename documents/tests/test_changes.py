"""What changed between two versions: numbers first, each paragraph with its passages."""

import pytest
from django.test import Client
from django.urls import reverse

from documents.ingestion.sources import text_source
from documents.models import Collection, Document
from documents.services import ingest_inline
from documents.services.changes import changed_values, find_changes, in_order
from documents.tests.factories import CollectionFactory, MembershipFactory

OLD = """# Leave

Everybody has 28 days of leave a year.

Leave is agreed with your lead.

# Travel

Trains are booked by everybody alone.

Receipts are paid back until 14 March.
"""
NEW = """# Leave

Everybody has 30 days of leave a year.

A day off for moving house is paid.

# Travel

Receipts are paid back until 14 April.

Trains are booked by everybody alone.
"""


def versions(collection: Collection, *texts: str) -> list[Document]:
    for text in texts:
        source = text_source("policy", text, media_type="text/markdown")
        ingest_inline(collection=collection, sources=[source], policy="new_version")
    return list(Document.objects.filter(collection=collection).order_by("version"))


@pytest.mark.parametrize(
    ("before", "after", "values"),
    [
        ("It costs 3.50 euros.", "It costs 4.50 euros.", (("3.50", "4.50"),)),
        ("until 14 March", "until 14 April", (("14 March", "14 April"),)),
        ("vom 3. bis zum 5. Mai", "vom 3. bis zum 6. Mai", (("5", "6"),)),
        ("el 12 de mayo de 2026", "el 12 de mayo de 2027", (("2026", "2027"),)),
        ("ten days", "ten weeks", ()),
    ],
)
def test_numbers_and_dates_that_changed(
    before: str, after: str, values: tuple[tuple[str, str], ...]
) -> None:
    assert changed_values(before, after) == values


@pytest.mark.django_db
def test_changes_name_numbers_first_and_pass_over_what_moved() -> None:
    old, new = versions(CollectionFactory(), OLD, NEW)
    changes = find_changes(old, new)
    assert [(change.kind, change.values) for change in changes] == [
        ("changed", (("28", "30"),)),
        ("changed", (("14 March", "14 April"),)),
        ("removed", ()),
        ("added", ()),
    ]
    for change in changes:
        for document, side in ((old, change.before), (new, change.after)):
            if side is not None:
                assert side.chunk is not None
                assert side.chunk.document_id == document.pk
                place = side.start - side.chunk.start
                assert side.chunk.text[place:].startswith(side.text)
    assert in_order(new, old) == in_order(old, new) == (old, new)
    assert find_changes(new, new) == []


@pytest.mark.django_db
def test_the_page_links_both_versions_and_compares_documents_that_may_be_read(
    client: Client,
) -> None:
    member = MembershipFactory()
    client.force_login(member.user)
    collection = CollectionFactory(workspace=member.workspace)
    old, new = versions(collection, OLD, NEW)
    source = text_source("other", "# Leave\n\nEverybody has 31 days of leave a year.\n")
    ingest_inline(collection=collection, sources=[source])
    other = Document.objects.get(key="other")
    address = reverse("document_compare", args=[collection.slug, new.pk])
    page = client.get(address).content.decode()
    assert "<del>28</del> → <ins>30</ins>" in page
    for document in (old, new):
        assert f"/{document.pk}/?chunk=" in page
    assert client.get(f"{address}?with={other.pk}").status_code == 200
    Document.objects.filter(pk=other.pk).update(access=["group:1"])
    assert client.get(f"{address}?with={other.pk}").status_code == 404
