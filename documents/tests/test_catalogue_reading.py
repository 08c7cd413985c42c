"""What the catalogue wrote of a table is read back as it was."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from documents.catalogue.tables import (
    Column,
    ForeignKey,
    Table,
    TableName,
    columns_need_text,
    table_metadata,
    table_of,
    table_text,
)

_NAMES = st.text(st.characters(categories=["L", "N", "Pc"]), min_size=1, max_size=12)
_TYPES = st.sampled_from(["", "INT", "DECIMAL(12, 2)", "public.order_state", "TIMESTAMP WITH TZ"])
_COLUMNS = st.builds(
    Column,
    name=_NAMES | st.sampled_from(["Home Town", "custId", "a.b", "HTTPServer_2", "größe"]),
    type=_TYPES,
    is_nullable=st.booleans(),
    comment=st.sampled_from(["", "Without tax. Such as: none.", "- odd: yes."]),
    samples=st.just(()) | st.just(("Berlin", "Paris. Texas")),
)


def bare(table: Table) -> Table:
    """What a document keeps of a table for programs."""
    columns = tuple(Column(column.name, column.type) for column in table.columns)
    return replace(table, columns=columns, comment="", unique=())


@settings(deadline=None, max_examples=100)
@given(columns=st.lists(_COLUMNS, min_size=1, max_size=6, unique_by=lambda each: each.name))
def test_a_table_is_read_from_metadata_and_from_text_alike(columns: list[Column]) -> None:
    table = Table(
        TableName("crm", "customerRevenue"),
        tuple(columns),
        comment="What each paid.",
        primary_key=(columns[0].name,),
        foreign_keys=(ForeignKey((columns[0].name,), TableName("crm", "customers"), ("id",)),),
        unique=((columns[0].name,),),
    )
    metadata = table_metadata(table, database="shop")
    assert table_of(metadata, "") == bare(table)

    before = {name: value for name, value in metadata.items() if name != "columns"}
    assert table_of(before, table_text(table)) == bare(table)


def test_columns_of_a_very_wide_table_are_read_from_the_text() -> None:
    wide = tuple(Column(f"measurement_{number}", "DOUBLE PRECISION") for number in range(400))
    table = Table(TableName("", "sensor"), wide)
    metadata = table_metadata(table, database="plant")
    assert columns_need_text(metadata)
    assert table_of(metadata, table_text(table)) == table


@pytest.mark.parametrize(
    "metadata",
    [
        {},
        {"kind": "note", "table": "x"},
        {"kind": "table"},
        {"kind": "table", "table": 7},
        {"kind": "table", "table": None, "columns": "x"},
    ],
)
def test_other_documents_are_no_tables(metadata: dict[str, Any]) -> None:
    assert table_of(metadata, "Columns:\n\n- id: INT.\n") is None


def test_metadata_of_somebody_elses_making_do_no_harm() -> None:
    metadata = {
        "kind": "table",
        "table": "t",
        "schema": 7,
        "columns": ["id", {"name": 3}, {"name": "ok", "type": []}],
        "foreign_keys": [7, {"references": None}, {"references": "u", "columns": "x"}],
        "primary_key": "id",
    }
    assert table_of(metadata, "") == Table(
        TableName("", "t"),
        (Column("ok", ""),),
        foreign_keys=(ForeignKey((), TableName("", "u")),),
    )
