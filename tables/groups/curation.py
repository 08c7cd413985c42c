"""Groups of tables as their readers see them, and what curators say of them. Begin with
`read_group`. What is decided of one table holds for all of its collection with the same columns,
unless it is taken out alone."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from django.db import transaction
from django.db.models import Exists, OuterRef, QuerySet
from django.utils.translation import gettext

from accounts.audit import Action
from common.errors import Conflict, InvalidInput
from documents.services.audit import record
from tables.groups.headers import read_headers
from tables.groups.matching import GroupMatch
from tables.groups.store import load_groups, lock_groups, place_layout
from tables.models import Table, TableGroup, TableLayout

#: Tables of a group that are listed.
MAX_LISTED = 200


@dataclass(frozen=True, slots=True)
class GroupedColumn:
    """A column of a group, called as most of its tables do."""

    name: str
    type: str
    unit: Annotated[str, "Of numbers: `EUR`, `%`, `kg`. Empty: none is known."]
    position: Annotated[int, "In the group, from 0."]


@dataclass(frozen=True, slots=True)
class GroupedTable:
    """A table of a group."""

    table: Annotated[int, "Its id."]
    name: str
    document: Annotated[int, "Id of its document."]
    document_title: str
    columns: Annotated[
        list[str], "What it calls each of the group's columns; empty where it has none."
    ]


@dataclass(frozen=True, slots=True)
class SuggestedColumn:
    """A column of a table, and that of the suggested group which it may be."""

    column: str
    means: Annotated[str, "Empty: none of them."]


@dataclass(frozen=True, slots=True)
class Suggestion:
    """A group that a table may belong to."""

    table: Annotated[int, "Id of a table of that group."]
    name: str
    document_title: str
    columns: list[SuggestedColumn]


@dataclass(frozen=True, slots=True)
class ReadGroup:
    """The tables that are asked together with a table, as far as the reader may see them."""

    is_apart: Annotated[bool, "Asked alone, because a curator has said so."]
    count: Annotated[int, "Tables that are asked together, with this one."]
    columns: list[GroupedColumn]
    tables: Annotated[list[GroupedTable], "The first two hundred."]
    suggestion: Suggestion | None


def layout_of(table: Table) -> TableLayout | None:
    """How the table is grouped; None before `manage.py tables rebuild` has looked at it."""
    return TableLayout.objects.filter(
        collection=table.collection_id, fingerprint=table.fingerprint
    ).first()


def tables_of_group(group_id: int, tables: QuerySet[Table]) -> QuerySet[Table]:
    """Those of `tables`, the reader's, that are asked as this group."""
    layouts = TableLayout.objects.filter(
        group=group_id, collection=OuterRef("collection"), fingerprint=OuterRef("fingerprint")
    )
    return tables.filter(Exists(layouts), is_current=True, is_apart=False)


def count_together(table: Table, tables: QuerySet[Table]) -> int:
    """How many of `tables`, the reader's, are asked together with this one, without it."""
    layout = layout_of(table)
    if layout is None or table.is_apart:
        return 0
    return tables_of_group(layout.group_id, tables).exclude(pk=table.pk).count()


def with_suggestions(tables: QuerySet[Table], visible: QuerySet[Table]) -> QuerySet[Table]:
    """Those of `tables` for which a group is suggested that has any of `visible`, the reader's."""
    members = visible.filter(
        collection=OuterRef("collection"),
        fingerprint=OuterRef("fingerprint"),
        is_current=True,
        is_apart=False,
    )
    layouts = TableLayout.objects.filter(
        collection=OuterRef("collection"),
        fingerprint=OuterRef("fingerprint"),
        suggested_group__in=TableLayout.objects.filter(Exists(members)).values("group"),
    )
    return tables.filter(Exists(layouts), is_current=True, is_apart=False)


