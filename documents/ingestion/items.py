"""Items: what a program stores under an id of its own, as text, as a vector, or as both. A batch is
stored completely or not at all. Begin with `write_items`."""

import hashlib
import re
from collections import defaultdict
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from copy import copy
from dataclasses import dataclass, field
from functools import partial
from typing import Any
from uuid import uuid4

import numpy as np
from django.conf import settings
from django.db import IntegrityError, transaction
from numpy.typing import ArrayLike, NDArray

from accounts.audit import Action, Kind, record_change
from common.errors import Conflict, InvalidInput, NotFound
from common.text import storable_text
from common.translation import format_number, gettext
from documents.embedders import embedder_for
from documents.ingestion import jobs, preparation, versions
from documents.ingestion.duplicates import lock_with_duplicates, set_access
from documents.ingestion.embedding import Vectors, embed_texts, texts_to_embed
from documents.ingestion.loader import (
    LoadJob,
    StaleVectors,
    load_documents,
    load_new_documents,
)
from documents.ingestion.preparation import (
    MAX_CHUNK_CHARACTERS,
    PreparedChunk,
    PreparedDocument,
    Recipe,
    chunk_digest,
    chunk_parsed,
    document_language,
)
from documents.ingestion.registration import queue_new_text, register_documents
from documents.ingestion.sources import (
    MAX_KEY_BYTES,
    MAX_KEY_CHARACTERS,
    Source,
    checked_metadata,
)
from documents.ingestion.space_choice import fit_space
from documents.ingestion.stored_files import delete_files
from documents.languages import detect_language
from documents.lexical_index import SEGMENT_MIN_PENDING, index_pending, indexed_in_transaction
from documents.models import Collection, Document, EmbeddingSpace
from inference.interfaces import InvalidVector
from reading.chunkers.base import Embed, TokenCounter
from reading.parsers import ParsedDocument, ParseError, content_sha256, normalise_text
from reading.parsers.normalise import readable_title

Vector = NDArray[np.float32]

#: Between these lengths neither squares nor products leave float32, in which pgvector computes.
VECTOR_LENGTH_BOUNDS = (1e-15, 1e15)
#: The greatest number of a half-precision index, and the length below which it would see zeros.
MAX_HALF_PRECISION = 65_504.0
MIN_HALF_LENGTH = 1e-3
#: Names of the titles in the metadata of an item, from the outermost: those of chunk JSON, and
#: those of filters. The innermost may be a list.
TITLE_NAMES = (
    ("chapter_title", "chapter"),
    ("section_title", "section"),
    ("subsection_title", "subsection"),
)
LANGUAGE_TAG = re.compile(r"[A-Za-z]{2,3}([-_][A-Za-z0-9]{1,8})*", re.ASCII)
DISPLAYED_ID_CHARACTERS = 60


@dataclass(frozen=True, slots=True)
class Item:
    """A text, a vector, or a text with its vector.

    A text without vector is embedded. One with a vector stays one passage, because the vector
    represents all of it. `language` is an ISO code; if empty it is detected. Titles in `metadata`
    (TITLE_NAMES) are the headings that the text is under. `access` says who alone may see it; None
    is everybody for a new one, and leaves the list of an existing one as it is.
    """

    id: str
    text: str = ""
    vector: ArrayLike | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)
    title: str = ""
    language: str = ""
    access: Sequence[str] | None = None


@dataclass(frozen=True, slots=True)
class ItemProblem:
    """What is wrong with one item of a batch: its index from 0, and the field."""

    index: int
    id: str
    field: str
    message: str

    def __str__(self) -> str:
        short = self.id[:DISPLAYED_ID_CHARACTERS]
        shortened = short if short == self.id else short + "…"
        return f"Item {self.index} (“{storable_text(shortened)}”): {self.message}"


class InvalidItems(InvalidInput):
    """A rejected batch, of which nothing was stored; `problems` names every invalid item."""

    def __init__(self, problems: Sequence[ItemProblem]) -> None:
        message = str(problems[0])
        if more := len(problems) - 1:
            message += " " + gettext("More errors: {count}.").format(count=more)
        message += " " + gettext("Nothing was stored.")
        super().__init__(message, field=problems[0].field)
        self.problems = tuple(problems)


