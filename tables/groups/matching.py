"""Whether a table belongs to a group of tables, and which of its columns is which of the group's.
Begin with `match_group`. Without Django.

A wrong match gives wrong sums. So a match is sure only where names or meanings are the same, and
types and units, and one of the two has no column that the other might have under another name.
"""

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from tables.groups.headers import Header, Meaning

#: Columns that must be the same where one table has more of them than the other.
MIN_SHARED = 3


@dataclass(slots=True)
class GroupColumns:
    """A group: type and unit of each column, the positions that a key of headers means, and which
    columns each layout of its tables has."""

    id: int
    types: dict[int, tuple[str, str]] = field(default_factory=dict)
    by_key: defaultdict[str, set[int]] = field(default_factory=lambda: defaultdict(set))
    layouts: list[frozenset[int]] = field(default_factory=list)

    def add(self, position: int, key: str, type_: str, unit: str) -> None:
        known = self.types.get(position, (type_, ""))
        self.types[position] = (type_, known[1] or unit)
        if key:
            self.by_key[key].add(position)

    def meanings(self) -> dict[int, list[Meaning]]:
        found: defaultdict[int, list[Meaning]] = defaultdict(list)
        for key, positions in self.by_key.items():
            if meaning := Meaning.of_key(key):
                for position in positions:
                    found[position].append(meaning)
        return found


@dataclass(frozen=True, slots=True)
class GroupMatch:
    """Columns of a table as those of `group`, None for one that the group does not have. `shared`
    counts those that are certainly the same; `is_whole` where they are all of a table of it."""

    group: int
    positions: tuple[int | None, ...]
    is_sure: bool
    shared: int
    is_whole: bool = False


def match_group(headers: Sequence[Header], group: GroupColumns) -> GroupMatch | None:
    """The match of a table with these headers; None where they are different tables."""
    found = _Certain(headers, group)
    if found.is_contradicted or not found.positions:
        return None
    meanings = group.meanings()
    positions = dict(found.positions)
    is_sure = not found.is_blocked and _is_sure(headers, group, found, meanings)
    if not is_sure:
        pairs = _likely_pairs(headers, group, found, meanings)
        if pairs is None:
            return None
        positions |= pairs
    return GroupMatch(
        group.id,
        tuple(positions.get(at) for at in range(len(headers))),
        is_sure,
        len(found.positions),
        len(found.positions) == len(headers)
        and frozenset(found.positions.values()) in group.layouts,
    )


class _Certain:
    """Columns that are certainly the same, by name or else by meaning: `positions` by column.
    `is_contradicted` where a unit is another, `is_blocked` where one is missing or a type is
    another."""

    def __init__(self, headers: Sequence[Header], group: GroupColumns) -> None:
        self.positions: dict[int, int] = {}
        self.renamed: set[int] = set()
        self.without_unit: dict[int, int] = {}
        self.is_contradicted = self.is_blocked = False
        meanings = [header.meaning.key for header in headers if header.meaning]
        for at, header in enumerate(headers):
            self._match(at, header, group.by_key.get(header.name_key, ()), group.types)
        for at, header in enumerate(headers):
            key = header.meaning.key if header.meaning else ""
            places = group.by_key.get(key, ())
            if at not in self.positions and len(places) == meanings.count(key) == 1:
                self._match(at, header, places, group.types)
                if at in self.positions:
                    self.renamed.add(at)

    def _match(
        self,
        at: int,
        header: Header,
        places: Collection[int],
        types: Mapping[int, tuple[str, str]],
    ) -> None:
        free = [place for place in places if place not in self.positions.values()]
        same = [place for place in free if types[place] == (header.type, header.unit)]
        if len(same) == 1:
            self.positions[at] = same[0]
            return
        for place in free:
            type_, unit = types[place]
            if type_ == header.type and unit and header.unit and unit != header.unit:
                self.is_contradicted = True
            elif type_ == header.type and unit != header.unit:
                self.without_unit[at] = place
            self.is_blocked = True


def _is_sure(
    headers: Sequence[Header],
    group: GroupColumns,
    found: _Certain,
    meanings: Mapping[int, list[Meaning]],
) -> bool:
    matched = set(found.positions.values())
    has_unit = any(headers[at].unit for at in found.positions)
    if found.renamed and len(matched) < MIN_SHARED and not has_unit:
        return False
    is_sure = False
    for layout in group.layouts:
        shared = len(matched & layout)
        more, less = len(headers) - shared, len(layout) - shared
        if more and less:
            # Each has columns that the other lacks: perhaps the same under other names.
            own = [at for at in range(len(headers)) if found.positions.get(at) not in layout]
            if any(
                _may_be_rivals(headers[at], group.types[position], meanings.get(position, ()))
                for at in own
                for position in layout - matched
            ):
                return False
        elif more or less:
            is_sure |= shared >= MIN_SHARED and 2 * shared >= max(len(headers), len(layout))
        else:
            is_sure |= shared >= 2
    return is_sure


def _may_be_rivals(header: Header, type_: tuple[str, str], meanings: Collection[Meaning]) -> bool:
    """Whether two columns that are in different tables might be one, or make them different
    tables: a customer here, a supplier there. Texts that are about nothing known are remarks."""
    if header.type != type_[0]:
        return False
    return header.type != "text" or bool(header.meaning and meanings)


def _likely_pairs(
    headers: Sequence[Header],
    group: GroupColumns,
    found: _Certain,
    meanings: Mapping[int, list[Meaning]],
) -> dict[int, int] | None:
    """The columns that may be the same under other names, as far as only one fits; None where the
    tables are not alike or are about different things."""
    matched = set(found.positions.values()) | set(found.without_unit.values())
    own = [
        at
        for at in range(len(headers))
        if at not in found.positions and at not in found.without_unit
    ]
    layout = max(group.layouts, key=lambda each: (len(matched & each), -len(each)), default=None)
    if layout is None:
        return None
    options: dict[int, list[int]] = {}
    for at in own:
        header = headers[at]
        same = [
            position
            for position in layout - matched
            if group.types[position][0] == header.type
            and (
                "" in (header.unit, group.types[position][1])
                or header.unit == group.types[position][1]
            )
        ]
        fitting = [
            position
            for position in same
            if header.meaning is None
            or not any(header.meaning.contradicts(each) for each in meanings.get(position, ()))
        ]
        if same and not fitting:
            return None
        options[at] = fitting
    pairs = dict(found.without_unit)
    for at, fitting in options.items():
        if len(fitting) == 1 and sum(fitting[0] in each for each in options.values()) == 1:
            pairs[at] = fitting[0]
    alike = len(found.positions) + len(pairs)
    return pairs if alike >= 2 and 2 * alike >= max(len(headers), len(layout)) else None
