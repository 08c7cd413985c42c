"""All that the passages of a collection told of, forgotten."""

from django.db import transaction

from documents.models import Chunk, Collection, IngestionRun
from graph.models import Evidence, Extraction, Mention
from graph.storing.orphans import mentioned_by, remove_orphans


@transaction.atomic
def forget_collection(collection: Collection) -> int:
    """Take out all mentions and relations found in the collection; how many nodes went, too."""
    # First: whoever is recording what a document tells has that row, and is waited for.
    Extraction.objects.filter(collection=collection).delete()
    IngestionRun.objects.filter(collection=collection).update(mentions=0, relations=0)
    chunks = Chunk.objects.filter(collection=collection)
    candidates = mentioned_by(chunks)
    Evidence.objects.filter(chunk__in=chunks.values("pk"))._raw_delete("default")
    Mention.objects.filter(chunk__in=chunks.values("pk"))._raw_delete("default")
    return remove_orphans(candidates)
