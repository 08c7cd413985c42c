"""Items into documents that only lack the vectors of texts that came without."""

import hashlib

from documents.chunkers import Embed, TokenCounter
from documents.ingestion.items import CheckedItem
from documents.ingestion.preparing import (
    PreparedChunk,
    PreparedDocument,
    Recipe,
    language_of,
    prepare_parsed,
)
from documents.parsers import ParsedDocument, content_sha256
from documents.parsers.metadata import readable_title


def prepare_item(
    item: CheckedItem,
    *,
    recipe: Recipe,
    counter: TokenCounter | None,
    embed: Embed | None = None,
) -> PreparedDocument:
    """The item as a document: cut like an uploaded text, or whole where it has its vector.

    `counter` is needed for texts without vector, `embed` to cut them by meaning. Raises ParseError.
    """
    title = str(item.declared.get("title") or readable_title(item.declared["file_name"]))
    if item.vector is not None:
        return _prepare_whole(item, title, recipe, counter)
    assert counter is not None
    return prepare_parsed(
        ParsedDocument(text=item.text, media_type="text/plain", title=title),
        name=item.id,
        recipe=recipe,
        counter=counter,
        declared=item.declared,
        embed=embed,
    )


def _prepare_whole(
    item: CheckedItem, title: str, recipe: Recipe, counter: TokenCounter | None
) -> PreparedDocument:
    """One passage. Without text it has no words and is of no language, so that it does not count
    among those of the collection's."""
    context = title if item.text else ""
    count = counter.count if counter else _count_words
    return PreparedDocument(
        title=title[:500],
        media_type="text/plain",
        rendering="plain",
        language=language_of(item.text, item.declared, recipe) if item.text else "",
        content_sha256=content_sha256(item.text),
        metadata=item.declared.get("metadata", {}),
        chunks=(
            PreparedChunk(
                ordinal=0,
                text=item.text,
                context=context,
                start=0,
                end=len(item.text),
                token_count=count(item.text),
                heading_path=(),
                page=None,
                key="",
                summary="",
                metadata={},
                content_sha256=_digest(context, item.source_sha256),
            ),
        ),
    )


def _digest(context: str, source_sha256: str) -> str:
    """Another title or another vector makes another chunk of the same text."""
    return hashlib.sha256(f"{len(context)}:{context}{source_sha256}".encode()).hexdigest()


def _count_words(text: str) -> int:
    """Where the space's own model cannot be asked."""
    return len(text.split())
