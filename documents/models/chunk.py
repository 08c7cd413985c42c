"""Chunks, their edits, and the inverted index of their words: posting lists in segments, as search
engines keep them, in rows.

`documents/lexical_index.py` writes the tables of the index and tells how they work together.
"""

import re
from itertools import count

from django.contrib.postgres.fields import ArrayField
from django.contrib.postgres.indexes import GinIndex
from django.contrib.postgres.search import SearchVectorField
from django.db import models
from django.utils.translation import gettext_lazy
from pgvector.django import VectorField

from accounts.models import User, Workspace, WorkspaceOwnedQuerySet
from common.fields import LexemeField, RegConfigField, ToTSVector
from common.search_vector import Words, joined
from documents.models.collection import Collection, EmbeddingSpace
from documents.models.document import Document
from documents.querysets import AccessListedQuerySet
from reading.location import PAGE_LABEL, location

#: Context (title and headings) has weight A, so that ranking can tell it from the text (D).
SEARCH_VECTOR = joined(
    ToTSVector("language", Words("context"), weight="A"),
    ToTSVector("language", Words("text"), weight="D"),
)


#: Keys, hashes, serial numbers: ASCII letters and digits in turn, and the signs behind them.
_IDENTIFIER = re.compile(
    r"(?<![A-Za-z0-9])(?=[A-Za-z]+[0-9]+[A-Za-z]|[0-9]+[A-Za-z]+[0-9])"
    r"[A-Za-z0-9]{12,}+[\s,;:|\"']*"
)
_EMBEDDED_IDENTIFIERS = 4


def text_in_context(context: str, text: str) -> str:
    """Context and text joined, in the order in which they are indexed."""
    return f"{context}\n{text}" if context else text


def embedding_text(context: str, text: str) -> str:
    """What the embedding model reads of a chunk: context and text.

    Of a text that is mostly identifiers only the first four of them stay, beside all words: they
    have three times as many tokens as prose of their length, and mean nothing to the model.
    """
    identifiers = _IDENTIFIER.findall(text)
    if len(identifiers) > _EMBEDDED_IDENTIFIERS and 2 * sum(map(len, identifiers)) > len(text):
        numbers = count()
        text = _IDENTIFIER.sub(
            lambda found: found[0] if next(numbers) < _EMBEDDED_IDENTIFIERS else "", text
        )
    return text_in_context(context, text)


class NextIndexId(models.Func):
    """The next value of the sequence behind `Chunk.index_id`."""

    template = "nextval('documents_chunk_index_id')"
    output_field = models.BigIntegerField()


