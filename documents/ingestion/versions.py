"""Versions of a document: which row a new text goes into, and when readers see it.

All versions of a key have a row each. One is current; at most one above it waits to become current.
Whoever changes one of them locks the current row first.
"""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.db import connection, transaction
from django.db.models import Q
from django.utils import timezone
from django.utils.translation import gettext
from psycopg.types.json import Jsonb

from common.errors import Conflict
from documents.ingestion import listeners
from documents.ingestion.stored_files import delete_files
from documents.models import Chunk, Collection, Document, IngestionItem, IngestionRun

#: Attempts when a row is deleted or superseded between two statements.
TRIES = 5


def documents_to_compare(collection: Collection, keys: Iterable[str]) -> dict[str, Document]:
    """The rows that a new text of each key is compared with: the current ones, or versions waiting
    to become current. A failed version does not count."""
    wanted = Q(is_current=True) | Q(status__in=[Document.Status.QUEUED, Document.Status.PROCESSING])
    rows = Document.objects.filter(wanted, collection=collection, key__in=list(keys))
    return {document.key: document for document in rows.order_by("version")}


# --- registering ---------------------------------------------------------------------------------


def lock_for_writing(
    collection: Collection, keys: Iterable[str], *, policy: str, make: Callable[[str], Document]
) -> dict[str, Document]:
    """The row for a new text of each key, locked until the end of the transaction.

    The current one; under the policy `new_version` one above it, unless nothing was ever loaded
    into the current one. A version that already waits is reused: the newest text wins. Other
    policies withdraw it. `make` gives the complete row of a new key; such rows are returned as the
    same objects.
    """
    current = _lock_current(collection, set(keys), make)
    # Versions above the current one, locked. Nobody can add one, because the current row is locked
    # too.
    rows = Document.objects.filter(
        collection__in={row.collection_id for row in current.values()},
        key__in=current,
        is_current=False,
    ).filter(version__gt=1)
    above = [row.pk for row in rows if row.version > current[row.key].version]
    held = Document.objects.select_for_update(no_key=True).filter(pk__in=above).order_by("pk")
    waiting = {row.key: row for row in held}
    if policy != IngestionRun.Policy.NEW_VERSION:
        _withdraw_versions(waiting, current)
        return current
    first = {key: row for key, row in current.items() if not row.has_text}
    _withdraw_versions({key: row for key, row in waiting.items() if key in first}, first)
    made: list[Document] = []
    for key, row in sorted(current.items()):
        if key not in first and key not in waiting:
            following = make(key)
            following.version, following.is_current = row.version + 1, False
            following.access = row.access
            made.append(following)
    insert_documents(made)
    return {**current, **waiting, **{row.key: row for row in made}, **first}


def _lock_current(
    collection: Collection, keys: set[str], make: Callable[[str], Document]
) -> dict[str, Document]:
    rows = Document.objects.filter(collection=collection, is_current=True)
    held: dict[str, Document] = {}
    for _ in range(TRIES):
        missing = sorted(keys - held.keys())
        if not missing:
            return held
        known = set(rows.filter(key__in=missing).values_list("key", flat=True))
        # Two that register the same new key at once: the second waits for the first, then finds it.
        new = insert_documents([make(key) for key in missing if key not in known])
        held |= {document.key: document for document in new}
        # A row that was overtaken, or deleted, while this waited for it is not current any more.
        others = rows.filter(key__in=[key for key in missing if key not in held])
        found = others.select_for_update(no_key=True).order_by("id")
        held |= {document.key: document for document in found}
    raise Conflict(
        gettext("Other requests keep changing the same documents. Try again in a moment.")
    )


_SEQUENCE = "documents_document_id_seq"
_COLUMNS = [field.attname for field in Document._meta.concrete_fields if not field.primary_key]
_COLUMN_NAMES = ", ".join(_COLUMNS)
# Two parameters for all rows, what they have in common and what is their own: Django's bulk_create
# has one for each value of each.
_INSERT = f"""
    INSERT INTO documents_document (id, {_COLUMN_NAMES})
    SELECT coalesce(id, nextval('{_SEQUENCE}')), {_COLUMN_NAMES}
    FROM jsonb_populate_recordset(jsonb_populate_record(NULL::documents_document, %s), %s)
    ON CONFLICT DO NOTHING RETURNING id, key
"""  # noqa: S608 (the model's own columns)


