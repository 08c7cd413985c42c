"""Layouts and groups in the database: decided when tables are loaded. Begin with `group_tables`."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from itertools import count
from typing import Any

from django.db import connection
from django.db.models import Max

from common.sql import fetch_rows
from tables.groups.headers import Header, fingerprint, read_headers
from tables.groups.matching import GroupColumns, GroupMatch, match_group
from tables.models import GroupColumn, Table, TableGroup, TableLayout

#: Groups that a new layout is compared with: those with most of its headers.
MAX_CANDIDATES = 10
#: Layouts of a group that are compared, and groups in which a header is looked up.
MAX_LAYOUTS, MAX_LOOKED_UP = 100, 500

# Known ones are held, so that the trigger that removes unused ones passes them over.
_HOLD = """
    SELECT fingerprint FROM tables_tablelayout
    WHERE collection_id = %(collection)s AND fingerprint = ANY(%(wanted)s) ORDER BY id FOR SHARE
"""
# As in the trigger of migration 0002.
_LOCK = "SELECT pg_advisory_xact_lock(hashtextextended('table groups', %s))"
_CANDIDATES = """
    SELECT found.group_id
    FROM unnest(%(keys)s::text[]) AS wanted (key)
    CROSS JOIN LATERAL (
        SELECT group_id, position FROM tables_groupcolumn
        WHERE collection_id = %(collection)s AND key = wanted.key LIMIT %(most)s
    ) AS found
    GROUP BY found.group_id
    ORDER BY count(DISTINCT found.position) DESC, found.group_id LIMIT %(candidates)s
"""
_WITHOUT_TABLES = """
    DELETE FROM tables_tablelayout AS layout
    WHERE collection_id = %(collection)s AND NOT EXISTS (
        SELECT FROM tables_table
        WHERE collection_id = layout.collection_id AND fingerprint = layout.fingerprint
    )
