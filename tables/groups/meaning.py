"""Matches that only an embedding model sees: it takes “Vendor” and “Buyer” for near, too, so they
are suggested and never used. Begin with `suggest_by_meaning`."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from django.db import transaction

from documents.embedders import embed_titles, scale_of
from documents.models import Collection
from inference.interfaces import InferenceError
from tables.groups.headers import Header, read_headers
from tables.groups.store import lock_groups
from tables.models import Table, TableLayout
from tables.questions.planner import MIN_LEAD, MIN_SIMILARITY

#: The newest layouts are looked at, each is compared with so many, and so many names are embedded.
MAX_LAYOUTS, MAX_COMPARED, MAX_NAMES = 1_000, 50, 512

_Nearness = Mapping[tuple[str, str], float]


@dataclass(frozen=True, slots=True)
class _Known:
    layout: TableLayout
    headers: list[Header]


def suggest_by_meaning(collection: Collection) -> int:
    """Suggest groups for layouts that are alone and have the same types and units as others, where
    each column is clearly nearest to one of theirs; returns for how many. 0 without a model that
    knows meaning."""
    alike = _alike(collection)
    names = sorted({header.name for same in alike for each in same for header in each.headers})
    nearness = _nearness(collection, names[:MAX_NAMES])
    if not nearness:
        return 0
    suggested = 0
    with transaction.atomic():
        lock_groups(collection.pk)
        for same in alike:
            sizes: defaultdict[int, int] = defaultdict(int)
            for each in same:
                sizes[each.layout.group_id] += 1
            for own in same:
                layout = own.layout
                if sizes[layout.group_id] > 1 or layout.is_corrected or layout.suggested_group_id:
                    continue
                suggested += _suggest(own, same, nearness)
    return suggested


def _suggest(own: _Known, same: Sequence[_Known], nearness: _Nearness) -> bool:
    layout = own.layout
    for other in same[:MAX_COMPARED]:
        known = other.layout
        # Neither what was refused, nor the other way round what is suggested already.
        apart = (layout.group_id, *layout.refused)
        of_other = (known.suggested_group_id, *known.refused)
        if known.group_id in apart or layout.group_id in of_other:
            continue
        if (columns := _matched(own.headers, other.headers, nearness)) is not None:
            layout.suggested_group_id = known.group_id
            layout.suggested_positions = [known.positions[at] for at in columns]
            layout.save(update_fields=["suggested_group", "suggested_positions"])
            return True
    return False


def _matched(
    headers: Sequence[Header], others: Sequence[Header], nearness: _Nearness
) -> list[int] | None:
    """For each header the index of the other that means the same; None where one is not clear."""
    columns = []
    for header in headers:
        scores = {
            at: 1.0
            if set(header.keys) & set(other.keys)
            else nearness.get((header.name, other.name), 0.0)
            for at, other in enumerate(others)
            if (other.type, other.unit) == (header.type, header.unit)
            and not (header.meaning and other.meaning and header.meaning.contradicts(other.meaning))
        }
        first, *further = sorted(scores, key=lambda at: -scores[at]) or (-1,)
        second = scores[further[0]] if further else 0.0
        if first < 0 or scores[first] < MIN_SIMILARITY or scores[first] - second < MIN_LEAD:
            return None
        columns.append(first)
    return columns if len(set(columns)) == len(columns) else None


def _alike(collection: Collection) -> list[list[_Known]]:
    """The newest layouts of the collection by the types and units of their columns, as far as there
    are several groups of them."""
    layouts = list(TableLayout.objects.filter(collection=collection).order_by("-pk")[:MAX_LAYOUTS])
    tables = Table.objects.filter(
        collection=collection, fingerprint__in=[layout.fingerprint for layout in layouts]
    )
    columns = dict(
        tables.order_by("fingerprint", "pk")
        .distinct("fingerprint")
        .values_list("fingerprint", "columns")
    )
    by_types: defaultdict[tuple[tuple[str, str], ...], list[_Known]] = defaultdict(list)
    for layout in layouts:
        headers = read_headers(columns.get(layout.fingerprint, ()))
        if len(headers) > 1 and all(header.name for header in headers):
            key = tuple(sorted((header.type, header.unit) for header in headers))
            by_types[key].append(_Known(layout, headers))
    return [same for same in by_types.values() if len({each.layout.group_id for each in same}) > 1]


def _nearness(collection: Collection, names: Sequence[str]) -> _Nearness:
    try:
        scale = scale_of(collection.space)
        if scale is None or not names:
            return {}
        vectors = embed_titles(collection.space, names)
    except InferenceError:
        return {}
    near = scale.nearness((vectors @ vectors.T).astype("float64"))
    return {
        (first, second): float(near[row, column])
        for row, first in enumerate(names)
        for column, second in enumerate(names)
    }