def new_ids(count: int) -> list[int]:
    """Ids for rows that `insert_documents` is to store."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT nextval(%s) FROM generate_series(1, %s)", [_SEQUENCE, count])
        return [pk for (pk,) in cursor.fetchall()]


def insert_documents(documents: Sequence[Document]) -> list[Document]:
    """Insert rows of different keys; returns those whose keys nobody else inserted meanwhile."""
    if not documents:
        return []
    now = timezone.now()
    for document in documents:
        document.created_at = document.updated_at = now
    # Not by their attributes: a file's is made to be read, and takes longer than all others.
    first = vars(documents[0])
    common = {name: first[name] for name in _COLUMNS}
    rows = [
        {"id": own["id"]} | {name: own[name] for name in _COLUMNS if own[name] is not first[name]}
        for own in map(vars, documents)
    ]
    parameters: list[Any] = [Jsonb(common, dumps=_json_rows), Jsonb(rows, dumps=_json_rows)]
    with connection.cursor() as cursor:
        cursor.execute(_INSERT, parameters)
        ids = {key: pk for pk, key in cursor.fetchall()}
    made = [document for document in documents if document.key in ids]
    for document in made:
        document.pk = ids[document.key]
        document._state.adding = False
    return made


def _json_rows(rows: Any) -> str:
    """Dates, ids and file names are written as texts, which PostgreSQL reads as their columns'."""
    return json.dumps(rows, default=str)


def _withdraw_versions(waiting: dict[str, Document], current: dict[str, Document]) -> None:
    """Delete waiting versions of an older upload; whoever waits for them now waits for the new text
    of the current ones."""
    files = [str(row.file.name) for row in waiting.values() if row.file]
    for key, row in waiting.items():
        IngestionItem.objects.filter(document=row).update(document=current[key])
    if waiting:
        Document.objects.filter(pk__in=[row.pk for row in waiting.values()]).delete()
        transaction.on_commit(lambda: delete_files(files))


# --- loading -------------------------------------------------------------------------------------

# In the order of their ids, as everywhere: two cannot wait for each other.
_LOCK_DOCUMENTS = """
    SELECT id, collection_id, key, version, is_current, claimed_by, chunk_count
    FROM documents_document
    WHERE id IN (
        SELECT unnest(%(ids)s::bigint[])
        UNION SELECT current.id FROM documents_document AS waiting
              -- OFFSET 0: looked up for each, not joined with all documents
              CROSS JOIN LATERAL (
                  SELECT id FROM documents_document
                  WHERE collection_id = waiting.collection_id AND key = waiting.key AND is_current
                  OFFSET 0
              ) AS current
              WHERE waiting.id = ANY(%(ids)s) AND NOT waiting.is_current
        UNION SELECT id FROM documents_document WHERE duplicate_of_id = ANY(%(ids)s)
    )
    ORDER BY id
    FOR NO KEY UPDATE
"""


@dataclass(frozen=True, slots=True)
class LockedDocuments:
    """Documents locked for loading: `ids` are those that the token claims, `with_chunks` those that
    have some already. `current` has by id the current version of each that is not current;
    `superseding` are those that replace it, and `behind` those older than it."""

    ids: frozenset[int]
    with_chunks: frozenset[int]
    current: dict[int, int]
    superseding: frozenset[int]
    behind: frozenset[int]


