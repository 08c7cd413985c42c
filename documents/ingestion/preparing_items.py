"""Items into documents that only lack the vectors of texts that came without."""

import hashlib
from dataclasses import replace

from documents.chunkers import Embed, TokenCounter
from documents.ingestion.items import CheckedItem
from documents.ingestion.preparing import (
    MAX_CHUNK_CHARACTERS,
    PreparedDocument,
    Recipe,
    prepare_parsed,
)
from documents.parsers import ParsedChunk, ParsedDocument
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
    parsed = ParsedDocument(text=item.text, media_type="text/plain", title=title)
    if item.vector is None:
        assert counter is not None
        return prepare_parsed(
            parsed,
            name=item.id,
            recipe=recipe,
            counter=counter,
            declared=item.declared,
            embed=embed,
        )
    return _prepare_whole(item, parsed, recipe, counter or _Words())


def _prepare_whole(
    item: CheckedItem, parsed: ParsedDocument, recipe: Recipe, counter: TokenCounter
) -> PreparedDocument:
    """One passage. Without text it has no words and is of no language, so that it does not count
    among those of the collection's."""
    context = parsed.title if item.text else ""
    given = replace(parsed, chunks=(ParsedChunk(key="", text=item.text, context=context),))
    prepared = prepare_parsed(
        given, name=item.id, recipe=recipe, counter=counter, declared=item.declared
    )
    return replace(
        prepared,
        language=prepared.language if item.text else "",
        chunks=tuple(
            replace(chunk, language="", content_sha256=_digest(chunk.context, item.source_sha256))
            for chunk in prepared.chunks
        ),
    )


def _digest(context: str, source_sha256: str) -> str:
    """Another title or another vector makes another chunk of the same text."""
    return hashlib.sha256(f"{len(context)}:{context}{source_sha256}".encode()).hexdigest()


class _Words:
    """Counts words, where the space's own model cannot be asked."""

    max_tokens = MAX_CHUNK_CHARACTERS
    tokenizer = None

    def count(self, text: str) -> int:
        return len(text.split())
