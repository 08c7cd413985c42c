"""What the graph does when passages come and go, in the same transaction."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from django.db import connection, transaction
from django.db.models import QuerySet

from documents.models import Chunk, Collection
from graph import tasks
from graph.models import Evidence, Extraction, Mention
from graph.storing.forgetting import forget_collection
from graph.storing.orphans import mentioned_by, remove_orphans

# One that is being read meanwhile is read again: its token is taken away.
_WAIT = """
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
_FOLLOW = """
    UPDATE graph_node AS node
    SET document_id = version.current, key = 'doc:' || version.current
    FROM unnest(%s::bigint[], %s::bigint[]) AS version (former, current)
    WHERE node.document_id = version.former
"""


class GraphListener:
    """See `documents.ingestion.listeners.Listener`."""

    def loaded(self, document_ids: Sequence[int]) -> None:
        """Have the documents read."""
        with connection.cursor() as cursor:
            cursor.execute(_WAIT.format(which="document.id = ANY(%s)"), [list(document_ids)])
            waits = cursor.rowcount > 0
        if waits:
            transaction.on_commit(lambda: tasks.enqueue_extraction(document_ids))

    def rewritten(self, chunks: "QuerySet[Chunk]") -> None:
        """What they told is forgotten at once, with what only they mentioned; it is read anew with
        their documents."""
        ids = list(chunks.values_list("pk", flat=True))
        finish = self.leaving(Chunk.objects.filter(pk__in=ids))
        Evidence.objects.filter(chunk__in=ids)._raw_delete("default")
        Mention.objects.filter(chunk__in=ids)._raw_delete("default")
        if finish is not None:
            finish()

    def overtaken(self, versions: Mapping[int, int]) -> None:
        """What callers tied to the documents is tied to what these say now."""
        with connection.cursor() as cursor:
            cursor.execute(_FOLLOW, [list(versions), list(versions.values())])

    def ingested(self, document_ids: Sequence[int]) -> None:
        """Read them at once."""
        tasks.extract_now(document_ids)

    def changed(self, collection: Collection) -> None:
        """Have all documents read again, or forget what was read."""
        if collection.graph == Collection.Graph.OFF:
            forget_collection(collection)
            return
        with connection.cursor() as cursor:
            cursor.execute(_WAIT.format(which="document.collection_id = %s"), [collection.pk])
        transaction.on_commit(tasks.enqueue_recovery)

    def leaving(self, chunks: "QuerySet[Chunk]") -> Callable[[], Any] | None:
        """Mentions go with the passages; what only they mentioned goes after. Whoever is recording
        what the documents tell is waited for."""
        documents = chunks.order_by().values("document")
        rows = Extraction.objects.filter(document__in=documents).order_by("pk")
        list(rows.select_for_update().values_list("pk"))
        candidates = mentioned_by(chunks)
        if not candidates.nodes:
            return None
        return partial(remove_orphans, candidates)
