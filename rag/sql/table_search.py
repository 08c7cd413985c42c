"""Find the tables a question is about, and the prompt that has a chat model write SQL for them.
Begin with `find_tables`.
"""

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from django.db.models import Q

from documents.catalogue.tables import Table, columns_need_text, table_of
from documents.ingestion.text_changes import join_passages
from documents.models import Chunk, Document
from documents.sql.catalogue import Catalogue
from rag.context import RagContext
from rag.events import Passage
from rag.tools.document_tools import passage_from_chunk, readable_documents
from search.results import Hit
from search.services import search

#: Share of its database's best score that is added to a table's score, because tables of one
#: database answer together. On Spider's questions any share from 0.1 to 0.3 helps.
DATABASE_SHARE = 0.3


#: Tables in the prompt because they fit the question.
MAX_FOUND = 10
#: Tables retrieved before the best are chosen.
MAX_RANKED = 50
#: Databases whose other tables are added while there is room.
MAX_DATABASES = 2
MAX_SHOWN = 40
#: Tables loaded of the databases found.
MAX_TABLES = 5_000
#: Tables whose text is read, at most.
MAX_TEXTS_READ = 1_000

#: A database in one collection: (collection id, label).
DatabaseKey = tuple[int, str]


@dataclass(frozen=True, slots=True)
class TableDescription:
    """A table as its document describes it. `text` is the document's, `passage` its first chunk."""

    table: Table
    database: str
    text: str
    passage: Passage


@dataclass(frozen=True, slots=True)
class TableSearchResult:
    """`tables` are likely tables, best first, followed by others of their databases; `databases` is
    everything catalogued of these, for checking."""

    tables: tuple[TableDescription, ...] = ()
    databases: tuple[Catalogue, ...] = ()

    def described(self, table: Table, database: str) -> TableDescription | None:
        """The description of `table`, if it is in `tables`."""
        for each in self.tables:
            if (each.table.name, each.database) == (table.name, database):
                return each
        return None


def find_tables(context: RagContext, question: str, *, collection: str = "") -> TableSearchResult:
    """The tables for `question` among all the caller may see, or in `collection`. Their passages
    are numbered for citing, in this order. Raises NotFound for an unknown collection, and
    Forbidden."""
    hits = rank_tables(context, question, collection=collection)
    by_id = Document.objects.select_related("collection").in_bulk([hit.document_id for hit in hits])
    found = [by_id[hit.document_id] for hit in hits if hit.document_id in by_id]
    if not found:
        return TableSearchResult()
    of_them = Q()
    for collection_id, label in dict.fromkeys(map(_database_key, found)):
        of_them |= Q(collection_id=collection_id, metadata__database=label)
    tables_seen = readable_documents(
        context, collection=collection, metadata__contains={"kind": "table"}
    )
    rows = list(tables_seen.filter(of_them).order_by("key")[:MAX_TABLES])
    selected = [*found, *_related_tables(found, rows)][:MAX_SHOWN]
    needed = [*selected, *(row for row in rows if columns_need_text(row.metadata))][:MAX_TEXTS_READ]
    chunks: dict[int, list[Chunk]] = {document.text_id: [] for document in needed}
    parts = Chunk.objects.filter(document__in=chunks).only("document_id", "text", "start", "end")
    for chunk in parts.order_by("document_id", "ordinal"):
        chunks[chunk.document_id].append(chunk)
    texts = {document.pk: join_passages(chunks[document.text_id]) for document in needed}
    tables = {row.pk: table_of(row.metadata, texts.get(row.pk, "")) for row in [*rows, *found]}
    described = _describe_tables(context, selected, tables, texts)
    # The databases, in the order in which their tables were found.
    of: dict[DatabaseKey, dict[int, Table]] = {_database_key(document): {} for document in found}
    for row in [*rows, *found]:
        table = tables.get(row.pk)
        if table is not None and _database_key(row) in of:
            of[_database_key(row)][row.pk] = table
    databases = tuple(Catalogue(key[1], tuple(by_pk.values()), key[0]) for key, by_pk in of.items())
    return TableSearchResult(described, databases)


def rank_tables(context: RagContext, question: str, *, collection: str = "") -> list[Hit]:
    """Passages of the best tables, one per table."""
    scope = context.search_scope((collection,) if collection else (), filter={"kind": "table"})
    result = search(question, scope=scope, k=MAX_RANKED, group=True, snippets=False)
    best: dict[Hashable, float] = {}
    for hit in result.hits:
        database_key = (hit.collection_id, hit.metadata.get("database"))
        best[database_key] = max(hit.score, best.get(database_key, hit.score))

    def score(hit: Hit) -> float:
        database_key = (hit.collection_id, hit.metadata.get("database"))
        return hit.score + DATABASE_SHARE * best[database_key]

    return sorted(result.hits, key=score, reverse=True)[:MAX_FOUND]


