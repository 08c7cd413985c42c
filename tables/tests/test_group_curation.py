"""Curators say which tables are asked together, and which of their columns are the same."""

from datetime import date
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from accounts.models import Membership, Role, User
from common.errors import Conflict, InvalidInput
from documents.models import Collection
from documents.services import update_document
from documents.tests.factories import MembershipFactory
from tables.asking import ask_tables
from tables.groups import curation, meaning
from tables.models import Table, TableGroup, TableLayout
from tables.tests.test_groups import add, commit, group_of, layout_of

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("media_root")]

SUM = "Date|Item|Amount (EUR)"
OTHER = "Date|Item|Cash out (EUR)"


@pytest.fixture
def first(collection: Collection) -> Table:
    return add(collection, "a.md", SUM, [["2026-01-01", "Ink", "5"]])


@pytest.fixture
def second(first: Table) -> Table:
    """Perhaps of one shape with the first."""
    return add(first.collection, "b.md", OTHER, [["2026-02-01", "Ink", "7"]])


@pytest.fixture
def editor(collection: Collection) -> User:
    return MembershipFactory(workspace=collection.workspace, role=Role.EDITOR).user


@pytest.fixture
def owner(collection: Collection) -> User:
    return MembershipFactory(workspace=collection.workspace).user


def total() -> Any:
    answer = ask_tables("Total amount", Table.objects.current(), today=date(2026, 12, 31))
    return answer.result.value if answer.result else None


def test_a_suggestion_that_is_accepted_joins_and_teaches(first: Table, second: Table) -> None:
    assert layout_of(second).suggested_positions == [0, 1, 2]
    curation.accept_suggestion(table=second)
    assert group_of(second) == group_of(first)
    assert TableGroup.objects.count() == 1
    assert total() == 12.0
    # The next file with this name of a column, in another order, is no question any more.
    third = add(first.collection, "c.md", "Cash out (EUR)|Item|Date", [["1", "Ink", "2026-03-01"]])
    assert group_of(third) == group_of(first)
    with pytest.raises(Conflict):
        curation.accept_suggestion(table=second)


def test_a_correction_outlives_reading_again(first: Table, second: Table) -> None:
    curation.accept_suggestion(table=second)
    again = add(first.collection, "b.md", OTHER, [["2026-02-01", "Ink", "9"]])
    commit()
    assert again.pk != second.pk
    assert group_of(again) == group_of(first)
    assert total() == 14.0


def test_a_suggestion_that_is_refused_is_none(first: Table, second: Table) -> None:
    curation.refuse_suggestion(table=second)
    layout = layout_of(second)
    assert (layout.suggested_group, layout.refused) == (None, [group_of(first)])
    assert curation.read_group(second, Table.objects.all()).suggestion is None


def test_a_table_that_is_taken_out_stays_out(first: Table) -> None:
    alike = add(first.collection, "b.md", SUM, [["2026-02-01", "Ink", "7"]])
    assert total() == 12.0
    curation.set_apart(table=alike, is_apart=True)
    assert total() != 12.0
    again = add(first.collection, "b.md", SUM, [["2026-02-01", "Ink", "9"]])
    assert again.is_apart
    assert total() not in (12.0, 14.0)
    assert curation.read_group(first, Table.objects.all()).count == 1
    curation.set_apart(table=again, is_apart=False)
    assert total() == 14.0


def test_tables_alike_are_taken_out_together(first: Table) -> None:
    others = [
        add(first.collection, f"{at}.md", "Item|Date|Amount (EUR)", [["Ink", "2026-02-01", "7"]])
        for at in range(2)
    ]
    assert group_of(others[0]) == group_of(first)
    curation.set_apart(table=others[0], is_apart=True, with_alike=True)
    assert group_of(others[0]) == group_of(others[1]) != group_of(first)
    assert total() != 19.0


def test_groups_that_were_parted_are_not_one_by_the_names_of_their_columns(
    first: Table,
) -> None:
    """Though both are called alike: the order of a group is that of its first tables."""
    other = add(first.collection, "b.md", "Item|Date|Amount (EUR)", [["Ink", "2026-02-01", "7"]])
    assert total() == 12.0
    curation.set_apart(table=first, is_apart=True, with_alike=True)
    assert group_of(first) != group_of(other)
    assert total() != 12.0


