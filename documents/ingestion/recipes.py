"""How a collection has its documents parsed and cut."""

from typing import Any

from django.conf import settings

from documents.embedders import embedder_for
from documents.ingestion.contents import Content
from documents.ingestion.preparing import PreparedDocument, Recipe, prepare
from documents.ingestion.stopwatch import Stopwatch
from documents.models import Collection
from documents.parsing import ParserLimits

#: A document is loaded in one transaction, and its vectors are in memory together.
MAX_VECTOR_BYTES = 256 * 1024 * 1024
VECTOR_ITEM_BYTES = 4


def recipe_of(collection: Collection) -> Recipe:
    """How this collection's documents are cut and embedded."""
    return Recipe(
        chunker=collection.chunker,
        chunker_options=collection.chunker_options,
        space_id=collection.space_id,
        model_name=collection.space.model_name,
        language=collection.default_language,
        fallback_language=settings.FALLBACK_LANGUAGE,
    )


def parser_limits() -> ParserLimits:
    """What one file may cost."""
    return ParserLimits(
        seconds=settings.PARSER_SECONDS,
        memory_bytes=settings.PARSER_MEMORY_BYTES,
        max_bytes=settings.MAX_UPLOAD_BYTES,
    )


def prepare_for(
    collection: Collection,
    content: Content | bytes,
    *,
    name: str,
    declared: dict[str, Any],
    watch: Stopwatch,
) -> PreparedDocument:
    """Parse and cut a document of `collection`, each timed by `watch`. Raises ParseError."""
    embedder = embedder_for(collection.space)
    return prepare(
        content,
        name=name,
        recipe=recipe_of(collection),
        counter=embedder.token_counter(),
        declared=declared,
        limits=parser_limits(),
        max_chunks=MAX_VECTOR_BYTES // (VECTOR_ITEM_BYTES * embedder.dimensions),
        embed=embedder.embed_documents,
        watch=watch,
    )
