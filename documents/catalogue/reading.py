"""A catalogued table read back from its document: `writing` the other way round."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from documents.catalogue.tables import Column, ForeignKey, Table, TableName
from documents.catalogue.words import with_words

#: `- customerId (customer id): BIGINT, required. What it means`
_LINE = re.compile(r"- (?P<name>.+?)(?:: (?P<facts>.*?))?\.(?: .*)?")
_FACT = re.compile(r"(?:, |^)(primary key|required)$")


def table_of(metadata: Mapping[str, Any], text: str) -> Table | None:
    """The table that a document tells of; None where it tells of none.

    Columns come from the metadata and, where those have none, as in catalogues made before they
    did, from the text. Metadata may be anybody's: what is not as `writing` makes it is passed over.
    """
    if metadata.get("kind") != "table" or not isinstance(metadata.get("table"), str):
        return None
    columns = tuple(_listed(metadata.get("columns"))) or tuple(_told(text))
    return Table(
        name=TableName(_text(metadata.get("schema")), metadata["table"]),
        columns=columns,
        is_view=metadata.get("is_view") is True,
        primary_key=_names(metadata.get("primary_key")),
        foreign_keys=tuple(_keys(metadata.get("foreign_keys"))),
    )


def needs_text(metadata: Mapping[str, Any]) -> bool:
    """Whether the columns can only be read in the text."""
    return not isinstance(metadata.get("columns"), list)


def _listed(columns: object) -> Iterator[Column]:
    for column in columns if isinstance(columns, list) else ():
        if isinstance(column, Mapping) and isinstance(column.get("name"), str):
            yield Column(name=column["name"], type=_text(column.get("type")))


def _told(text: str) -> Iterator[Column]:
    """The lines between “Columns:” and what follows them."""
    _, _, below = text.partition("Columns:\n")
    for line in below.lstrip("\n").split("\n"):
        if not line.startswith("- "):
            return
        if match := _LINE.fullmatch(line):
            yield Column(name=_name(match["name"]), type=_type(match["facts"] or ""))


def _name(written: str) -> str:
    """Without the words behind it, where it has any."""
    name = written.rpartition(" (")[0]
    return name if name and with_words(name) == written else written


def _type(facts: str) -> str:
    return _FACT.sub("", facts)


def _keys(keys: object) -> Iterator[ForeignKey]:
    for key in keys if isinstance(keys, list) else ():
        if isinstance(key, Mapping) and isinstance(key.get("references"), str):
            schema, _, name = key["references"].rpartition(".")
            yield ForeignKey(
                columns=_names(key.get("columns")),
                references=TableName(schema, name),
                referenced_columns=_names(key.get("referenced_columns")),
            )


def _names(names: object) -> tuple[str, ...]:
    return tuple(map(str, names)) if isinstance(names, list) else ()


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""