def _database_key(document: Document) -> DatabaseKey:
    return document.collection_id, str(document.metadata.get("database", ""))


def _related_tables(found: Sequence[Document], rows: Iterable[Document]) -> list[Document]:
    """Other tables of the likeliest databases, those linked by foreign keys first."""
    likeliest = list(dict.fromkeys(map(_database_key, found)))[:MAX_DATABASES]
    there = {document.pk for document in found}
    keys = {(*_database_key(document), document.key) for document in found}
    led = {(*_database_key(document), name) for document in found for name in _references(document)}
    others = [row for row in rows if row.pk not in there and _database_key(row) in likeliest]

    def distance(row: Document) -> tuple[int, bool]:
        own = (*_database_key(row), row.key)
        back = any((*_database_key(row), name) in keys for name in _references(row))
        return likeliest.index(_database_key(row)), not (own in led or back)

    return sorted(others, key=distance)


def _references(document: Document) -> list[str]:
    keys = document.metadata.get("foreign_keys")
    listed = keys if isinstance(keys, list) else []
    return [
        str(key["references"]) for key in listed if isinstance(key, Mapping) and "references" in key
    ]


def _describe_tables(
    context: RagContext,
    documents: Sequence[Document],
    tables: Mapping[int, Table | None],
    texts: Mapping[int, str],
) -> tuple[TableDescription, ...]:
    ids = {document.text_id for document in documents}
    rows = Chunk.objects.filter(document__in=ids, ordinal=0).defer("embedding", "search_vector")
    first = {chunk.document_id: chunk for chunk in rows}
    described_rows = [
        (document, table, first[document.text_id])
        for document in documents
        if (table := tables.get(document.pk)) is not None and document.text_id in first
    ]
    passages = context.found.add(
        passage_from_chunk(document, chunk) for document, _, chunk in described_rows
    )
    return tuple(
        TableDescription(table, _database_key(document)[1], texts.get(document.pk, ""), passage)
        for (document, table, _), passage in zip(described_rows, passages, strict=True)
    )


#: Characters of one table's text; a longer one is replaced by its columns' names and types.
MAX_TABLE_CHARACTERS = 3_000
MAX_COLUMNS = 300

SQL_RULES = """\
You write SQL that answers a question from a database. Each block below describes one table under \
its number; blocks with another “database” belong to another database.

Rules:
- Write one SELECT statement (WITH is allowed) that only reads, {dialect}.
- Use only tables and columns that the blocks name, spelt as they are there, and tables of one \
database only. Put names that are no plain words in quotes.
- Answer with the statement alone, in a block that begins with ```sql and ends with ```.
- If the tables do not hold what the question asks for, write exactly: {not_found}\
"""
SQL_RETRY = """\
That statement does not fit the tables: {reason}

Write it anew, by the same rules.\
"""
#: Behind `sql_rules` where the query is run.
RUN_RULES = """\
The statement is run. Use plain SELECTs with joins, aggregates, window functions, and usual \
functions of numbers, texts and dates; no functions in FROM, no recursion, no arrays and no JSON. \
Order the rows, and name computed columns in the words of the question.\
"""
NO_SQL_IN_REPLY = (
    "There is no SQL statement in the reply. Write one, in a block that begins with ```sql."
)


def sql_rules(*, dialect: str, not_found: str) -> str:
    """The system rules for writing SQL in `dialect`."""
    of = f"in the dialect of {dialect}" if dialect else "in standard SQL"
    return SQL_RULES.format(dialect=of, not_found=not_found)


def describe_table(described: TableDescription) -> tuple[str, str]:
    """A table as (heading, text); the number in the heading is that of its citation."""
    heading = (
        f"[{described.passage.number}] table {described.table.name},"
        f" database “{described.database}”"
    )
    if len(described.text) <= MAX_TABLE_CHARACTERS:
        return heading, described.text
    names: Iterable[str] = (
        f"{column.name} {column.type}".strip() for column in described.table.columns[:MAX_COLUMNS]
    )
    more = len(described.table.columns) - MAX_COLUMNS
    rest = [f"and {more} more"] if more > 0 else []
    column_list = f"Columns: {', '.join([*names, *rest])}"
    return heading, column_list


def fit_tables(
    tables: Sequence[TableDescription], *, budget: int, count: Callable[[str], int]
) -> list[TableDescription]:
    """The first tables that fit into the token budget, at least one."""
    fitting_tables: list[TableDescription] = []
    for described in tables:
        budget -= count("\n".join(describe_table(described))) + 20
        if budget < 0 and fitting_tables:
            break
        fitting_tables.append(described)
    return fitting_tables
