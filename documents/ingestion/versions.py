"""Versions of a document: which row a new text goes into, and when readers see it.

All versions of a key have a row each. One is current; one above it waits to become so, if there is
any. Whoever changes one of them holds the current row first.
"""

import json
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.db import connection, transaction
from django.db.models import Q
from django.utils import timezone
from psycopg.types.json import Jsonb

from common.errors import Conflict
from documents.ingestion import listeners
from documents.ingestion.media import delete_files
from documents.models import Chunk, Collection, Document, IngestionItem, IngestionRun

#: A row that vanishes, or is overtaken, between two looks once is bad luck.
TRIES = 5


def compared_with(collection: Collection, keys: Iterable[str]) -> dict[str, Document]:
    """The rows that tell whether a new text of each key is new: the current ones, or versions on
    their way to become so. One that failed counts for nothing."""
    wanted = Q(is_current=True) | Q(status__in=[Document.Status.QUEUED, Document.Status.PROCESSING])
    rows = Document.objects.filter(wanted, collection=collection, key__in=list(keys))
    return {document.key: document for document in rows.order_by("version")}


# --- registering ---------------------------------------------------------------------------------


def hold_for_writing(
    collection: Collection, keys: Iterable[str], *, policy: str, make: Callable[[str], Document]
) -> dict[str, Document]:
    """The row that a new text of each key goes into, held to the end of the transaction.

    The current one; under the policy `new_version` one above it, unless nothing was ever loaded
    into the current one. A version that waits there already is taken: the newest text wins. Under
    other policies it is withdrawn. `make` gives the row of a key without any, complete: rows that
    were made are returned as the very objects that it gave.
    """
    current = _hold_current(collection, set(keys), make)
    waiting = _waiting_above(current)
    if policy != IngestionRun.Policy.NEW_VERSION:
        _withdraw(waiting, current)
        return current
    first = {key: row for key, row in current.items() if not row.has_text}
    _withdraw({key: row for key, row in waiting.items() if key in first}, first)
    made = [
        _successor(row, make(key))
        for key, row in sorted(current.items())
        if key not in first and key not in waiting
    ]
    insert(made)
    return {**current, **waiting, **{row.key: row for row in made}, **first}