def read_group(table: Table, tables: QuerySet[Table]) -> ReadGroup:
    """The group of a table of which the reader may see `tables`: these alone give it names."""
    layout = layout_of(table)
    members, count = [table], 1
    if layout is not None and not table.is_apart:
        others = tables_of_group(layout.group_id, tables).exclude(pk=table.pk)
        count += others.count()
        rows = others.select_related("document").order_by("document__key", "ordinal")
        members += rows[: MAX_LISTED - 1]
    positions = _positions_of(members)
    columns = _columns(members, positions)
    return ReadGroup(
        is_apart=table.is_apart,
        count=count,
        columns=columns,
        tables=[
            GroupedTable(
                each.pk,
                each.name,
                each.document_id,
                each.document.display_title,
                _names(each, positions[each.pk], [column.position for column in columns]),
            )
            for each in members
        ],
        suggestion=None if layout is None or table.is_apart else _suggestion(table, layout, tables),
    )


def _positions_of(tables: Iterable[Table]) -> dict[int, Sequence[int]]:
    """The positions of the columns of tables in their groups."""
    tables = list(tables)
    found = TableLayout.objects.filter(
        collection__in={table.collection_id for table in tables},
        fingerprint__in={table.fingerprint for table in tables},
    )
    layouts = {
        (collection, name): positions
        for collection, name, positions in found.values_list(
            "collection", "fingerprint", "positions"
        )
    }
    return {
        table.pk: layouts.get(
            (table.collection_id, table.fingerprint), list(range(len(table.columns)))
        )
        for table in tables
    }


def _columns(
    tables: Sequence[Table], positions: Mapping[int, Sequence[int]]
) -> list[GroupedColumn]:
    names: dict[int, Counter[str]] = {}
    types: dict[int, tuple[str, str]] = {}
    for table in tables:
        for position, column in zip(positions[table.pk], table.columns, strict=False):
            names.setdefault(position, Counter())[column["name"]] += 1
            _, unit = types.get(position, ("", ""))
            types[position] = (column["type"], unit or column.get("unit") or "")
    return [
        GroupedColumn(found.most_common(1)[0][0], *types[position], position)
        for position, found in sorted(names.items())
    ]


def _names(table: Table, own: Sequence[int], positions: Iterable[int]) -> list[str]:
    by_position = {
        position: column["name"] for position, column in zip(own, table.columns, strict=False)
    }
    return [by_position.get(position, "") for position in positions]


def _suggestion(table: Table, layout: TableLayout, tables: QuerySet[Table]) -> Suggestion | None:
    """What is suggested, if the reader may see a table of that group."""
    if layout.suggested_group_id is None or layout.suggested_positions is None:
        return None
    rows = tables_of_group(layout.suggested_group_id, tables).select_related("document")
    members = list(rows.order_by("document__key", "ordinal")[:MAX_LISTED])
    if not members:
        return None
    names = {each.position: each.name for each in _columns(members, _positions_of(members))}
    return Suggestion(
        members[0].pk,
        members[0].name,
        members[0].document.display_title,
        [
            SuggestedColumn(column["name"], names.get(position, "") if position is not None else "")
            for column, position in zip(table.columns, layout.suggested_positions, strict=False)
        ],
    )


# What curators do


def _none_suggested() -> Conflict:
    return Conflict(gettext("No group is suggested for this table any more."))


def _locked_layout(table: Table) -> TableLayout:
    """The layout of a table, which nobody else changes until the end of the transaction."""
    lock_groups(table.collection_id)
    layout = layout_of(table)
    if layout is None:
        raise Conflict(gettext("The table is not grouped yet. Run: manage.py tables rebuild"))
    return layout


def _move(
    table: Table, layout: TableLayout, group_id: int | None, positions: Sequence[int | None]
) -> None:
    """Put a layout into a group, by default one of its own; a group that it leaves empty goes."""
    former = layout.group_id
    layout.suggested_group, layout.suggested_positions, layout.is_corrected = None, None, True
    match = None
    if group_id is not None:
        match = GroupMatch(group_id, tuple(positions), is_sure=True, shared=len(positions))
    place_layout(layout, read_headers(table.columns), match)
    TableGroup.objects.filter(pk=former, layouts=None).delete()
    record(Action.CHANGED, table.document, fields=["tables"])