def test_columns_are_corrected(collection: Collection) -> None:
    first = add(collection, "a.md", "Date|Item|Net|Gross", [["2026-01-01", "Ink", "5", "6"]])
    second = add(collection, "b.md", "Item|Date|Gross|Net", [["Ink", "2026-01-01", "10", "20"]])
    assert layout_of(second).positions == [1, 0, 3, 2]
    curation.set_columns(table=second, means={"Gross": 2, "Net": 3})
    assert layout_of(second).positions == [1, 0, 2, 3]
    tables = Table.objects.all()
    read = curation.read_group(first, tables)
    assert [each.columns for each in read.tables] == [
        ["Date", "Item", "Net", "Gross"],
        ["Date", "Item", "Gross", "Net"],
    ]
    with pytest.raises(InvalidInput, match="Two columns"):
        curation.set_columns(table=second, means={"Gross": 3})
    with pytest.raises(InvalidInput, match="other types"):
        curation.set_columns(table=second, means={"Gross": 0, "Date": None})
    with pytest.raises(InvalidInput, match="no such column"):
        curation.set_columns(table=second, means={"Gross": 9})
    curation.set_columns(table=second, means={"Gross": None})
    assert layout_of(second).positions[2] == 4


def test_units_that_differ_are_not_joined_by_hand(first: Table) -> None:
    dollars = add(first.collection, "b.md", "Date|Item|Amount (USD)", [["2026-01-01", "Ink", "5"]])
    layout = layout_of(dollars)
    layout.suggested_group_id, layout.suggested_positions = group_of(first), [0, 1, 2]
    layout.save()
    with pytest.raises(InvalidInput, match="units"):
        curation.accept_suggestion(table=dollars)
    assert group_of(dollars) != group_of(first)


def test_names_of_invisible_tables_are_not_shown(
    first: Table, second: Table, editor: User, owner: User
) -> None:
    curation.accept_suggestion(table=second)
    update_document(document=second.document, access=[f"user:{owner.pk}"])
    read = curation.read_group(first, Table.objects.visible_to(editor))
    assert (read.count, len(read.tables)) == (1, 1)
    assert "Cash" not in str(read)


def test_a_suggested_group_without_visible_tables_is_not_shown(
    first: Table, second: Table, editor: User, owner: User
) -> None:
    update_document(document=first.document, access=[f"user:{owner.pk}"])
    visible = Table.objects.visible_to(editor)
    assert curation.read_group(second, visible).suggestion is None
    assert not curation.with_suggestions(visible, visible).exists()
    with pytest.raises(Conflict):
        curation.correct(table=second, tables=visible, suggestion="accept")
    assert curation.with_suggestions(visible, Table.objects.all()).get() == second


def test_pages_show_and_correct(client: Client, first: Table, second: Table, editor: User) -> None:
    client.force_login(editor)
    listed = client.get(reverse("tables", args=[first.collection.slug])).content.decode()
    page = reverse("table_group", args=[second.pk])
    assert "Perhaps to be asked together" in listed
    assert page in listed
    shown = client.get(page).content.decode()
    assert "Cash out (EUR)" in shown
    assert "Suggested match" in shown
    change = reverse("table_group_change", args=[second.pk])
    client.post(change, {"act": "accept"})
    assert group_of(second) == group_of(first)
    assert (
        "asked together with 1 other table"
        in client.get(reverse("table", args=[first.pk])).content.decode()
    )
    client.post(change, {"act": "columns", "column-0": "0", "column-1": "1", "column-2": ""})
    assert layout_of(second).positions == [0, 1, 3]
    client.post(change, {"act": "apart"})
    assert Table.objects.get(pk=second.pk).is_apart
    assert "asked alone" in client.get(page).content.decode()
    client.post(change, {"act": "together"})
    assert not Table.objects.get(pk=second.pk).is_apart
    answer = client.post(change, {"act": "dance"}, follow=True)
    assert "Choose what is to change." in answer.content.decode()


def test_viewers_change_nothing(client: Client, first: Table, second: Table) -> None:
    member: Membership = MembershipFactory(workspace=first.workspace, role=Role.VIEWER)
    client.force_login(member.user)
    answer = client.post(reverse("table_group_change", args=[second.pk]), {"act": "accept"})
    assert answer.status_code == 403
    assert group_of(second) != group_of(first)


