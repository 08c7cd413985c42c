"""What keeps tables from being spread by workspace, and the statements that spread them. Pure."""

from collections.abc import Iterator
from dataclasses import dataclass
from graphlib import TopologicalSorter

from ragsite.sharding.catalog import Catalog, ForeignKey, Key
from ragsite.sharding.placement import KEY, LET_GO, ON_COORDINATOR, SHARED, TRIGGERS

_ID_TYPES = ("bigint", "uuid", None)
_DELETES = {"a": "", "c": " ON DELETE CASCADE", "n": " ON DELETE SET NULL ({columns})"}


@dataclass(frozen=True, slots=True)
class Plan:
    """Statements in their order: `before` and `after` are plain PostgreSQL, `spread` is Citus."""

    before: tuple[str, ...]
    spread: tuple[str, ...]
    after: tuple[str, ...]

    @property
    def statements(self) -> tuple[str, ...]:
        return (*self.before, *self.spread, *self.after)


class Layout:
    """Which tables of a catalog are spread, and what is to be done to them."""

    def __init__(self, catalog: Catalog) -> None:
        self.catalog = catalog
        self.spread = {
            table.name
            for table in catalog.tables
            if table.owned and table.name not in SHARED and table.name not in ON_COORDINATOR
        }

    # --- what is in the way ---

    def problems(self) -> list[str]:
        """Each with its table and what to do; empty where all can be spread."""
        return [
            *self._homeless(),
            *self._keys_in_the_way(),
            *self._foreign_keys_in_the_way(),
            *self._triggers_in_the_way(),
        ]

    def _homeless(self) -> Iterator[str]:
        for table in self.catalog.tables:
            placed = table.name in SHARED or table.name in ON_COORDINATOR
            if not table.owned and not placed:
                yield (
                    f"{table.name}: a row may have no {KEY}. Give it one that is NOT NULL, or say"
                    " in ragsite/sharding/placement.py where it lies."
                )
            if table.name in self.spread and table.id_type not in _ID_TYPES:
                yield (
                    f"{table.name}: its id is {table.id_type}, of which servers cannot draw"
                    " numbers of their own. Make it a BigAutoField."
                )

    def _keys_in_the_way(self) -> Iterator[str]:
        for key in self._keys_without_workspace():
            if not self._is_of_one_workspace(key):
                yield (
                    f"{key.table}: {key.name} ({', '.join(key.columns)}) would have to hold across"
                    f" workspaces. Put {KEY} into it."
                )
            elif not key.is_constraint:
                yield (
                    f"{key.table}: {key.name} is an index with a condition or an expression, which"
                    f" is not made anew by itself. Put {KEY} into it."
                )

    def _foreign_keys_in_the_way(self) -> Iterator[str]:
        for each in self.catalog.foreign_keys:
            here, there = each.table in self.spread, each.target in self.spread
            if here and each.target in ON_COORDINATOR:
                yield f"{each.table}: {each.name} leads to {each.target}, on the coordinator alone."
            if not here and there and not self._is_let_go(each):
                yield (
                    f"{each.table}: {each.name} leads to {each.target}, which is spread. Leave the"
                    " constraint out, or declare it in LET_GO of ragsite/sharding/placement.py."
                )
            if here and there and self._lacks(each) and each.deletes not in _DELETES:
                yield f"{each.table}: {each.name} sets a default when its target goes."

    def _triggers_in_the_way(self) -> Iterator[str]:
        for table, name in self.catalog.triggers:
            if table in self.spread and name not in TRIGGERS:
                yield (
                    f"{table}: trigger {name} must touch rows of its own workspace alone. If it"
                    " does, declare it in TRIGGERS of ragsite/sharding/placement.py."
                )

    # --- what is to be done ---

    def plan(self) -> Plan:
        """What is done already is not in it. There must be no problems."""
        keys = list(self._keys_without_workspace())
        widened = [each for each in self._among_spread() if self._lacks(each)]
        gone = [each for each in self.catalog.foreign_keys if self._is_let_go(each)]
        return Plan(
            before=(
                *(_dropped(each.table, each.name) for each in (*widened, *gone)),
                *map(_widened_key, keys),
            ),
            spread=(*self._triggers_allowed(), *self._shared(), *self._spread()),
            after=tuple(map(_widened_foreign_key, widened)),
        )

    def _triggers_allowed(self) -> Iterator[str]:
        if any(table in self.spread for table, _ in self.catalog.triggers):
            yield "SET citus.enable_unsafe_triggers TO on"

    def _shared(self) -> Iterator[str]:
        """What others refer to comes first."""
        shared = sorted(SHARED.keys() & {table.name for table in self.catalog.tables})
        order = TopologicalSorter({name: set[str]() for name in shared})
        for each in self.catalog.foreign_keys:
            if each.table in shared and each.target in shared and each.table != each.target:
                order.add(each.table, each.target)
        for name in order.static_order():
            yield f"SELECT create_reference_table('{name}')"

    def _spread(self) -> Iterator[str]:
        first, *others = sorted(self.spread)
        yield f"SELECT create_distributed_table('{first}', '{KEY}')"
        for name in others:
            yield f"SELECT create_distributed_table('{name}', '{KEY}', colocate_with => '{first}')"

    # --- parts ---

    def _keys_without_workspace(self) -> Iterator[Key]:
        for key in self.catalog.keys:
            if key.table in self.spread and KEY not in key.columns:
                yield key

    def _is_of_one_workspace(self, key: Key) -> bool:
        """Whether rows that share the key can only be of one workspace, so that it says the same
        with the workspace in it: an id, or what leads to a row of one workspace."""
        leading = {
            each.columns[0]
            for each in self._among_spread()
            if each.table == key.table and each.columns
        }
        return key.columns == ("id",) or not leading.isdisjoint(key.columns)

    def _among_spread(self) -> Iterator[ForeignKey]:
        for each in self.catalog.foreign_keys:
            if each.table in self.spread and each.target in self.spread:
                yield each

    def _lacks(self, each: ForeignKey) -> bool:
        return KEY not in each.columns

    def _is_let_go(self, each: ForeignKey) -> bool:
        return (each.table, *each.columns) in LET_GO and each.target in self.spread


def _dropped(table: str, constraint: str) -> str:
    return f'ALTER TABLE "{table}" DROP CONSTRAINT "{constraint}"'


def _widened_key(key: Key) -> str:
    """Under the same name, for statements that name it; the old columns first, so that its index
    goes on finding rows by them."""
    kind = "PRIMARY KEY" if key.is_primary else "UNIQUE"
    columns = _listed((*key.columns, KEY))
    return (
        f'ALTER TABLE "{key.table}" DROP CONSTRAINT "{key.name}",'
        f' ADD CONSTRAINT "{key.name}" {kind} ({columns})'
    )


def _widened_foreign_key(each: ForeignKey) -> str:
    deletes = _DELETES[each.deletes].format(columns=_listed(each.columns))
    deferred = " DEFERRABLE INITIALLY DEFERRED" if each.deferrable else ""
    return (
        f'ALTER TABLE "{each.table}" ADD CONSTRAINT "{each.name}"'
        f" FOREIGN KEY ({_listed((*each.columns, KEY))})"
        f' REFERENCES "{each.target}" ({_listed((*each.target_columns, KEY))}){deletes}{deferred}'
    )


def _listed(columns: tuple[str, ...]) -> str:
    return ", ".join(f'"{column}"' for column in columns)