class Chunk(models.Model):
    """A passage of a document, with everything that searching needs.

    Workspace, collection, media type and access are copied from the document, so that no search
    needs a join to filter. `text` is displayed; `context` (title and headings) is indexed and
    embedded with it, but never displayed as part of it.
    """

    workspace = models.ForeignKey(Workspace, models.CASCADE, related_name="+", db_index=False)
    collection = models.ForeignKey(Collection, models.CASCADE, related_name="+", db_index=False)
    document = models.ForeignKey(Document, models.CASCADE, related_name="chunks", db_index=False)
    space = models.ForeignKey(EmbeddingSpace, models.PROTECT, related_name="+", db_index=False)
    ordinal = models.PositiveIntegerField()
    key = models.CharField(max_length=1024, blank=True)
    text = models.TextField()
    context = models.TextField(blank=True)
    heading_path = ArrayField(models.TextField(), default=list, blank=True)
    summary = models.TextField(blank=True)
    token_count = models.PositiveIntegerField(default=0)
    start = models.PositiveBigIntegerField(help_text=gettext_lazy("Offset of the first character."))
    end = models.PositiveBigIntegerField(
        help_text=gettext_lazy("Offset behind the last character.")
    )
    page = models.PositiveIntegerField(null=True, blank=True)
    parent = models.PositiveIntegerField(
        null=True,
        blank=True,
        help_text=gettext_lazy(
            "Chunks of a document with the same number are parts of one larger passage."
        ),
    )
    is_current = models.BooleanField(
        default=True,
        db_default=True,
        help_text=gettext_lazy(
            "False for a superseded version: readable, and searched only when asked for."
        ),
    )
    media_type = models.CharField(max_length=100, blank=True)
    metadata = models.JSONField(default=dict, blank=True)
    access = ArrayField(models.CharField(max_length=80), null=True, blank=True)
    language = RegConfigField(max_length=63, default="simple")
    search_vector = models.GeneratedField(
        expression=SEARCH_VECTOR, output_field=SearchVectorField(), db_persist=True
    )
    index_id = models.BigIntegerField(
        editable=False,
        db_default=NextIndexId(),
        help_text=gettext_lazy(
            "What the lexical index knows these words by: another one once they change."
        ),
    )
    embedding = VectorField(null=True, blank=True)
    content_sha256 = models.CharField(max_length=64)

    objects = AccessListedQuerySet["Chunk"].as_manager()

    class Meta:
        ordering = ["document_id", "ordinal"]
        constraints = [
            # Deferred, so that unchanged chunks can move up or down in one transaction.
            models.UniqueConstraint(
                fields=["document", "ordinal", "workspace"],
                name="chunk_document_ordinal_unique",
                deferrable=models.Deferrable.DEFERRED,
            ),
        ]
        indexes = [
            models.Index(fields=["collection", "space"], name="chunk_collection_space_index"),
            models.Index(fields=["index_id"], name="chunk_index_id_index"),
            # Equality in filters: 0.2 ms instead of 75 ms among 100,000 chunks, for 35 µs a chunk.
            GinIndex(
                fields=["metadata"],
                opclasses=["jsonb_path_ops"],
                name="chunk_metadata_index",
                fastupdate=False,
            ),
            # Tells at once whether anything in a collection is kept from anybody.
            models.Index(
                fields=["collection"],
                condition=models.Q(access__isnull=False),
                name="chunk_restricted_index",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.document_id}#{self.ordinal}"

    @property
    def location(self) -> str:
        """Where it begins: `page 3`, `12:34` of a recording, `Prices!A12`; empty if not known."""
        return location(
            self.media_type,
            self.page,
            heading_path=self.heading_path,
            text=self.text,
            label=self.metadata.get(PAGE_LABEL),
        )


class ChunkTokens(models.Model):
    """A passage's tokens as the token encoder reads them, for late interaction, or the claim of a
    worker that encodes them (`leased_until`). Deleted with the passage, by the database.

    Of a passage whose `content_sha256` differs the text has changed since; without `bits` it has no
    token, or was given up. What was read is each section of it, below title and headings.
    """

    chunk = models.OneToOneField(
        Chunk, models.DO_NOTHING, primary_key=True, related_name="+", db_constraint=False
    )
    workspace = models.ForeignKey(
        Workspace, models.DO_NOTHING, related_name="+", db_index=False, db_constraint=False
    )
    model = models.CharField(max_length=200, help_text=gettext_lazy("Name of the token encoder."))
    content_sha256 = models.CharField(max_length=64)
    bits = models.BinaryField(
        default=bytes, help_text=gettext_lazy("A bit a dimension, token after token.")
    )
    starts = models.BinaryField(
        default=bytes,
        help_text=gettext_lazy(
            "Offset of each token in the text, 32 bits, little-endian; -1 in title and headings."
        ),
    )
    ends = models.BinaryField(
        default=bytes, help_text=gettext_lazy("Offsets behind the tokens, likewise.")
    )
    attempts = models.PositiveSmallIntegerField(default=0)
    token = models.UUIDField(null=True, blank=True, editable=False)
    leased_until = models.DateTimeField(null=True, blank=True)

    objects = WorkspaceOwnedQuerySet["ChunkTokens"].as_manager()

    class Meta:
        verbose_name = verbose_name_plural = gettext_lazy("tokens of a passage")

    def __str__(self) -> str:
        return f"Tokens of passage {self.chunk_id}"


class ChunkEdit(models.Model):
    """One edit of one passage: its text before and after.

    It outlives the passage: when the document is ingested again it is reapplied, wherever `before`
    is then. If `before` is gone the edit is a conflict, until somebody dismisses it.
    """

    class State(models.TextChoices):
        APPLIED = "applied", gettext_lazy("Applied")
        CONFLICT = "conflict", gettext_lazy("not applied: the source has changed there")
        UNDONE = "undone", gettext_lazy("Undone")
        CLOSED = "closed", gettext_lazy("Closed")

    workspace = models.ForeignKey(Workspace, models.CASCADE, related_name="+", db_index=False)
    document = models.ForeignKey(Document, models.CASCADE, related_name="edits")
    chunk = models.BigIntegerField(
        help_text=gettext_lazy("Id of the passage; it may be gone since.")
    )
    start = models.PositiveBigIntegerField(
        help_text=gettext_lazy("Offset of the passage when it was changed.")
    )
    before = models.TextField()
    after = models.TextField()
    state = models.CharField(max_length=8, choices=State, default=State.APPLIED)
    user = models.ForeignKey(User, models.SET_NULL, null=True, blank=True, related_name="+")
    created_at = models.DateTimeField(auto_now_add=True)
    settled_by = models.ForeignKey(
        User,
        models.SET_NULL,
        null=True,
        blank=True,
        related_name="+",
        help_text=gettext_lazy("Who undid or dismissed it."),
    )
    settled_at = models.DateTimeField(null=True, blank=True)

    objects = WorkspaceOwnedQuerySet["ChunkEdit"].as_manager()

    class Meta:
        ordering = ["-id"]

    def __str__(self) -> str:
        # Without its text: the admin's log keeps this for ever.
        return f"Edit {self.pk} of document {self.document_id}"


class LexicalSegment(models.Model):
    """A batch of a collection's chunks in one language, indexed together and immutable.

    `is_current` segments hold chunks of current versions, the others those of superseded ones.
    """

    workspace = models.ForeignKey(Workspace, models.CASCADE, related_name="+", db_index=False)
    collection = models.ForeignKey(Collection, models.CASCADE, related_name="lexical_segments")
    language = RegConfigField(max_length=63)
    is_current = models.BooleanField()
    chunk_count = models.PositiveIntegerField(
        help_text=gettext_lazy("Chunks with words, those since removed among them.")
    )
    wordless_count = models.PositiveIntegerField(
        help_text=gettext_lazy("Chunks without: vectors alone.")
    )
    total_length = models.PositiveBigIntegerField(
        help_text=gettext_lazy("Sum of the chunks' lengths.")
    )
    created_at = models.DateTimeField(auto_now_add=True)

    objects = WorkspaceOwnedQuerySet["LexicalSegment"].as_manager()

    class Meta:
        verbose_name = gettext_lazy("search index segment")

    def __str__(self) -> str:
        return f"{self.collection} · {self.language} · {self.pk}"


class Posting(models.Model):  # noqa: DJ008 (no page shows one)
    """A lexeme's occurrences in the chunks of a segment whose index ids begin with `base`.

    `data` is `common.bm25.pack`'s. The lexeme '' lists all chunks of the segment.
    """

    pk = models.CompositePrimaryKey("segment_id", "lexeme", "base", "workspace_id")
    workspace = models.ForeignKey(
        Workspace, models.DO_NOTHING, related_name="+", db_index=False, db_constraint=False
    )
    segment_id = models.BigIntegerField()
    lexeme = LexemeField()
    base = models.BigIntegerField(
        help_text=gettext_lazy("Index id of the block's beginning, by 65,536.")
    )
    data = models.BinaryField()


class PendingChunk(models.Model):  # noqa: DJ008
    """A chunk that is in no segment yet: searches use its `PendingPosting`s."""

    pk = models.CompositePrimaryKey("collection_id", "index_id", "workspace_id")
    workspace = models.ForeignKey(
        Workspace, models.DO_NOTHING, related_name="+", db_index=False, db_constraint=False
    )
    collection_id = models.BigIntegerField()
    index_id = models.BigIntegerField()


class PendingPosting(models.Model):  # noqa: DJ008
    """A lexeme's occurrences in pending chunks that one statement wrote; `index_id` is the first of
    them. The lexeme '' lists all of these chunks.

    `entries` are packed: index id (from bit 24 on), frequency (8 bits), length (16 bits).
    """

    pk = models.CompositePrimaryKey("collection_id", "lexeme", "index_id", "workspace_id")
    workspace = models.ForeignKey(
        Workspace, models.DO_NOTHING, related_name="+", db_index=False, db_constraint=False
    )
    collection_id = models.BigIntegerField()
    lexeme = LexemeField()
    index_id = models.BigIntegerField()
    language = RegConfigField(max_length=63)
    is_current = models.BooleanField()
    entries = ArrayField(models.BigIntegerField())


class RemovedChunk(models.Model):  # noqa: DJ008
    """An index id without a chunk: searches skip its postings.

    `length` is the chunk's length as its segment counts it.
    """

    pk = models.CompositePrimaryKey("collection_id", "index_id", "workspace_id")
    workspace = models.ForeignKey(
        Workspace, models.DO_NOTHING, related_name="+", db_index=False, db_constraint=False
    )
    collection_id = models.BigIntegerField()
    index_id = models.BigIntegerField()
    language = RegConfigField(max_length=63)
    is_current = models.BooleanField()
    length = models.PositiveIntegerField()


class Lexeme(models.Model):  # noqa: DJ008
    """A lexeme in some segment of a collection: the vocabulary for “did you mean”."""

    pk = models.CompositePrimaryKey("collection_id", "language", "lexeme", "workspace_id")
    workspace = models.ForeignKey(
        Workspace, models.DO_NOTHING, related_name="+", db_index=False, db_constraint=False
    )
    collection_id = models.BigIntegerField()
    language = RegConfigField(max_length=63)
    lexeme = LexemeField()

    class Meta:
        indexes = [
            GinIndex(fields=["lexeme"], opclasses=["gin_trgm_ops"], name="lexeme_similar_index")
        ]
