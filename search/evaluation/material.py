"""Many chunks made of the site's own, in a workspace that is there only while they are measured."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from django.db import connection, transaction
from numpy.typing import NDArray
from psycopg.types.json import Jsonb

from accounts.models import Workspace
from accounts.services import get_or_create_workspace
from common.copy import copy_rows
from common.errors import Conflict, NotFound
from documents import lexical_index
from documents.ingestion.loading import COLUMNS
from documents.languages import configuration_oids
from documents.models import Chunk, Collection, Document, EmbeddingSpace
from documents.services import add_space, build_space_index, default_space, drop_space
from search.evaluation.progress import Progress, nobody_watches

#: Standard deviation of the noise on a unit vector, all dimensions together: a perturbed vector
#: has a cosine of about 0.86 to its source, as two passages on one subject have.
NOISE = 0.6
BATCH = 10_000
MOST_SOURCES = 5000


@dataclass(frozen=True, slots=True)
class Material:
    """Chunks of one space to start from: `vectors` has shape (chunks, dimensions), and its rows are
    those of `chunks`."""

    space: EmbeddingSpace
    chunks: tuple[Chunk, ...]
    vectors: NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Passage:
    """What a made chunk says, and where: the slug of its collection."""

    collection: str
    text: str
    context: str = ""
    language: str = "english"
    metadata: Mapping[str, Any] = field(default_factory=dict)


#: Tells the passages of a batch from their numbers and the rows of the material that they are of.
Writer = Callable[[range, NDArray[np.int64]], Iterator[Passage]]


def site_material(space: EmbeddingSpace | None = None) -> Material:
    """Chunks of `space`, or of the default one, at most MOST_SOURCES and always the same.

    Raises NotFound where there are too few to start from.
    """
    space = space or default_space()
    chunks = tuple(
        Chunk.objects.filter(space=space, embedding__isnull=False)
        .exclude(text="")
        .order_by("content_sha256")  # as good as at random, and the same every time
        .only("text", "context", "heading_path", "language", "embedding")[:MOST_SOURCES]
    )
    if len(chunks) < 2:
        raise NotFound(
            f"Space {space.name} holds no vectors to start from. Ingest some documents first, such"
            " as with `manage.py demo`."
        )
    vectors = np.array([chunk.embedding for chunk in chunks], dtype=np.float32)
    return Material(space, chunks, vectors)


@contextmanager
def filled_workspace(
    material: Material,
    *,
    name: str,
    collections: Sequence[str],
    count: int,
    write: Writer,
    chance: np.random.Generator,
    on_progress: Progress = nobody_watches,
) -> Iterator[Workspace]:
    """A workspace and a space, both called `name`, with `count` chunks in `collections`: counted,
    indexed and vacuumed. Everything is removed at the end, however that comes.

    Raises Conflict where they are there already.
    """
    if EmbeddingSpace.objects.filter(name=name).exists():
        raise Conflict(
            f"Space {name} is there: another measurement runs, or one was killed. Remove its"
            f" workspace and run `manage.py spaces drop {name}`."
        )
    space, _ = add_space(name=name, embedder=material.space.embedder)
    workspace = get_or_create_workspace(slug=name)
    try:
        documents = {slug: _document(workspace, space, slug) for slug in collections}
        for start in range(0, count, BATCH):
            numbers = range(start, min(start + BATCH, count))
            _load(material, documents, numbers, write, chance)
            on_progress("load", numbers.stop, count)
        on_progress("count and index", count, count)
        for document in documents.values():
            lexical_index.index_pending(document.collection_id)
        build_space_index(space=space)
        _vacuum()
        yield workspace
    finally:
        Chunk.objects.filter(workspace=workspace)._raw_delete("default")
        Workspace.objects.filter(pk=workspace.pk).delete()
        drop_space(space=space)
        _vacuum()


def _document(workspace: Workspace, space: EmbeddingSpace, slug: str) -> Document:
    """One document for all chunks of a collection."""
    collection = Collection.objects.create(workspace=workspace, slug=slug, name=slug, space=space)
    return Document.objects.create(
        workspace=workspace,
        collection=collection,
        key=slug,
        title=slug,
        status=Document.Status.READY,
    )


@transaction.atomic
def _load(
    material: Material,
    documents: Mapping[str, Document],
    numbers: range,
    write: Writer,
    chance: np.random.Generator,
) -> None:
    origins = chance.integers(0, len(material.vectors), len(numbers))
    vectors = perturbed(material.vectors[origins], chance)
    # Nothing else may ask the connection while it copies, so this is asked before.
    oids = configuration_oids()
    passages = zip(numbers, vectors, write(numbers, origins), strict=True)
    rows = (
        _row(documents[passage.collection], number, passage, oids[passage.language], vector)
        for number, vector, passage in passages
    )
    copy_rows("documents_chunk", COLUMNS, rows)


def perturbed(vectors: NDArray[np.float32], chance: np.random.Generator) -> NDArray[np.float32]:
    """The same directions with noise, as unit vectors."""
    scale = NOISE / vectors.shape[1] ** 0.5
    noise = (chance.normal(size=vectors.shape) * scale).astype(np.float32)
    moved: NDArray[np.float32] = vectors + noise
    moved /= np.linalg.norm(moved, axis=1, keepdims=True)
    return moved


def _row(
    document: Document, number: int, passage: Passage, language: int, vector: NDArray[np.float32]
) -> Sequence[Any]:
    start = 10_000 * number
    return (
        *(document.workspace_id, document.collection_id, document.pk),
        *(document.collection.space_id, number, "", passage.text, passage.context),
        *([], "", len(passage.text.split()), start, start + len(passage.text), None, None),
        *("text/plain", Jsonb(dict(passage.metadata)), None, language),
        *(vector, f"{number:064d}", True),
    )


def _vacuum() -> None:
    """What a site's own vacuum does in a while: the planner knows the tables as they are now."""
    with connection.cursor() as cursor:
        cursor.execute("VACUUM ANALYZE documents_chunk, documents_posting, documents_lexeme")
