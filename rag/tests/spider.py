"""The tables and questions of Spider, where they lie beside the checkout: see `spider_schema` in
the README of the shared data."""

import re
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from documents.catalogue.tables import Column, Table, TableName, table_metadata
from documents.ingestion.sources import Source, text_source
from documents.sql.catalogue import Catalogue
from search.evaluation.datasets import Dataset, Entry, load_dataset

FOLDER = Path(__file__).resolve().parent.parent.parent.parent / "shared" / "data" / "spider_schema"

#: `Home Town (home town, text)`, one behind the other.
_COLUMN = re.compile(r"(.+?) \(([^()]*(?:\([^()]*\)[^()]*)*), (\w+)\)(?:, |$)")


@cache
def dataset() -> Dataset:
    """All of it."""
    return load_dataset(FOLDER)


def table_in(entry: Entry) -> Table:
    """A table as its text describes it. The name in the text may be in other words than SQL's."""
    _, _, columns = entry.text.partition(": ")
    read = list(_COLUMN.finditer(columns))
    assert "".join(match[0] for match in read) == columns, f"{entry.id} is not understood"
    _, _, name = entry.id.partition(".")
    return Table(TableName("", name), tuple(Column(match[1], match[3]) for match in read))


@cache
def catalogues() -> dict[str, Catalogue]:
    """Each database by its name."""
    tables: dict[str, list[Table]] = defaultdict(list)
    for entry in dataset().corpus:
        tables[entry.fields["db_id"]].append(table_in(entry))
    return {name: Catalogue(name, tuple(listed)) for name, listed in tables.items()}


def sources() -> Iterator[Source]:
    """The corpus as it is, with the metadata that a catalogue has."""
    for entry in dataset().corpus:
        metadata = table_metadata(table_in(entry), database=entry.fields["db_id"])
        yield text_source(
            entry.id,
            entry.text,
            title=entry.title,
            language="en",
            file_name="table.txt",
            metadata=metadata,
        )
