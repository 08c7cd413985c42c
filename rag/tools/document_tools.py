"""The tools of a chat model that list, read and search documents.

Stored text is shown as data that cannot forge a line of a tool's own answer.
"""

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Any, Literal

from django.db import connection
from django.db.models import Count, Q
from django.utils.translation import gettext
from pydantic import Field, WithJsonSchema

from common.errors import EmbedderUnavailable, InvalidInput, NotFound
from common.options import Options
from common.text import count_heading, escape_nonprinting, json_quoted, truncated
from common.tools import between, nonempty
from documents.models import Chunk, Collection, Document
from documents.querysets import DocumentQuerySet
from rag.answering.evidence import passage_url
from rag.context import RagContext
from rag.events import Passage
from reading.location import PAGE_LABEL
from search.filters.tree import MAX_CHARACTERS as MAX_FILTER_CHARACTERS
from search.hit_rows import row_lines
from search.query import MAX_QUERY_CHARACTERS
from search.query_options import RetrievalOptions
from search.results import Scope, SearchResult
from search.retrieval.statements import scope_conditions
from search.services import search

#: Characters of all texts in one answer, and of a single one.
MAX_RESULT_CHARACTERS = 40_000
MAX_TEXT_CHARACTERS = 4_000
MAX_NAME_CHARACTERS = 200

#: Limits of arguments.
MAX_RESULTS = 50
MAX_ID_CHARACTERS = 1024
MAX_SLUG_CHARACTERS = 63
MAX_OFFSET = 1_000_000_000
MAX_VECTOR_NUMBERS = 16_000

Query = Annotated[
    str, nonempty("A question, or words that the passages hold.", most=MAX_QUERY_CHARACTERS)
]
AnyCollection = Annotated[
    str,
    Field(
        max_length=MAX_SLUG_CHARACTERS,
        description="Slug of a collection, as list_collections tells it. Default: all.",
    ),
]
NOTHING_SIMILAR = "No similar documents found."


