"""What a batch may be given as, made into items."""

from collections.abc import Iterable, Mapping, Sequence
from itertools import count
from typing import Any

from common.errors import InvalidInput
from common.wording import counted
from documents.ingestion.items import Item


def named_items(
    given: Iterable[Any], *, ids: Sequence[str] | None, id_prefix: str | None
) -> list[Item]:
    """Items of whatever was given. Those that are not items or mappings need a name."""
    entries = list(given)
    if ids is not None and len(ids) != len(entries):
        raise InvalidInput(
            f"{counted(len(entries), 'item')} came with {counted(len(ids), 'id')}. Give as many.",
            field="ids",
        )
    names = iter(ids) if ids is not None else _numbered(id_prefix)
    return [_item(entry, name) for entry, name in zip(entries, names, strict=False)]


def _numbered(id_prefix: str | None) -> Iterable[str | None]:
    return (None if id_prefix is None else f"{id_prefix}:{number}" for number in count())


def _item(entry: Any, name: str | None) -> Item:
    if isinstance(entry, Item):
        return entry
    if not isinstance(entry, Mapping):
        fields: Mapping[str, Any] = {"text" if isinstance(entry, str) else "vector": entry}
    else:
        fields = entry
    if unknown := sorted(set(fields) - set(Item.__slots__)):
        raise InvalidInput(
            f"An item has no field “{unknown[0]}”. It has {', '.join(Item.__slots__)}.",
            field="items",
        )
    if "id" not in fields and name is None:
        raise InvalidInput("Name the items: give each an id, or `ids`, or `id_prefix`.", field="id")
    return Item(**{"id": name, **fields})
