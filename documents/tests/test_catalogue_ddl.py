"""Scripts of any dialect become tables with columns, keys and comments."""

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from documents.catalogue.ddl import read_scripts
from documents.catalogue.tables import (
    CatalogueError,
    ForeignKey,
    Table,
    TableName,
    name_with_words,
    split_identifier,
    table_metadata,
    table_text,
    table_title,
)
from documents.ingestion.sources import BrokenSource
from documents.tests.factories_catalogue import read_ddl

POSTGRES_DUMP = """
--
-- Name: orders; Type: TABLE; Schema: public; Owner: ada
--
CREATE TABLE public.orders (
    id bigint NOT NULL,
    "custId" integer, -- who bought it
    state public.order_state DEFAULT 'new;'::public.order_state NOT NULL,
    total numeric(10,2) DEFAULT 0.00 NOT NULL CHECK (total >= 0)
);
ALTER TABLE public.orders OWNER TO ada;
COMMENT ON TABLE public.orders IS 'What people bought; it''s revenue';
COMMENT ON COLUMN public.orders.total IS 'with tax';
COPY public.orders (id, "custId") FROM stdin;
1\tit's; a trap
CREATE TABLE trap (a int);
\\.
ALTER TABLE ONLY public.orders ADD CONSTRAINT orders_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.orders
    ADD CONSTRAINT fk FOREIGN KEY ("custId") REFERENCES crm.customers(id) ON DELETE CASCADE;
CREATE UNIQUE INDEX u ON public.orders USING btree (state, total);
CREATE UNIQUE INDEX of_an_expression ON public.orders (lower(state), total);
CREATE UNIQUE INDEX of_a_part ON public.orders (state) WHERE total > 0;
"""


def only(script: str, **options: str) -> Table:
    (table,) = read_ddl(script, **options)
    assert isinstance(table, Table)
    return table


def test_a_dump_of_postgresql_is_read_whole() -> None:
    table = only(POSTGRES_DUMP)
    assert table.name == TableName("public", "orders")
    assert table.comment == "What people bought; it's revenue"
    assert [column.name for column in table.columns] == ["id", "custId", "state", "total"]
    assert [column.is_nullable for column in table.columns] == [False, True, False, False]
    assert [column.comment for column in table.columns] == ["", "who bought it", "", "with tax"]
    assert table.columns[3].type == "DECIMAL(10, 2)"
    assert table.primary_key == ("id",)
    assert table.foreign_keys == (ForeignKey(("custId",), TableName("crm", "customers"), ("id",)),)
    assert table.unique == (("state", "total"),)


def test_mysql_says_keys_and_comments_in_the_table() -> None:
    table = only(
        "CREATE TABLE `shop`.`people` (`id` int(11) unsigned NOT NULL AUTO_INCREMENT COMMENT"
        " 'the key', `name` varchar(20) COLLATE utf8_bin, `boss` int, PRIMARY KEY (`id`),"
        " KEY `i` (`name`(10)), UNIQUE KEY u (`name`,`id`), CONSTRAINT `fk` FOREIGN KEY (`boss`)"
        " REFERENCES `people` (`id`)) ENGINE=InnoDB DEFAULT CHARSET=utf8 COMMENT='who works';"
    )
    assert (str(table.name), table.comment) == ("shop.people", "who works")
    assert table.columns[0].comment == "the key"
    assert table.primary_key == ("id",)
    assert table.unique == (("name", "id"),)
    assert table.foreign_keys == (ForeignKey(("boss",), TableName("shop", "people"), ("id",)),)


def test_what_sql_server_writes_about_storage_does_not_matter() -> None:
    table = only(
        "CREATE TABLE [dbo].[Order Lines]([Id] [int] IDENTITY(1,1) NOT NULL, [Order] [int] NULL,"
        " CONSTRAINT [PK] PRIMARY KEY CLUSTERED ([Id] ASC) WITH (PAD_INDEX = OFF) ON [PRIMARY]"
        ") ON [PRIMARY] TEXTIMAGE_ON [PRIMARY]\nGO\n"
        "ALTER TABLE [dbo].[Order Lines]  WITH CHECK ADD  CONSTRAINT [FK] FOREIGN KEY([Order])\n"
        "REFERENCES [dbo].[Orders] ([Id])\nGO\n"
    )
    assert str(table.name) == "dbo.Order Lines"
    assert table.primary_key == ("Id",)
    assert str(table.foreign_keys[0].references) == "dbo.Orders"


def test_sqlite_refers_from_the_column_and_grows_later() -> None:
    table = only(
        "create table t (a integer primary key autoincrement, b text not null unique references o,"
        " foreign key (b) references p(q)); ALTER TABLE t ADD COLUMN c int;"
    )
    assert [column.name for column in table.columns] == ["a", "b", "c"]
    assert table.primary_key == ("a",)
    assert [str(key.references) for key in table.foreign_keys] == ["o", "p"]
    assert table.unique == (("b",),)


def test_views_have_the_columns_of_their_query() -> None:
    plain, named = read_ddl(
        "CREATE MATERIALIZED VIEW v AS SELECT a, b AS c, count(*) AS n FROM t GROUP BY 1, 2;"
        "CREATE VIEW w (x, y) AS SELECT 1, 2;"
    )
    assert isinstance(plain, Table)
    assert isinstance(named, Table)
    assert plain.is_view
    assert [column.name for column in plain.columns] == ["a", "c", "n"]
    assert [column.name for column in named.columns] == ["x", "y"]


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


def test_a_table_reads_as_a_page() -> None:
    table = only(POSTGRES_DUMP)
    assert table_title(table) == "public.orders"
    assert table_text(table) == (
        "Table orders in schema public. What people bought; it's revenue\n\n"
        "Columns:\n\n"
        "- id: BIGINT, primary key.\n"
        "- custId (cust id): INT. who bought it\n"
        "- state: public.order_state, required.\n"
        "- total: DECIMAL(10, 2), required. with tax\n\n"
        "Keys:\n\n"
        "- custId refers to crm.customers (id).\n"
        "- Unique: state, total.\n"
    )


def test_foreign_keys_stand_in_the_metadata_for_the_graph() -> None:
    metadata = table_metadata(only(POSTGRES_DUMP), database="shop")
    assert metadata == {
        "kind": "table",
        "database": "shop",
        "schema": "public",
        "table": "orders",
        "is_view": False,
        "columns": [
            {"name": "id", "type": "BIGINT"},
            {"name": "custId", "type": "INT"},
            {"name": "state", "type": "public.order_state"},
            {"name": "total", "type": "DECIMAL(10, 2)"},
        ],
        "primary_key": ["id"],
        "foreign_keys": [
            {
                "columns": ["custId"],
                "references": "crm.customers",
                "referenced_columns": ["id"],
            }
        ],
    }


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
