"""Scripts of any dialect become tables with columns, keys and comments, and pages of these are read
back."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from documents.catalogue.ddl import read_scripts
from documents.catalogue.tables import (
    CatalogueError,
    Column,
    ForeignKey,
    Table,
    TableName,
    columns_need_text,
    name_with_words,
    split_identifier,
    table_metadata,
    table_of,
    table_text,
    table_title,
)
from documents.ingestion.sources import BrokenSource
from documents.tests.factories_catalogue import read_ddl

#: Scripts, each beside the pages of its tables and what the graph gets of them.
SCRIPTS = sorted(Path(__file__).with_name("catalogue_cases").glob("*.sql"))


def pages_of(script: Path) -> str:
    tables = [entry for entry in read_scripts([script]) if isinstance(entry, Table)]
    return "\n".join(
        f"{table_title(table)}\n{json.dumps(table_metadata(table, database='shop'))}\n\n"
        f"{table_text(table)}"
        for table in tables
    )


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.stem)
def test_scripts_of_every_dialect_become_pages(script: Path) -> None:
    assert pages_of(script) == script.with_suffix(".expected").read_text()


def only(script: str, **options: str) -> Table:
    (table,) = read_ddl(script, **options)
    assert isinstance(table, Table)
    return table


def test_a_definition_that_nobody_understands_is_named_and_the_others_are_read() -> None:
    good, bad = read_ddl("CREATE TABLE good (a int);\n\nCREATE TABLE bad (((;\nSELECT 1;")
    assert isinstance(good, Table)
    assert isinstance(bad, BrokenSource)
    assert bad.name == "bad"
    assert "line 3" in bad.reason


def test_a_schema_may_be_given_to_tables_that_name_none() -> None:
    table = only("CREATE TABLE t (a int REFERENCES o (b))", default_schema="shop")
    assert str(table.name) == "shop.t"
    assert str(table.foreign_keys[0].references) == "shop.o"


def test_several_scripts_are_one_database(tmp_path: Path) -> None:
    tables, comments = tmp_path / "1.sql", tmp_path / "2.sql"
    tables.write_text("CREATE TABLE t (a int)")
    comments.write_text("COMMENT ON TABLE t IS 'what it is'")
    (table,) = read_scripts([tables, comments])
    assert isinstance(table, Table)
    assert table.comment == "what it is"


def test_scripts_that_cannot_be_read_say_why(tmp_path: Path) -> None:
    with pytest.raises(CatalogueError, match=r"none\.sql cannot be read: No such file"):
        read_scripts([tmp_path / "none.sql"])
    with pytest.raises(CatalogueError, match="no SQL dialect klingon"):
        read_scripts([], dialect="klingon")


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("customer_orders", "customer orders"),
        ("customerOrders", "customer orders"),
        ("HTTPServerError2", "http server error 2"),
        ("CUSTOMER-ORDERS", "customer orders"),
        ("größeTisch", "größe tisch"),
        ("客户表", "客户表"),
        ("_", ""),
    ],
)
def test_names_are_parted_into_words(name: str, words: str) -> None:
    assert split_identifier(name) == words


def test_words_stand_beside_a_name_only_where_they_say_more() -> None:
    assert name_with_words("revenue") == "revenue"
    assert name_with_words("Revenue") == "Revenue"
    assert name_with_words("custRevenue") == "custRevenue (cust revenue)"


_NAMES = st.text(st.characters(categories=["L", "N"]), min_size=1, max_size=12)


@settings(deadline=None, max_examples=50)
@given(
    table=_NAMES,
    columns=st.lists(_NAMES, min_size=1, max_size=8, unique_by=str.lower),
    comment=st.text(st.characters(exclude_categories=["Cs", "Cc"]), max_size=40),
)
def test_every_name_and_comment_of_a_script_is_in_the_text(
    table: str, columns: list[str], comment: str
) -> None:
    quoted = ", ".join(f'"{column}" integer' for column in columns)
    words = comment.replace("'", "''")
    script = f'CREATE TABLE "{table}" ({quoted}); COMMENT ON TABLE "{table}" IS \'x {words}\''
    read = only(script, dialect="postgres")
    assert [column.name for column in read.columns] == columns
    text = table_text(read)
    assert all(f"- {column}" in text for column in columns)
    assert " ".join(read.comment.split()) in text


@settings(deadline=None, max_examples=100)
@given(
    st.lists(
        st.sampled_from(
            ["CREATE TABLE t (a int", ");", "'", '"', "$$", "--", "/*", "*/", "COMMENT ON TABLE t",
             " IS 'x'", "ALTER TABLE t ADD", " PRIMARY KEY (a)", "CREATE VIEW v AS SELECT", "(",
             ")", ",", "\n", " b text", "CREATE UNIQUE INDEX i ON t (a)", "GO", "`", "[", "]", ";"]
        ),
        max_size=12,
    ).map("".join)
)  # fmt: skip
def test_any_script_gives_tables_or_says_what_it_did_not_understand(script: str) -> None:
    for entry in read_ddl(script):
        assert str(entry.name)


_ANY_NAMES = st.text(st.characters(categories=["L", "N", "Pc"]), min_size=1, max_size=12)
_TYPES = st.sampled_from(["", "INT", "DECIMAL(12, 2)", "public.order_state", "TIMESTAMP WITH TZ"])
_COLUMNS = st.builds(
    Column,
    name=_ANY_NAMES | st.sampled_from(["Home Town", "custId", "a.b", "HTTPServer_2", "größe"]),
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


if __name__ == "__main__":
    for script in SCRIPTS:
        script.with_suffix(".expected").write_text(pages_of(script))