@dataclass(frozen=True, slots=True)
class CheckedItem:
    """A valid item; its vector has the space's dimensions."""

    id: str
    text: str
    vector: Vector | None
    declared: dict[str, Any]
    source_sha256: str
    access: tuple[str, ...] | None


def check_items(items: Iterable[Item], space: EmbeddingSpace) -> list[CheckedItem]:
    """The items, each id once: the last of several wins. Raises InvalidItems with all problems."""
    checked: dict[str, CheckedItem] = {}
    problems: list[ItemProblem] = []
    for index, item in enumerate(items):
        try:
            checked[item.id] = _check_item(item, space)
        except InvalidInput as fault:
            problems.append(ItemProblem(index, str(item.id), fault.field, str(fault)))
    if problems:
        raise InvalidItems(problems)
    return list(checked.values())


def _check_item(item: Item, space: EmbeddingSpace) -> CheckedItem:
    if not isinstance(item.id, str):
        raise InvalidInput(
            gettext("An id must be text, not {type}.").format(type=type(item.id).__name__),
            field="id",
        )
    if not item.id:
        raise InvalidInput(gettext("The id is empty. Use at least one character."), field="id")
    if not is_storable(item.id):
        raise InvalidInput(
            gettext("The id contains a NUL character or an unpaired surrogate. Remove it."),
            field="id",
        )
    if len(item.id) > MAX_KEY_CHARACTERS or len(item.id.encode()) > MAX_KEY_BYTES:
        raise InvalidInput(
            gettext(
                "The id has more than {characters} characters or {size} bytes. Use a hash of it."
            ).format(
                characters=format_number(MAX_KEY_CHARACTERS), size=format_number(MAX_KEY_BYTES)
            ),
            field="id",
        )
    if not isinstance(item.text, str):
        raise InvalidInput(
            gettext("The text must be a string, not {type}.").format(type=type(item.text).__name__),
            field="text",
        )
    text = normalise_text(item.text)
    if len(text) > settings.MAX_UPLOAD_BYTES // 4:
        raise InvalidInput(
            gettext("The text has {count} characters; {limit} are allowed. Split it.").format(
                count=format_number(len(text)), limit=format_number(settings.MAX_UPLOAD_BYTES // 4)
            ),
            field="text",
        )
    vector = None if item.vector is None else check_vector(item.vector, space)
    if not text.strip():
        if vector is None:
            raise InvalidInput(
                gettext("The item has neither text nor vector. Give one of them."), field="text"
            )
        text = ""
    if vector is not None and len(text) > MAX_CHUNK_CHARACTERS:
        raise InvalidInput(
            gettext(
                "A text with its own vector stays one passage of at most {limit}"
                " characters; this one has {count}. Split it."
            ).format(limit=format_number(MAX_CHUNK_CHARACTERS), count=format_number(len(text))),
            field="text",
        )
    # The caller's title, language and metadata, as JSON under ingestion's names.
    if not isinstance(item.title, str) or len(item.title) > 500:
        raise InvalidInput(
            gettext("The title must be text of at most 500 characters."), field="title"
        )
    if not isinstance(item.language, str) or (
        item.language and not LANGUAGE_TAG.fullmatch(item.language)
    ):
        raise InvalidInput(
            gettext("The language must be an ISO code, such as “de”."), field="language"
        )
    metadata, title = checked_metadata(item.metadata), normalise_text(item.title).strip()
    given = {
        "title": title,
        "language": item.language,
        "metadata": metadata,
        "file_name": f"{item.id}.txt",
        "headings": _headings_of(metadata, default=title or readable_title(f"{item.id}.txt")),
    }
    declared_fields = {name: value for name, value in given.items() if value}
    # For a text alone the same hash as for an upload of it. A vector counts together with its
    # space, because a re-embedding replaces it.
    digest = hashlib.sha256(text.encode())
    if vector is not None:
        digest.update(f"\0{space.pk}\0".encode() + vector.tobytes())
    source_sha256 = digest.hexdigest()
    return CheckedItem(
        id=item.id,
        text=text,
        vector=vector,
        declared=declared_fields,
        source_sha256=source_sha256,
        access=None if item.access is None else tuple(item.access),
    )


def _headings_of(metadata: Mapping[str, Any], *, default: str) -> list[str]:
    """The titles in an item's metadata, from the outermost. Where there is no chapter it is
    `default`, so that a section is one. Titles that are not text are no headings."""
    levels = []
    for names in TITLE_NAMES:
        given: Any = next((metadata[name] for name in names if metadata.get(name)), [])
        titles = given if isinstance(given, list) else [given]
        levels.append([normalise_text(title).strip() for title in titles if isinstance(title, str)])
    chapter, *below = levels
    if any(map(any, below)) and not any(chapter):
        chapter = [default]
    return [title for level in (chapter, *below) for title in level if title]


def is_storable(key: object) -> bool:
    """Whether PostgreSQL can store this id."""
    return isinstance(key, str) and storable_text(key) == key


def check_vector(given: ArrayLike, space: EmbeddingSpace) -> Vector:
    """The vector as float32, if `space` can hold it. Raises InvalidInput."""
    try:
        raw = np.asarray(given)
    except ValueError as error:
        raise InvalidInput(
            gettext("The vector must be a flat list of numbers."), field="vector"
        ) from error
    if raw.ndim != 1 or (raw.dtype.kind not in "iuf" and raw.size):
        raise InvalidInput(gettext("The vector must be a flat list of numbers."), field="vector")
    if len(raw) != space.dimensions:
        raise InvalidInput(
            gettext(
                "The vector has {count} dimensions; those of {model} have {dimensions}."
                " Use vectors of this model."
            ).format(count=len(raw), model=space.model_name, dimensions=space.dimensions),
            field="vector",
        )
    with np.errstate(over="ignore"):  # too large for float32 becomes infinite
        vector: Vector = raw.astype(np.float32)
    length = float(np.linalg.norm(vector.astype(np.float64)))
    if not np.isfinite(length):
        raise InvalidInput(
            gettext("The vector contains NaN or a number too large for 32 bits."), field="vector"
        )
    if not vector.any():
        raise InvalidInput(
            gettext("The vector is all zeros, so nothing can be near it."), field="vector"
        )
    if not VECTOR_LENGTH_BOUNDS[0] <= length <= VECTOR_LENGTH_BOUNDS[1]:
        raise InvalidInput(
            gettext(
                "The vector's length of {length} is outside the range of 32-bit"
                " numbers. Scale all vectors by the same factor."
            ).format(length=format(length, ".1e")),
            field="vector",
        )
    if space.precision == EmbeddingSpace.Precision.HALF and not (
        np.abs(vector).max() <= MAX_HALF_PRECISION and length >= MIN_HALF_LENGTH
    ):
        raise InvalidInput(
            gettext(
                "The index of {space} uses half precision, with numbers up to {limit};"
                " this vector has the length {length}. Scale all vectors by the same"
                " factor."
            ).format(
                space=space.name,
                limit=format_number(MAX_HALF_PRECISION),
                length=format(length, ".1e"),
            ),
            field="vector",
        )
    return vector


def prepare_item(
    item: CheckedItem,
    *,
    recipe: Recipe,
    counter: TokenCounter | None,
    embed: Embed | None = None,
) -> PreparedDocument:
    """The item as a document: chunked like an uploaded text, or one chunk if it has its vector.

    `counter` is needed for texts without vector, `embed` to cut them by meaning. Raises ParseError.
    """
    title = str(item.declared.get("title") or readable_title(item.declared["file_name"]))
    if item.vector is not None:
        # One chunk. Without text it has no words and no language, so that it does not count among
        # the collection's languages.
        headings = tuple(item.declared.get("headings", ()))
        context = " > ".join([title, *headings]) if item.text else ""
        # Words where the space's model is not available.
        token_count = counter.count(item.text) if counter else len(item.text.split())
        # Another title or vector makes another chunk of the same text.
        return PreparedDocument(
            title=title[:500],
            media_type="text/plain",
            rendering="plain",
            language=document_language(item.text, item.declared, recipe) if item.text else "",
            content_sha256=content_sha256(item.text),
            metadata=item.declared.get("metadata", {}),
            chunks=(
                PreparedChunk(
                    ordinal=0,
                    text=item.text,
                    context=context,
                    start=0,
                    end=len(item.text),
                    token_count=token_count,
                    heading_path=headings,
                    content_sha256=chunk_digest(context, item.source_sha256),
                ),
            ),
        )
    assert counter is not None
    return chunk_parsed(
        ParsedDocument(text=item.text, media_type="text/plain", title=title),
        name=item.id,
        recipe=recipe,
        counter=counter,
        declared=item.declared,
        embed=embed,
    )


#: Attempts when others change the same items, or the collection's space, concurrently.
TRIES = 5


@dataclass(frozen=True, slots=True)
class StoreResult:
    """The result of a batch: ids that were written, and the number of unchanged items."""

    ids: tuple[str, ...]
    unchanged: int


def write_items(collection: Collection, items: Sequence[Item], *, concurrency: int) -> StoreResult:
    """Make each item's document exactly what it says, and searchable.

    Embedding happens outside the transaction, so the collection may get another space, and the
    documents other texts, meanwhile: then it is repeated. Raises InvalidItems, InferenceError,
    NotFound for a collection that was deleted.
    """
    for _ in range(TRIES):
        collection = _refreshed(collection)
        checked = check_items(items, collection.space)
        recipe = preparation.recipe_for(collection)
        there = versions.documents_to_compare(collection, [item.id for item in checked])
        changed = {
            item.id: item
            for item in checked
            if item.id not in there
            or item.access not in (None, tuple(there[item.id].access or ()))
            or not there[item.id].is_unchanged(
                "skip_if_unchanged", item.source_sha256, recipe.digest(item.declared)
            )
        }
        if not changed:
            return StoreResult((), unchanged=len(checked))
        texts_alone = [item for item in changed.values() if item.vector is None]
        # Whoever stores vectors has chosen their model (see also `fit_space`).
        if len(texts_alone) == len(changed) and fit_space(
            collection, _evident_languages(texts_alone, recipe)
        ):
            continue
        counter, texts = _prepare_texts(texts_alone, items, collection, recipe)
        vectors = _embed_texts(texts, items, collection, concurrency)
        try:
            run_ids = _load_batch(
                collection,
                {key: changed[key] for key in sorted(changed)},
                there,
                recipe=recipe,
                counter=counter,
                texts=texts,
                vectors=vectors,
            )
        except StaleVectors:
            continue
        except IntegrityError:
            _refreshed(collection)  # it may have been deleted just now
            raise
        for run_id in run_ids:
            jobs.finish_run(run_id)
        index_pending(collection.pk, at_least=SEGMENT_MIN_PENDING)
        return StoreResult(tuple(changed), unchanged=len(checked) - len(changed))
    raise Conflict(gettext("Other requests keep changing the same items. Try again in a moment."))


def _refreshed(collection: Collection) -> Collection:
    current = Collection.objects.select_related("space").filter(pk=collection.pk).first()
    if current is None:
        raise NotFound(
            gettext("The collection “{slug}” no longer exists.").format(slug=collection.slug)
        )
    return current


def _evident_languages(texts: Iterable[CheckedItem], recipe: Recipe) -> dict[str, str]:
    """ISO codes by id, empty where a text does not tell its language."""
    return {
        item.id: document_language(item.text, item.declared, recipe)
        if item.declared.get("language") or recipe.language or detect_language(item.text)
        else ""
        for item in texts
    }


def _prepare_texts(
    texts: Sequence[CheckedItem], items: Sequence[Item], collection: Collection, recipe: Recipe
) -> tuple[TokenCounter | None, dict[str, PreparedDocument]]:
    """Prepared documents of these items, by id, and the token counter if there are any."""
    if not texts:
        return None, {}
    embedder = embedder_for(collection.space)
    counter, embed = embedder.token_counter(), embedder.embed_documents
    prepared: dict[str, PreparedDocument] = {}
    problems: list[ItemProblem] = []
    for item in texts:
        try:
            prepared[item.id] = prepare_item(item, recipe=recipe, counter=counter, embed=embed)
        except ParseError as error:
            problems.append(_item_problem(item.id, items, str(error)))
    if problems:
        raise InvalidItems(problems)
    return counter, prepared


def _item_problem(key: str, items: Sequence[Item], message: str) -> ItemProblem:
    index = max(place for place, item in enumerate(items) if item.id == key)
    return ItemProblem(index, key, "text", message)


def _embed_texts(
    texts: dict[str, PreparedDocument],
    items: Sequence[Item],
    collection: Collection,
    concurrency: int,
) -> Vectors:
    """The model's vectors for texts without one."""
    if not texts:
        return {}
    rows = Document.objects.filter(collection=collection, key__in=list(texts), is_current=True)
    known = {document.key: document for document in rows}
    # No document has the id 0: one that is not there yet has no chunk to keep.
    documents = [
        (known[key].id if key in known else 0, prepared) for key, prepared in texts.items()
    ]
    embedder = embedder_for(collection.space)
    wanted = partial(texts_to_embed, collection=collection)
    try:
        return embed_texts(wanted(documents), embedder=embedder, concurrency=concurrency)
    except InvalidVector:
        problems = []
        for key, document in zip(texts, documents, strict=True):
            try:
                embed_texts(wanted([document]), embedder=embedder)
            except InvalidVector as error:
                problems.append(_item_problem(key, items, str(error)))
        if problems:
            raise InvalidItems(problems) from None
        raise


@transaction.atomic
def _load_batch(
    collection: Collection,
    items: Mapping[str, CheckedItem],
    known_keys: Container[str],
    *,
    recipe: Recipe,
    counter: TokenCounter | None,
    texts: Mapping[str, PreparedDocument],
    vectors: Vectors,
) -> list[int]:
    """Load the items, by id, and record it; returns the runs that waited for their documents.

    `known_keys` are ids that exist; `texts` are the prepared documents of items without a vector,
    with their `vectors`.
    """

    def job(document: Document) -> LoadJob:
        item = items[document.key]
        prepared = texts.get(item.id) or prepare_item(item, recipe=recipe, counter=counter)
        if item.vector is not None:
            vectors.update((chunk.content_sha256, item.vector) for chunk in prepared.chunks)
        return LoadJob(
            document=document,
            prepared=prepared,
            digest=recipe.digest(document.declared),
            source_sha256=item.source_sha256,
            replaces=True,
        )

    def new_jobs(ids: Mapping[str, int]) -> Iterator[LoadJob]:
        """Created one by one. A copy takes a third of the time of making a document."""
        blank = Document(workspace_id=collection.workspace_id, collection=collection)
        for key, pk in ids.items():
            document = copy(blank)
            document.pk, document.key = pk, key
            access = items[key].access
            document.access = None if access is None else list(access)
            queue_new_text(document, _item_source(items[key]))
            yield job(document)

    new = [key for key in items if key not in known_keys]
    known = [_item_source(item) for key, item in items.items() if key in known_keys]
    if new:
        new_ids = versions.new_ids(len(new))  # now: no query can run while rows are being copied
        is_large = len(new) >= SEGMENT_MIN_PENDING and not known
        with indexed_in_transaction(collection.pk, new_ids) if is_large else nullcontext():
            load_new_documents(collection, new_jobs(dict(zip(new, new_ids, strict=True))), vectors)
    run_ids: list[int] = []
    if known:
        _set_access(collection, {source.key: source.access for source in known})
        token = uuid4()
        registered = register_documents(collection, known, run=None, token=token)
        documents = sorted(registered.values(), key=lambda document: document.pk)
        ids = [document.pk for document in documents]
        files = [str(document.file.name) for document in documents if document.file]
        if files:
            Document.objects.filter(pk__in=ids).update(file="")
            transaction.on_commit(lambda: delete_files(files))
        run_ids = jobs.open_runs(ids)
        load_documents([job(document) for document in documents], vectors, token=token)
    record_change(
        action=Action.INGESTED,
        kind=Kind.DOCUMENT,
        workspace_id=collection.workspace_id,
        count=len(items),
        collection_id=collection.pk,
    )
    return run_ids


def _item_source(item: CheckedItem) -> Source:
    return Source(
        key=item.id,
        name=item.id,
        size=len(item.text.encode()),
        read=item.text.encode,
        declared=item.declared,
        access=item.access,
    )


def _set_access(collection: Collection, lists: Mapping[str, Sequence[str] | None]) -> None:
    """Give documents, by key, the access lists that their items bring."""
    brought = [key for key, access in lists.items() if access is not None]
    if not brought:
        return
    rows = Document.objects.filter(collection=collection, key__in=brought)
    lock_with_duplicates(list(rows.values_list("pk", flat=True)))
    changed: dict[tuple[str, ...], list[int]] = defaultdict(list)
    for document in rows.only("key", "access"):
        access = tuple(lists[document.key] or ())
        if access != tuple(document.access or ()):
            changed[access].append(document.pk)
    for access, ids in changed.items():
        set_access(ids, access)