def _hold_current(
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
        new = insert([make(key) for key in missing if key not in known])
        held |= {document.key: document for document in new}
        # A row that was overtaken, or deleted, while this waited for it is not current any more.
        others = rows.filter(key__in=[key for key in missing if key not in held])
        found = others.select_for_update(no_key=True).order_by("id")
        held |= {document.key: document for document in found}
    raise Conflict("Others change the same documents again and again. Try again in a moment.")


_SEQUENCE = "documents_document_id_seq"
_COLUMNS = [field.attname for field in Document._meta.concrete_fields if not field.primary_key]
_NAMES = ", ".join(_COLUMNS)
# Two parameters for all rows, what they have in common and what is their own: Django's bulk_create
# has one for each value of each.
_INSERT = f"""
    INSERT INTO documents_document (id, {_NAMES})
    SELECT coalesce(id, nextval('{_SEQUENCE}')), {_NAMES}
    FROM jsonb_populate_recordset(jsonb_populate_record(NULL::documents_document, %s), %s)
    ON CONFLICT DO NOTHING RETURNING id, key
"""  # noqa: S608 (the model's own columns)


def new_ids(count: int) -> list[int]:
    """Ids for rows that `insert` is to store."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT nextval(%s) FROM generate_series(1, %s)", [_SEQUENCE, count])
        return [pk for (pk,) in cursor.fetchall()]


def insert(documents: Sequence[Document]) -> list[Document]:
    """Insert rows of different keys, and return those whose keys nobody else inserted meanwhile."""
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
    parameters: list[Any] = [Jsonb(common, dumps=_dumps), Jsonb(rows, dumps=_dumps)]
    with connection.cursor() as cursor:
        cursor.execute(_INSERT, parameters)
        ids = {key: pk for pk, key in cursor.fetchall()}
    made = [document for document in documents if document.key in ids]
    for document in made:
        document.pk = ids[document.key]
        document._state.adding = False
    return made


def _dumps(rows: Any) -> str:
    """Dates, ids and file names are written as texts, which PostgreSQL reads as their columns'."""
    return json.dumps(rows, default=str)


def _waiting_above(current: dict[str, Document]) -> dict[str, Document]:
    """Versions above the current one, held. Nobody else adds one, because that is held too."""
    rows = Document.objects.filter(
        collection__in={row.collection_id for row in current.values()},
        key__in=current,
        is_current=False,
    ).filter(version__gt=1)
    above = [row.pk for row in rows if row.version > current[row.key].version]
    held = Document.objects.select_for_update(no_key=True).filter(pk__in=above).order_by("pk")
    return {row.key: row for row in held}


def _successor(current: Document, made: Document) -> Document:
    made.version = current.version + 1
    made.is_current = False
    made.access = current.access
    return made


def _withdraw(waiting: dict[str, Document], current: dict[str, Document]) -> None:
    """Remove versions that an older upload wanted; whoever waits for them waits for the new text
    of the current ones."""
    files = [str(row.file.name) for row in waiting.values() if row.file]
    for key, row in waiting.items():
        IngestionItem.objects.filter(document=row).update(document=current[key])
    if waiting:
        Document.objects.filter(pk__in=[row.pk for row in waiting.values()]).delete()
        transaction.on_commit(lambda: delete_files(files))


# --- loading -------------------------------------------------------------------------------------

# In the order of their ids, as everywhere: two cannot wait for each other.
_HOLD = """
    SELECT id, collection_id, key, version, is_current, claimed_by, chunk_count
    FROM documents_document
    WHERE id IN (
        SELECT unnest(%(ids)s::bigint[])
        UNION SELECT current.id FROM documents_document AS waiting
              JOIN documents_document AS current USING (collection_id, key)
              WHERE waiting.id = ANY(%(ids)s) AND NOT waiting.is_current AND current.is_current
        UNION SELECT id FROM documents_document WHERE duplicate_of_id = ANY(%(ids)s)
    )
    ORDER BY id
    FOR NO KEY UPDATE
"""


@dataclass(frozen=True, slots=True)
class Held:
    """Documents whose rows are held for loading: `ids` of those that are ours to load, by id the
    current version of each that is not current itself, and which of these take its place. Those
    that have chunks are `filled`."""

    ids: frozenset[int]
    filled: frozenset[int]
    current: dict[int, int]
    overtakes: frozenset[int]
    behind: frozenset[int]

    def becomes_current(self, document_id: int) -> bool:
        """Whether its chunks are to be found."""
        return document_id not in self.behind


@dataclass(frozen=True, slots=True)
class _Row:
    id: int
    collection_id: int
    key: str
    version: int
    is_current: bool
    claimed_by: UUID | None
    chunk_count: int

    @property
    def identity(self) -> tuple[int, str]:
        return self.collection_id, self.key


def hold_for_loading(document_ids: Sequence[int], *, token: UUID) -> Held:
    """Hold the rows that `token` has a claim on, the current versions that they are to follow, and
    the duplicates that lean on any of them."""
    with connection.cursor() as cursor:
        cursor.execute(_HOLD, {"ids": list(document_ids)})
        rows = [_Row(*row) for row in cursor.fetchall()]
    wanted = set(document_ids)
    mine = [row for row in rows if row.id in wanted and row.claimed_by == token]
    current = {row.identity: row for row in rows if row.is_current}
    waiting = [row for row in mine if not row.is_current]
    overtakes = {
        row.id
        for row in waiting
        if row.identity not in current or row.version > current[row.identity].version
    }
    return Held(
        ids=frozenset(row.id for row in mine),
        filled=frozenset(row.id for row in mine if row.chunk_count),
        current={row.id: current[row.identity].id for row in waiting if row.identity in current},
        overtakes=frozenset(overtakes),
        behind=frozenset(row.id for row in waiting) - overtakes,
    )


def overtake(held: Held) -> None:
    """Put each waiting version in the place of the current one, whose chunks are found no more."""
    if not held.overtakes:
        return
    old = [held.current[new] for new in held.overtakes if new in held.current]
    chunks = Chunk.objects.filter(document__in=old)
    chunks.update(is_current=False)
    Document.objects.filter(pk__in=old).update(is_current=False)
    Document.objects.filter(pk__in=held.overtakes).update(is_current=True)
    listeners.overtaken({held.current[new]: new for new in held.overtakes if new in held.current})


_KNOWN = """
    SELECT waiting.id, chunk.content_sha256, chunk.id
    FROM unnest(%s::bigint[], %s::bigint[]) AS waiting (id, current_id)
    JOIN documents_chunk AS chunk ON chunk.document_id = waiting.current_id
    WHERE chunk.embedding IS NOT NULL
"""


def known_chunks(current: Mapping[int, int]) -> dict[tuple[int, str], int]:
    """Chunks with a vector that documents can take over, by document and content: those of another
    version of each."""
    if not current:
        return {}
    with connection.cursor() as cursor:
        cursor.execute(_KNOWN, [list(current), list(current.values())])
        return {(document_id, digest): pk for document_id, digest, pk in cursor.fetchall()}


_COPY = """
    INSERT INTO documents_chunk (
        workspace_id, collection_id, document_id, space_id, ordinal, key, text, context,
        heading_path, summary, token_count, start, "end", page, parent, media_type, metadata,
        access, language, embedding, content_sha256, is_current)
    SELECT chunk.workspace_id, chunk.collection_id, new.document_id, chunk.space_id, new.ordinal,
           new.key, chunk.text, chunk.context, new.heading_path, new.summary, new.token_count,
           new.start, new."end", new.page, new.parent, new.media_type, new.metadata,
           document.access, new.language::regconfig, chunk.embedding, chunk.content_sha256,
           document.is_current
    FROM jsonb_to_recordset(%s) AS new (
        source bigint, document_id bigint, ordinal int, key text, heading_path text[],
        summary text, token_count int, start bigint, "end" bigint, page int, parent int,
        media_type text, metadata jsonb, language text)
    JOIN documents_chunk AS chunk ON chunk.id = new.source
    JOIN documents_document AS document ON document.id = new.document_id
"""


def copy_chunks(rows: Sequence[Mapping[str, Any]]) -> None:
    """New chunks with the text and the vector of others, `source`, and places of their own. A
    vector stays in the space that it is of: one that is being re-embedded is so here, too."""
    if not rows:
        return
    parameters: list[Any] = [Jsonb(rows)]
    with connection.cursor() as cursor:
        cursor.execute(_COPY, parameters)


# --- failing -------------------------------------------------------------------------------------


def failure_notes(document_ids: Sequence[int]) -> dict[str, list[int]]:
    """What to say besides of documents that could not be ingested, with the documents: of a version
    that it was to follow another one, which stays."""
    notes: dict[str, list[int]] = defaultdict(list)
    rows = Document.objects.filter(pk__in=document_ids).values_list("pk", "is_current", "version")
    for pk, is_current, version in rows:
        notes["" if is_current else _STAYS.format(version, version - 1)].append(pk)
    return notes


_STAYS = " It was to be version {}; version {} stays current."