def test_the_api_reads_and_corrects(
    client: Client, first: Table, second: Table, editor: User
) -> None:
    client.force_login(editor)
    address = f"/api/v1/tables/{second.pk}/group/"
    read = client.get(address).json()
    assert read["suggestion"]["table"] == first.pk
    assert read["suggestion"]["columns"][2] == {
        "column": "Cash out (EUR)",
        "means": "Amount (EUR)",
    }
    json = "application/json"
    after = client.patch(address, {"suggestion": "accept"}, content_type=json).json()
    assert (after["count"], after["suggestion"]) == (2, None)
    assert [each["table"] for each in after["tables"]] == [second.pk, first.pk]
    columns = [{"column": "Cash out (EUR)", "position": None}]
    after = client.patch(address, {"columns": columns}, content_type=json).json()
    assert len(after["columns"]) == 4
    after = client.patch(address, {"apart": True}, content_type=json).json()
    assert (after["is_apart"], after["count"]) == (True, 1)
    refused = client.patch(address, {"suggestion": "refuse"}, content_type=json)
    assert refused.status_code == 409


def test_the_admin_accepts_and_refuses(admin_client: Client, first: Table, second: Table) -> None:
    address = reverse("admin:tables_tablelayout_changelist")
    assert "Cash out (EUR)" in admin_client.get(address).content.decode()
    chosen = {"action": "accept_suggestions", "_selected_action": [layout_of(second).pk]}
    admin_client.post(address, chosen)
    assert group_of(second) == group_of(first)
    groups = admin_client.get(reverse("admin:tables_tablegroup_changelist"))
    assert groups.status_code == 200
    third = add(first.collection, "c.md", "Date|Item|Pots (EUR)", [["2026-01-01", "Ink", "1"]])
    layout = layout_of(third)
    assert layout.suggested_group_id == group_of(first)
    admin_client.post(address, {"action": "refuse_suggestions", "_selected_action": [layout.pk]})
    assert TableLayout.objects.get(pk=layout.pk).refused == [group_of(first)]
    for model, pk in (("tablelayout", layout.pk), ("tablegroup", layout.group_id)):
        page = admin_client.get(reverse(f"admin:tables_{model}_change", args=[pk]))
        assert page.status_code == 200


@pytest.fixture
def nearness(monkeypatch: pytest.MonkeyPatch) -> dict[frozenset[str], float]:
    """How near two names are to the model; others are not."""
    near: dict[frozenset[str], float] = {}

    def compare(collection: Collection, names: list[str]) -> dict[tuple[str, str], float]:
        return {
            (first, second): near.get(frozenset((first, second)), 0.2)
            for first in names
            for second in names
        }

    monkeypatch.setattr(meaning, "_nearness", compare)
    return near


def test_what_is_near_in_meaning_is_suggested_and_not_used(
    first: Table, nearness: dict[frozenset[str], float]
) -> None:
    other = add(
        first.collection, "b.md", "Cash out (EUR)|Thing|Booked", [["7", "Ink", "2026-02-01"]]
    )
    assert layout_of(other).suggested_group is None
    assert meaning.suggest_by_meaning(first.collection) == 0
    nearness |= {
        frozenset(("thing", "item")): 0.9,
        frozenset(("booked", "date")): 0.8,
        frozenset(("cash out", "amount")): 0.8,
    }
    assert meaning.suggest_by_meaning(first.collection) == 1
    suggested = TableLayout.objects.get(suggested_group__isnull=False)
    positions = {layout_of(first).pk: [2, 1, 0], layout_of(other).pk: [2, 1, 0]}
    assert suggested.suggested_positions == positions[suggested.pk]
    assert group_of(other) != group_of(first)
    table = Table.objects.get(fingerprint=suggested.fingerprint)
    curation.refuse_suggestion(table=table)
    assert meaning.suggest_by_meaning(first.collection) == 0


def test_currencies_are_not_near(first: Table, nearness: dict[frozenset[str], float]) -> None:
    add(first.collection, "b.md", "Booked|Thing|Cash (USD)", [["2026-02-01", "Ink", "7"]])
    nearness |= {
        frozenset(("thing", "item")): 1.0,
        frozenset(("booked", "date")): 1.0,
        frozenset(("cash", "amount")): 1.0,
    }
    assert meaning.suggest_by_meaning(first.collection) == 0


def test_an_editor_looks_for_matches(client: Client, first: Table, editor: User) -> None:
    client.force_login(editor)
    address = reverse("table_matches", args=[first.collection.slug])
    answer = client.post(address, follow=True)
    assert "No further match was found." in answer.content.decode()
