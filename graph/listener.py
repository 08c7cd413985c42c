"""Keeps the graph in step with ingestion: called when passages are added, changed or
removed, in the same transaction.
"""

from collections.abc import Callable, Container, Mapping, Sequence
from functools import partial
from typing import Any

from django.db import connection, transaction
from django.db.models import QuerySet

from documents.models import Chunk, Collection
from graph import tasks
from graph.models import Evidence, Extraction, Mention
from graph.removal import mentioned_by, remove_extracted, remove_orphans

# A running extraction loses its token and is repeated.
_QUEUE_SQL = """
    INSERT INTO graph_extraction AS known (
        workspace_id, collection_id, document_id, run_id, state, recipe, attempts, outages, error,
        due_at, mentions, relations)
    SELECT document.workspace_id, document.collection_id, document.id,
           (SELECT max(item.run_id) FROM documents_ingestionitem AS item
            WHERE item.document_id = document.id),
           'waiting', '', 0, 0, '', now(), 0, 0
    FROM documents_document AS document
    JOIN documents_collection AS collection ON collection.id = document.collection_id
    WHERE {which} AND collection.graph <> 'off'
    ORDER BY document.id
    ON CONFLICT ON CONSTRAINT graph_extraction_document_id_key DO UPDATE
    SET state = 'waiting', attempts = 0, outages = 0, error = '', due_at = now(), token = NULL,
        leased_until = NULL, run_id = excluded.run_id,
        -- what is found is counted on the new run from nothing
        mentions = CASE WHEN known.run_id = excluded.run_id THEN known.mentions ELSE 0 END,
        relations = CASE WHEN known.run_id = excluded.run_id THEN known.relations ELSE 0 END
"""


# There is one row a document, by its number.
_MOVE_TO_VERSION_SQL = """
    UPDATE graph_node AS node
    SET document_id = version.current, key = 'doc:' || version.current
    FROM unnest(%s::bigint[], %s::bigint[]) AS version (former, current)
    WHERE node.document_id = version.former
"""


class GraphListener:
    """Implements `documents.ingestion.listeners.Listener` for the graph."""

    def loaded(self, document_ids: Sequence[int], *, plain: Container[int] = ()) -> None:
        """Queues the documents for extraction."""
        with connection.cursor() as cursor:
            cursor.execute(_QUEUE_SQL.format(which="document.id = ANY(%s)"), [list(document_ids)])
            waits = cursor.rowcount > 0
        if waits:
            transaction.on_commit(lambda: tasks.enqueue_extraction(document_ids))

    def rewritten(self, chunks: "QuerySet[Chunk]") -> None:
        """Removes the chunks' mentions and evidence, and resulting orphans; extraction
        follows with the documents.
        """
        ids = list(chunks.values_list("pk", flat=True))
        finish = self.leaving(Chunk.objects.filter(pk__in=ids))
        Evidence.objects.filter(chunk__in=ids)._raw_delete("default")
        Mention.objects.filter(chunk__in=ids)._raw_delete("default")
        if finish is not None:
            finish()

    def overtaken(self, versions: Mapping[int, int]) -> None:
        """Moves callers' edges of documents to the new version."""
        with connection.cursor() as cursor:
            cursor.execute(_MOVE_TO_VERSION_SQL, [list(versions), list(versions.values())])

    def ingested(self, document_ids: Sequence[int]) -> None:
        """Extracts the documents in this process."""
        tasks.extract_now(document_ids)

    def changed(self, collection: Collection) -> None:
        """Queues all documents, or removes what was extracted if the graph is off."""
        if collection.graph == Collection.Graph.OFF:
            remove_extracted(collection)
            return
        with connection.cursor() as cursor:
            cursor.execute(_QUEUE_SQL.format(which="document.collection_id = %s"), [collection.pk])
        transaction.on_commit(tasks.enqueue_recovery)

    def exported(self, document_ids: Sequence[int]) -> Mapping[str, Mapping[int, Any]]:
        """Nothing: the graph is read again where documents are imported."""
        return {}

    def imported(self, document_id: int, line: Mapping[str, Any]) -> None:
        """Nothing was exported."""

    def leaving(self, chunks: "QuerySet[Chunk]") -> Callable[[], Any] | None:
        """Called before chunks are deleted; returns a function that removes resulting
        orphans. Waits for a running extraction.
        """
        documents = chunks.order_by().values("document")
        rows = Extraction.objects.filter(document__in=documents).order_by("pk")
        list(rows.select_for_update().values_list("pk"))
        candidates = mentioned_by(chunks)
        if not candidates.nodes:
            return None
        return partial(remove_orphans, candidates)