@transaction.atomic
def accept_suggestion(*, table: Table) -> None:
    """Ask the table, and those with the same columns, together with the suggested group. Raises
    Conflict where none is suggested, or its columns have changed."""
    layout = _locked_layout(table)
    positions = layout.suggested_positions
    if layout.suggested_group_id is None or positions is None:
        raise _none_suggested()
    _check_columns(table, layout.suggested_group_id, positions)
    _move(table, layout, layout.suggested_group_id, positions)


@transaction.atomic
def refuse_suggestion(*, table: Table) -> None:
    """Never suggest the suggested group for these columns again. Raises Conflict where none is."""
    layout = _locked_layout(table)
    if layout.suggested_group_id is None:
        raise _none_suggested()
    layout.refused = [*layout.refused, layout.suggested_group_id]
    layout.suggested_group, layout.suggested_positions, layout.is_corrected = None, None, True
    layout.save()
    record(Action.CHANGED, table.document, fields=["tables"])


@transaction.atomic
def set_apart(*, table: Table, is_apart: bool, with_alike: bool = False) -> None:
    """Ask the table alone, or with its group again; also when its document is read again. With
    `with_alike` all tables with the same columns leave the group, and are asked together."""
    if not with_alike:
        Table.objects.filter(pk=table.pk).update(is_apart=is_apart)
        table.is_apart = is_apart
        record(Action.CHANGED, table.document, fields=["tables"])
        return
    if not is_apart:
        raise InvalidInput(
            gettext("Tables with the same columns can only be taken out together."), field="apart"
        )
    layout = _locked_layout(table)
    layout.refused = [*layout.refused, layout.group_id]
    _move(table, layout, None, ())


@transaction.atomic
def set_columns(*, table: Table, means: Mapping[str, int | None]) -> None:
    """Say which of the group's columns, by position, those of the table are, by name; None for one
    that the group does not have. Raises InvalidInput and Conflict."""
    layout = _locked_layout(table)
    at_names = {column["name"]: at for at, column in enumerate(table.columns)}
    positions: list[int | None] = list(layout.positions)
    for name, position in means.items():
        if name not in at_names:
            raise InvalidInput(gettext("The table has no such column."), field="columns")
        positions[at_names[name]] = position
    _check_columns(table, layout.group_id, positions)
    _move(table, layout, layout.group_id, positions)


@transaction.atomic
def correct(
    *,
    table: Table,
    tables: QuerySet[Table],
    suggestion: Literal["", "accept", "refuse"] = "",
    apart: bool | None = None,
    with_alike: bool = False,
    columns: Sequence[Mapping[str, Any]] = (),
) -> None:
    """All that a request says of a table's group, or nothing of it. Nobody accepts or refuses a
    group of which no table is in `tables`, those that he may see."""
    if suggestion and read_group(table, tables).suggestion is None:
        raise _none_suggested()
    if suggestion == "accept":
        accept_suggestion(table=table)
    elif suggestion == "refuse":
        refuse_suggestion(table=table)
    if apart is not None:
        set_apart(table=table, is_apart=apart, with_alike=with_alike)
    if columns:
        set_columns(table=table, means={each["column"]: each["position"] for each in columns})


def _check_columns(table: Table, group_id: int, positions: Sequence[int | None]) -> None:
    """Raises InvalidInput where two columns are said to be one, or types or units differ: a sum
    over several units would mean nothing."""
    (group,) = load_groups([group_id])
    given = [position for position in positions if position is not None]
    if len(given) != len(set(given)):
        raise InvalidInput(
            gettext("Two columns of the table cannot be the same column of the group."),
            field="columns",
        )
    for header, position in zip(read_headers(table.columns), positions, strict=True):
        if position is None:
            continue
        if position not in group.types:
            raise InvalidInput(gettext("The group has no such column."), field="columns")
        type_, unit = group.types[position]
        if header.type != type_ or (unit and header.unit and header.unit != unit):
            raise InvalidInput(
                gettext("Columns of other types or units cannot be joined."), field="columns"
            )