"""


def group_tables(tables: Iterable[Table]) -> int:
    """Put tables into groups by their columns, in the caller's transaction; returns how many
    layouts were new. One that is known keeps its group, whatever was decided about it."""
    wanted: defaultdict[int, dict[str, Table]] = defaultdict(dict)
    changed = []
    for table in tables:
        if (found := fingerprint(table.columns)) != table.fingerprint:
            table.fingerprint = found
            changed.append(table)
        wanted[table.collection_id].setdefault(found, table)
    Table.objects.bulk_update(changed, ["fingerprint"], batch_size=500)
    return sum(_add_layouts(pk, wanted[pk]) for pk in sorted(wanted))


def regroup(table: Table, *, keeps_place: bool) -> None:
    """Group a table again whose columns were corrected. With `keeps_place` its columns still mean
    what they meant, if their names are new."""
    former = TableLayout.objects.filter(
        collection=table.collection_id, fingerprint=table.fingerprint
    ).first()
    after = fingerprint(table.columns)
    is_known = TableLayout.objects.filter(
        collection=table.collection_id, fingerprint=after
    ).exists()
    if keeps_place and former is not None and not is_known:
        lock_groups(table.collection_id)
        former.pk, former.fingerprint = None, after
        match = GroupMatch(former.group_id, tuple(former.positions), is_sure=True, shared=0)
        place_layout(former, read_headers(table.columns), match)
    group_tables([table])


def _add_layouts(collection_id: int, wanted: dict[str, Table]) -> int:
    asked: dict[str, Any] = {"collection": collection_id, "wanted": list(wanted)}
    with connection.cursor() as cursor:
        cursor.execute(_HOLD.replace(" FOR SHARE", ""), asked)
        if {name for (name,) in cursor.fetchall()} != wanted.keys():
            cursor.execute(_LOCK, [collection_id])
        cursor.execute(_HOLD, asked)
        known = {name for (name,) in cursor.fetchall()}
    missing = [table for name, table in wanted.items() if name not in known]
    for table in missing:
        _decide(table)
    return len(missing)


def _decide(table: Table) -> None:
    """Make the layout of a table, and put it into the group that it surely belongs to."""
    headers = read_headers(table.columns)
    matches = matches_of(headers, table.collection_id)
    chosen = _chosen(matches)
    layout = TableLayout(
        workspace_id=table.workspace_id,
        collection_id=table.collection_id,
        fingerprint=table.fingerprint,
    )
    if chosen is None and matches:
        layout.suggested_group_id = matches[0].group
        layout.suggested_positions = list(matches[0].positions)
    place_layout(layout, headers, chosen)


def matches_of(headers: Sequence[Header], collection_id: int) -> list[GroupMatch]:
    """The groups that tables with these headers may belong to, the likeliest first."""
    groups = _candidates(headers, collection_id)
    found = [match_group(headers, group) for group in groups]
    matches = [match for match in found if match is not None]
    return sorted(matches, key=lambda each: (-each.is_sure, -each.shared, each.group))


def _chosen(matches: Sequence[GroupMatch]) -> GroupMatch | None:
    """The one sure match; of several the one with all the columns and no more."""
    sure = [match for match in matches if match.is_sure]
    whole = [match for match in sure if match.is_whole]
    for found in (sure, whole):
        if len(found) == 1:
            return found[0]
    return None


def place_layout(layout: TableLayout, headers: Sequence[Header], match: GroupMatch | None) -> None:
    """Save a layout in the group of the match, else in one of its own; columns that the group does
    not have are added to it."""
    common = {"workspace_id": layout.workspace_id, "collection_id": layout.collection_id}
    known: Sequence[int | None] = [None] * len(headers)
    following = count(0)
    if match is None:
        layout.group = TableGroup.objects.create(**common)
    else:
        layout.group_id, known = match.group, match.positions
        last = GroupColumn.objects.filter(group=match.group).aggregate(last=Max("position"))["last"]
        following = count(0 if last is None else last + 1)
    positions = [next(following) if position is None else position for position in known]
    layout.positions = positions
    layout.save()
    GroupColumn.objects.bulk_create(
        (
            GroupColumn(
                **common,
                group_id=layout.group_id,
                position=position,
                key=key,
                type=header.type,
                unit=header.unit[:20],
            )
            for header, position in zip(headers, positions, strict=True)
            # One without a name has no key, but a type.
            for key in header.keys or ("",)
        ),
        ignore_conflicts=True,
    )


def _candidates(headers: Sequence[Header], collection_id: int) -> list[GroupColumns]:
    parameters = {
        "keys": sorted({key for header in headers for key in header.keys}),
        "collection": collection_id,
        "most": MAX_LOOKED_UP,
        "candidates": MAX_CANDIDATES,
    }
    return load_groups([pk for (pk,) in fetch_rows(connection, _CANDIDATES, parameters)])


def load_groups(ids: Sequence[int]) -> list[GroupColumns]:
    """The columns and layouts of groups."""
    groups = {pk: GroupColumns(pk) for pk in ids}
    columns = GroupColumn.objects.filter(group__in=ids).order_by("pk")
    names = ("group", "position", "key", "type", "unit")
    for pk, position, key, type_, unit in columns.values_list(*names):
        groups[pk].add(position, key, type_, unit)
    layouts = TableLayout.objects.filter(group__in=ids).order_by("pk")
    for pk, positions in layouts.values_list("group", "positions"):
        if len(groups[pk].layouts) < MAX_LAYOUTS:
            groups[pk].layouts.append(frozenset(positions))
    return list(groups.values())


def lock_groups(collection_id: int) -> None:
    """Hold the groups of a collection until the end of the transaction."""
    with connection.cursor() as cursor:
        cursor.execute(_LOCK, [collection_id])


def remove_unused(collection_id: int) -> None:
    """Delete layouts without tables and groups without layouts, which a trigger does, too, but for
    those that another transaction was about to use."""
    lock_groups(collection_id)
    with connection.cursor() as cursor:
        cursor.execute(_WITHOUT_TABLES, {"collection": collection_id})
    TableGroup.objects.filter(collection=collection_id, layouts=None).delete()