def lock_for_loading(document_ids: Sequence[int], *, token: UUID) -> LockedDocuments:
    """Lock the rows that `token` claims, the current versions that they are to replace, and the
    aliases of any of them."""
    locked = Document.objects.using("default").raw(_LOCK_DOCUMENTS, {"ids": list(document_ids)})
    rows = list(locked)
    wanted = set(document_ids)
    mine = [row for row in rows if row.id in wanted and row.claimed_by == token]
    current_rows = {(row.collection_id, row.key): row for row in rows if row.is_current}
    waiting = {
        row: current_rows.get((row.collection_id, row.key)) for row in mine if not row.is_current
    }
    overtakes = {
        row.id for row, current in waiting.items() if not current or row.version > current.version
    }
    return LockedDocuments(
        ids=frozenset(row.id for row in mine),
        with_chunks=frozenset(row.id for row in mine if row.chunk_count),
        current={row.id: current.id for row, current in waiting.items() if current},
        superseding=frozenset(overtakes),
        behind=frozenset(row.id for row in waiting) - overtakes,
    )


def supersede(locked: LockedDocuments) -> None:
    """Make each waiting version the current one; the chunks of the former are no longer
    searched."""
    if not locked.superseding:
        return
    old = [locked.current[new] for new in locked.superseding if new in locked.current]
    chunks = Chunk.objects.filter(document__in=old)
    chunks.update(is_current=False)
    Document.objects.filter(pk__in=old).update(is_current=False)
    Document.objects.filter(pk__in=locked.superseding).update(is_current=True)
    listeners.overtaken(
        {locked.current[new]: new for new in locked.superseding if new in locked.current}
    )


_CURRENT_CHUNKS = """
    SELECT waiting.id, chunk.content_sha256, chunk.id
    FROM unnest(%s::bigint[], %s::bigint[]) AS waiting (id, current_id)
    JOIN documents_chunk AS chunk ON chunk.document_id = waiting.current_id
    WHERE chunk.embedding IS NOT NULL
"""


def chunks_of_current_versions(current: Mapping[int, int]) -> dict[tuple[int, str], int]:
    """Chunks with a vector in the current version of each document, by document and content
    hash."""
    if not current:
        return {}
    with connection.cursor() as cursor:
        cursor.execute(_CURRENT_CHUNKS, [list(current), list(current.values())])
        return {(document_id, digest): pk for document_id, digest, pk in cursor.fetchall()}


#: Columns of a chunk that the database does not fill in by itself.
_CHUNK_COLUMNS = [
    str(field.column)
    for field in Chunk._meta.concrete_fields
    if not field.generated and field.column not in {"id", "index_id"}
]


def chunk_copies(changed: Mapping[str, str], tables: str) -> str:
    """`INSERT` of copies of the chunks `chunk` in `tables`, with other values (SQL) by column."""
    names = ", ".join(f'"{name}"' for name in _CHUNK_COLUMNS)
    values = ", ".join(changed.get(name, f'chunk."{name}"') for name in _CHUNK_COLUMNS)
    return f"INSERT INTO documents_chunk ({names}) SELECT {values} FROM {tables}"  # noqa: S608


_COPY = chunk_copies(
    {
        "document_id": "document.id",
        "access": "document.access",
        "is_current": "document.is_current",
        "language": "new.language::regconfig",
        **{
            name: f'new."{name}"'
            for name in (
                *("ordinal", "key", "heading_path", "summary", "token_count", "start", "end"),
                *("page", "parent", "media_type", "metadata"),
            )
        },
    },
    """jsonb_to_recordset(%s) AS new (
        source bigint, document_id bigint, ordinal int, key text, heading_path text[],
        summary text, token_count int, start bigint, "end" bigint, page int, parent int,
        media_type text, metadata jsonb, language text)
    JOIN documents_chunk AS chunk ON chunk.id = new.source
    JOIN documents_document AS document ON document.id = new.document_id""",
)


def copy_chunks(rows: Sequence[Mapping[str, Any]]) -> None:
    """Insert chunks with the text and vector of others, `source`, at their own positions. The
    vector's space is kept, also while it is being re-embedded."""
    if not rows:
        return
    parameters: list[Any] = [Jsonb(rows)]
    with connection.cursor() as cursor:
        cursor.execute(_COPY, parameters)
