"""Tables and what their foreign keys refer to, out of the documents of a catalogue. Pure."""

from collections.abc import Iterator, Mapping
from typing import Any

from graph.extraction.addresses import bounded
from graph.extraction.found import Mention, Source
from graph.extraction.tally import Tally

#: Foreign keys of one table that are followed.
MOST = 200


def mentions(source: Source) -> Iterator[Mention]:
    """The table that a document is about, and each that it refers to."""
    tally = Tally(most=MOST)
    own = _own_name(source.metadata)
    if own and source.passages:
        database = str(source.metadata.get("database") or "")
        tally.add(Mention(0, table_form(database, own), own, "table", "self"))
        for name in _references(source.metadata):
            tally.add(_reference(source, table_form(database, name), name))
    return tally.mentions()


def table_form(database: str, name: str) -> str:
    """`table:shop/sales.orders`. Two databases may have tables of the same name."""
    return bounded(f"table:{database}/{name}".casefold())


def _own_name(metadata: Mapping[str, Any]) -> str:
    """As `documents.catalogue` names it, with its schema; empty for other documents."""
    schema, table = metadata.get("schema"), metadata.get("table")
    if metadata.get("kind") != "table" or not isinstance(table, str) or not table:
        return ""
    return f"{schema}.{table}" if isinstance(schema, str) and schema else table


def _references(metadata: Mapping[str, Any]) -> Iterator[str]:
    keys = metadata.get("foreign_keys")
    for key in keys if isinstance(keys, list) else ():
        name = key.get("references") if isinstance(key, Mapping) else None
        if isinstance(name, str) and name:
            yield name


def _reference(source: Source, form: str, name: str) -> Mention:
    """Where a passage says so, else where the table is described first."""
    for at, passage in enumerate(source.passages):
        told = passage.text.find(f"refers to {name}")
        if told >= 0:
            end = told + len(f"refers to {name}")
            return Mention(at, form, name, "table", "link", 1, end - len(name), end)
    return Mention(0, form, name, "table", "link")
