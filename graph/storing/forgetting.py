"""All that the passages of a collection told of, forgotten."""

from django.db import transaction

from documents.models import Chunk, Collection
from graph.models import Evidence, Extraction, Mention
from graph.storing.orphans import mentioned_by, remove_orphans


@transaction.atomic
def forget_collection(collection: Collection) -> int:
    """Take out all mentions and relations found in the collection; how many nodes went, too."""
    chunks = Chunk.objects.filter(collection=collection)
    candidates = mentioned_by(chunks)
    Evidence.objects.filter(chunk__in=chunks.values("pk"))._raw_delete("default")
    Mention.objects.filter(chunk__in=chunks.values("pk"))._raw_delete("default")
    Extraction.objects.filter(collection=collection).delete()
    return remove_orphans(candidates)