def format_passages(
    passages: Sequence[Passage],
    scores: Sequence[float],
    rows: Mapping[int, Sequence[str]] | None = None,
) -> str:
    """Passages with their citation numbers, best first. `rows` are rows of tables in words, by
    passage: they come before its text, so that it is clear which column a value is of."""
    if not passages:
        return NOTHING_SIMILAR
    most = min(MAX_TEXT_CHARACTERS, MAX_RESULT_CHARACTERS // len(passages))
    entries = (
        f"\n--- Document {place} (score: {score:.3f}) ---\n"
        f"{format_location(passage)}\n{_best_rows((rows or {}).get(passage.chunk_id, ()))}"
        f"{prefix_lines(truncated(passage.text, most))}"
        for place, (passage, score) in enumerate(zip(passages, scores, strict=True), 1)
    )
    return "\n".join([f"Found {len(passages)} relevant documents:", *entries])


def _best_rows(rows: Sequence[str]) -> str:
    if not rows:
        return ""
    shown = prefix_lines("\n".join(rows))
    return f"Rows that fit best:\n{shown}\nText:\n"


def format_location(passage: Passage) -> str:
    """A passage's location: `[1] "Title > Heading", page 2, collection "notes", id "a.md"`."""
    parts = [quote_name(passage.heading)]
    if location := passage.location():
        parts.append(location)
    parts.append(f"collection {quote_name(passage.collection_slug)}")
    parts.append(f"id {json_quoted(passage.document_key)}")
    return f"[{passage.number}] {', '.join(parts)}"


def quote_name(text: str) -> str:
    """A name on one line, in quotes, truncated."""
    return json_quoted(truncated(text, MAX_NAME_CHARACTERS))


def prefix_lines(text: str) -> str:
    """Prefix every line of `text` with a bar, which no line of the tool's own text begins with."""

    def escape(letter: str) -> str:
        return letter if letter == "\t" else json.dumps(letter)[1:-1]

    return "\n".join(f"| {escape_nonprinting(line, escape)}" for line in text.splitlines())


#: Documents checked against a filter, at most.
MAX_FILTERED_DOCUMENTS = 20_000

_MATCHING_DOCUMENTS = """
SELECT DISTINCT chunk.document_id FROM documents_chunk AS chunk
WHERE chunk.document_id = ANY(%(documents)s) AND {condition}"""


def readable_documents(
    context: RagContext, *, collection: str = "", **wanted: Any
) -> "DocumentQuerySet[Document]":
    """Current documents in the context's collections, or in `collection`, that match the lookups
    `wanted`; if the context has a filter, those with a matching passage. Raises NotFound for a
    collection the caller cannot see."""
    scope = context.search_scope((collection,) if collection else ())
    # The site itself, as a command, reads everything.
    current = Document.objects.current()
    documents = (
        (current if context.user is None else current.visible_to(context.user))
        .filter(workspace=context.workspace, collection_id__in=scope.collection_ids)
        .filter(**wanted)
        .select_related("collection")
        .defer("declared")
    )
    if not scope.is_filtered:
        return documents
    rows = documents.values_list("pk", "duplicate_of", "chunk_count")[:MAX_FILTERED_DOCUMENTS]
    condition, parameters = scope_conditions(scope)
    parameters |= {"documents": [pk if chunks else (of or pk) for pk, of, chunks in rows]}
    with connection.cursor() as cursor:
        cursor.execute(_MATCHING_DOCUMENTS.format(condition=condition), parameters)
        fit = {document_id for (document_id,) in cursor.fetchall()}
    # The text of a link is the original's.
    return documents.filter(Q(pk__in=fit) | Q(chunk_count=0, duplicate_of__in=fit))


MAX_LISTED = 200
MAX_COLUMNS = 40


def list_collections(*, scope: RagContext) -> str:
    """The collections of documents that can be searched."""
    ids = scope.search_scope().collection_ids
    collections = list(Collection.objects.filter(pk__in=ids).order_by("slug")[:MAX_LISTED])
    numbers = Counter(
        dict(
            readable_documents(scope, collection__in=collections)
            .values_list("collection_id")
            .annotate(Count("pk"))
            .values_list("collection_id", "pk__count")
        )
    )
    lines = []
    for place, collection in enumerate(collections, 1):
        about = f": {quote_name(collection.description)}" if collection.description else ""
        lines.append(
            f"{place}. {quote_name(collection.slug)} ({quote_name(collection.name)}),"
            f" {numbers[collection.pk]:,} document(s){about}"
        )
    return "\n".join([count_heading(len(ids), "collection(s)"), *lines, *_omitted_line(len(ids))])


def list_tables(
    *,
    scope: RagContext,
    database: Annotated[
        str, Field(max_length=500, description="Only of this database. Default: of all.")
    ] = "",
    collection: AnyCollection = "",
    name_contains: Annotated[
        str, Field(max_length=200, description="Only tables in whose names this stands.")
    ] = "",
) -> str:
    """The tables of databases that are described here, with their columns."""
    wanted = {"kind": "table", **({"database": database} if database else {})}
    tables = readable_documents(
        scope,
        collection=collection,
        metadata__contains=wanted,
        **({"key__icontains": name_contains} if name_contains else {}),
    )
    number = tables.count()
    visible = tables.order_by("key", "collection__slug")[:MAX_LISTED]
    lines = []
    for place, document in enumerate(visible, 1):
        metadata: Mapping[str, Any] = document.metadata
        kind = "view" if metadata.get("is_view") else "table"
        line = (
            f"{place}. {quote_name(document.key)}, {kind} of database"
            f" {quote_name(str(metadata.get('database', '')))},"
            f" collection {quote_name(document.collection.slug)}"
        )
        # Metadata may come from anyone: anything else than columns with names is ignored.
        columns = metadata.get("columns")
        names = [
            str(column["name"])
            for column in (columns if isinstance(columns, list) else [])
            if isinstance(column, Mapping) and "name" in column
        ]
        if names:
            more = ", …" if len(names) > MAX_COLUMNS else ""
            line += f": {', '.join(map(quote_name, names[:MAX_COLUMNS]))}{more}"
        lines.append(line)
    return "\n".join([count_heading(number, "table(s)"), *lines, *_omitted_line(number)])


def _omitted_line(number: int) -> Iterable[str]:
    return [f"… and {number - MAX_LISTED} more."] if number > MAX_LISTED else []


#: Characters of one answer; longer documents are read in parts.
MAX_READ_CHARACTERS = 20_000
#: Documents with the same id that are looked up, in different collections.
MAX_SAME_ID = 20


def named_document(context: RagContext, id: str, collection: str = "") -> Document:
    """The current document with this id that the caller may read. Raises NotFound, and InvalidInput
    where several collections have one."""
    found = list(readable_documents(context, collection=collection, key=id)[:MAX_SAME_ID])
    if not found:
        raise NotFound(
            gettext("Document not found: {id}. Look for it with hybrid_query.").format(
                id=quote_name(id)
            )
        )
    if len(found) > 1:
        slugs = sorted(document.collection.slug for document in found)
        raise InvalidInput(
            gettext(
                "Several collections have a document {id}. Name one of the collections: {slugs}."
            ).format(id=quote_name(id), slugs=", ".join(slugs))
        )
    return found[0]


def get_document(
    *,
    scope: RagContext,
    id: Annotated[str, nonempty("Its id, such as handbook/leave.md.", most=MAX_ID_CHARACTERS)],
    collection: Annotated[
        str, Field(max_length=MAX_SLUG_CHARACTERS, description="The collection that it is in.")
    ] = "",
    start: Annotated[int, between(0, MAX_OFFSET, "The character from which to read on.")] = 0,
) -> str:
    """Read a document by its id, as a search tells it. A long one is read in parts."""
    document = named_document(scope, id, collection)
    # The chunks from the one that contains `start`, as many as fit into one answer.
    texts = Chunk.objects.filter(document=document.text_id)
    rows = (
        texts.filter(end__gt=int(start))
        .defer("embedding", "search_vector", "metadata")
        .order_by("ordinal")
    )
    chunks: list[Chunk] = []
    for chunk in rows.iterator(chunk_size=50):
        if chunks and chunk.end - chunks[0].start > MAX_READ_CHARACTERS:
            break
        chunks.append(chunk)
    title = quote_name(document.display_title)
    first = f"Document {title}, collection {quote_name(document.collection.slug)}"
    if not chunks:
        what = "There is no text behind this place." if int(start) else "It has no text yet."
        return f"{first}. {what}"
    passages = scope.found.add(passage_from_chunk(document, chunk) for chunk in chunks)
    length = texts.order_by("-end").values_list("end", flat=True)[0]
    end, reached = chunks[-1].end, chunks[0].start
    lines = [f"{first}, characters {reached} to {end} of {length}:"]
    for passage in passages:
        lines.append(f"\n[{passage.number}] {passage.location()}".rstrip())
        lines.append(prefix_lines(passage.text[max(reached - passage.start, 0) :]))
        reached = passage.end
    if end < length:
        lines.append(f"\nThere is more: read on with start {end}.")
    return "\n".join(lines)


def passage_from_chunk(document: Document, chunk: Chunk, *, number: int = 0) -> Passage:
    """A passage without scores."""
    return Passage(
        number=number,
        chunk_id=chunk.pk,
        document_id=document.pk,
        document_key=document.key,
        version=document.version,
        collection_slug=document.collection.slug,
        title=document.display_title,
        heading_path=tuple(chunk.heading_path),
        page=chunk.page,
        text=chunk.text,
        start=chunk.start,
        end=chunk.end,
        url=passage_url(document.collection.slug, document.pk, chunk.pk),
        language=document.language,
        rank=0,
        similarity=None,
        lexical=None,
        fused=0.0,
        rerank=None,
        media_type=document.media_type,
        page_label=str(chunk.metadata.get(PAGE_LABEL, "")),
    )


class PassageOptions(Options):
    """Which passages a tool brings."""

    k: int = Field(default=5, ge=1, le=MAX_RESULTS, description="How many passages at most.")
    filter: Annotated[
        str | Mapping[str, Any] | None,
        WithJsonSchema({"type": ["object", "string"], "maxLength": MAX_FILTER_CHARACTERS}),
    ] = Field(
        default=None,
        description="What documents must be like, such as"
        ' {"year": {"$gte": 2020}, "language": "de"}, by their metadata. Default: any.',
    )
    collection: AnyCollection = ""

    def scope(self, context: RagContext) -> Scope:
        """What a search looks at. Raises as `RagContext.search_scope`."""
        collections = (self.collection,) if self.collection else ()
        return context.search_scope(collections, filter=self.filter)


ANY_PASSAGES = PassageOptions()
NO_OPTIONS = RetrievalOptions()
LEXICAL_ONLY = "Search by meaning does not work just now: these hold the words of the query."


def similarity_search(
    *,
    scope: RagContext,
    query: Query,
    wanted: PassageOptions = ANY_PASSAGES,
) -> str:
    """Find passages of the user's documents that mean what the query means. Each is shown with the
    number [n] by which to cite it."""
    options: dict[str, Any] = {
        "scope": wanted.scope(scope),
        "k": wanted.k,
        "rerank": scope.search_options.get("rerank"),
        "snippets": False,
        "rows": True,
    }
    try:
        result = search(query, mode="vector", **options)
    except EmbedderUnavailable:
        result = search(query, mode="lexical", **options)
        return f"{_format_result(scope, result)}\n\n{LEXICAL_ONLY}"
    return _format_result(scope, result)


def hybrid_query(
    *,
    scope: RagContext,
    query: Query,
    wanted: PassageOptions = ANY_PASSAGES,
    mode: Annotated[
        Literal["hybrid", "graph"],
        Field(
            description="graph: also passages that name what the best ones name, for questions"
            " whose answer lies in several documents."
        ),
    ] = "hybrid",
    options: RetrievalOptions = NO_OPTIONS,
) -> str:
    """Find passages of the user's documents by words and by meaning: better than similarity_search
    for names, codes and exact terms. Each is shown with the number [n] by which to cite it."""
    chosen = {**scope.search_options, **options.given()}
    result = search(
        query,
        scope=wanted.scope(scope),
        mode=mode,
        k=wanted.k,
        snippets=False,
        rows=True,
        **chosen,
    )
    text = _format_result(scope, result)
    return f"{text}\n\n{LEXICAL_ONLY}" if result.lexical_only else text


def search_words(
    *,
    scope: RagContext,
    query: Query,
    wanted: PassageOptions = ANY_PASSAGES,
) -> str:
    """Find passages of the user's documents that hold the words of the query, ranked by BM25. Each
    is shown with the number [n] by which to cite it."""
    return _format_result(
        scope,
        search(
            query,
            scope=wanted.scope(scope),
            mode="lexical",
            k=wanted.k,
            snippets=False,
            rows=True,
        ),
    )


def search_vector(
    *,
    scope: RagContext,
    vector: Annotated[
        Sequence[float],
        Field(
            min_length=1,
            max_length=MAX_VECTOR_NUMBERS,
            description="As many numbers as the collection's vectors have.",
        ),
    ],
    wanted: PassageOptions = ANY_PASSAGES,
) -> str:
    """Find passages of the user's documents by a vector of your own, made by the model of the
    collection. Each is shown with the number [n] by which to cite it."""
    import numpy as np  # noqa: PLC0415  (every command would load it)

    with np.errstate(over="ignore"):  # an overflow becomes infinite
        query_vector = np.asarray(vector, dtype=np.float32)
    if not np.isfinite(query_vector).all() or not query_vector.any():
        raise InvalidInput(
            gettext("A vector needs finite numbers, at least one of them not 0."), field="vector"
        )
    result = search(
        "",
        scope=wanted.scope(scope),
        mode="vector",
        k=wanted.k,
        vector=query_vector,
        snippets=False,
    )
    return _format_result(scope, result)


def _format_result(scope: RagContext, result: SearchResult) -> str:
    scores = []
    for hit in result.hits:
        own = {"vector": hit.similarity, "lexical": hit.lexical}.get(result.mode)
        scores.append(hit.score if own is None or result.reranked else own)
    rows = {hit.chunk_id: lines for hit in result.hits if (lines := row_lines(hit))}
    return format_passages(scope.found.collect(result.hits), scores, rows)
