"""The tables that a question is about, and what they are catalogued with."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from django.db.models import Q

from documents.catalogue.reading import needs_text, table_of
from documents.catalogue.tables import Table
from documents.models import Chunk, Document
from documents.services import joined_text
from rag.context import RagContext
from rag.passage import Passage
from rag.sql.catalogue import Catalogue
from rag.sql.ranking import ranked
from rag.tools.reading import passage_of
from rag.tools.sight import readable
from search.results import Hit
from search.services import search

#: Tables that are shown to a model because the question fits them.
MOST_FOUND = 10
#: Looked at before the best of them are chosen.
MOST_RANKED = 50
#: Databases whose other tables are shown, too, as far as there is room.
MOST_DATABASES = 2
MOST_SHOWN = 40
#: Catalogued tables of the databases of what was found.
MAX_TABLES = 5_000
#: Of how many tables without structured columns the text is read.
MAX_READ = 1_000

#: A database of one collection.
Database = tuple[int, str]


@dataclass(frozen=True, slots=True)
class Described:
    """A table as its document tells of it. `text` is the document's, `passage` its beginning."""

    table: Table
    database: str
    text: str
    passage: Passage


@dataclass(frozen=True, slots=True)
class Finding:
    """`tables` are those that may answer, the likeliest first, and behind them others of their
    databases; `databases` everything that is catalogued of these, for checking."""

    tables: tuple[Described, ...] = ()
    databases: tuple[Catalogue, ...] = ()
    degraded: tuple[str, ...] = ()

    def described(self, table: Table, database: str) -> Described | None:
        """What tells of `table`, if it was shown."""
        for each in self.tables:
            if (each.table.name, each.database) == (table.name, database):
                return each
        return None


def find_tables(
    context: RagContext,
    question: str,
    *,
    collection: str = "",
    database: str = "",
    limit: int = MOST_FOUND,
) -> Finding:
    """The tables for `question` among all that the caller may see, or in `collection`, or of
    `database`. Their passages are numbered for citing, in this order.

    Raises NotFound for a collection that is not there, and Forbidden.
    """
    found, degraded = _ranked(context, question, collection, database, limit)
    if not found:
        return Finding(degraded=degraded)
    rows = _catalogued(context, collection, list(dict.fromkeys(map(_database, found))))
    shown = [*found, *_relatives(found, rows)][:MOST_SHOWN]
    texts = _texts([*shown, *(row for row in rows if needs_text(row.metadata))][:MAX_READ])
    tables = {row.pk: table_of(row.metadata, texts.get(row.pk, "")) for row in [*rows, *found]}
    described = _described(context, shown, tables, texts)
    return Finding(described, tuple(_catalogues(found, rows, tables)), degraded)


def rank_tables(
    context: RagContext,
    question: str,
    *,
    collection: str = "",
    database: str = "",
    limit: int = MOST_FOUND,
) -> tuple[list[Hit], tuple[str, ...]]:
    """Passages of the tables that fit best, one a table, and what of the search did not work."""
    only = {"kind": "table", **({"database": database} if database else {})}
    scope = context.search_scope((collection,) if collection else (), filter=only)
    result = search(question, scope=scope, k=MOST_RANKED, group=True, snippets=False)
    scored = [
        (hit.rank, (hit.collection_id, hit.metadata.get("database")), hit.fused)
        for hit in result.hits
    ]
    by_rank = {hit.rank: hit for hit in result.hits}
    if result.reranked:
        # A reranker has read them, and its order is worth more than any of these shares.
        return list(result.hits[:limit]), result.degraded
    return [by_rank[rank] for rank in ranked(scored)[:limit]], result.degraded


def _ranked(
    context: RagContext, question: str, collection: str, database: str, limit: int
) -> tuple[list[Document], tuple[str, ...]]:
    hits, degraded = rank_tables(
        context, question, collection=collection, database=database, limit=limit
    )
    rows = Document.objects.select_related("collection").in_bulk([hit.document_id for hit in hits])
    return [rows[hit.document_id] for hit in hits if hit.document_id in rows], degraded


def _database(document: Document) -> Database:
    return document.collection_id, str(document.metadata.get("database", ""))


def _catalogued(
    context: RagContext, collection: str, databases: Sequence[Database]
) -> list[Document]:
    """All tables of these databases that the caller may see."""
    of_them = Q()
    for collection_id, database in databases:
        of_them |= Q(collection_id=collection_id, metadata__database=database)
    rows = readable(context, collection=collection, metadata__contains={"kind": "table"})
    return list(rows.filter(of_them).order_by("key")[:MAX_TABLES])


def _relatives(found: Sequence[Document], rows: Iterable[Document]) -> list[Document]:
    """Other tables of the likeliest databases: first those that keys lead to or come from."""
    likeliest = list(dict.fromkeys(map(_database, found)))[:MOST_DATABASES]
    there = {document.pk for document in found}
    keys = {(*_database(document), document.key) for document in found}
    led = {(*_database(document), name) for document in found for name in _references(document)}
    others = [row for row in rows if row.pk not in there and _database(row) in likeliest]

    def distance(row: Document) -> tuple[int, bool]:
        own = (*_database(row), row.key)
        back = any((*_database(row), name) in keys for name in _references(row))
        return likeliest.index(_database(row)), not (own in led or back)

    return sorted(others, key=distance)


def _references(document: Document) -> list[str]:
    keys = document.metadata.get("foreign_keys")
    listed = keys if isinstance(keys, list) else []
    return [
        str(key["references"]) for key in listed if isinstance(key, Mapping) and "references" in key
    ]


def _texts(documents: Iterable[Document]) -> dict[int, str]:
    """The whole texts, by document."""
    chunks: dict[int, list[Chunk]] = {document.text_id: [] for document in documents}
    rows = Chunk.objects.filter(document__in=chunks).only("document_id", "text", "start", "end")
    for chunk in rows.order_by("document_id", "ordinal"):
        chunks[chunk.document_id].append(chunk)
    return {document.pk: joined_text(chunks[document.text_id]) for document in documents}


def _described(
    context: RagContext,
    documents: Sequence[Document],
    tables: Mapping[int, Table | None],
    texts: Mapping[int, str],
) -> tuple[Described, ...]:
    ids = {document.text_id for document in documents}
    rows = Chunk.objects.filter(document__in=ids, ordinal=0).defer("embedding", "search_vector")
    first = {chunk.document_id: chunk for chunk in rows}
    kept = [
        (document, table, first[document.text_id])
        for document in documents
        if (table := tables.get(document.pk)) is not None and document.text_id in first
    ]
    passages = context.found.add(passage_of(document, chunk) for document, _, chunk in kept)
    return tuple(
        Described(table, _database(document)[1], texts.get(document.pk, ""), passage)
        for (document, table, _), passage in zip(kept, passages, strict=True)
    )


def _catalogues(
    found: Iterable[Document], rows: Iterable[Document], tables: Mapping[int, Table | None]
) -> Iterable[Catalogue]:
    """The databases, in the order in which something of each was found."""
    of: dict[Database, dict[int, Table]] = {_database(document): {} for document in found}
    for row in [*rows, *found]:
        table = tables.get(row.pk)
        if table is not None and _database(row) in of:
            of[_database(row)][row.pk] = table
    return [Catalogue(database[1], tuple(by_id.values())) for database, by_id in of.items()]
