"""Collections: found, created, changed, deleted, exported and imported."""

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, BinaryIO

from django.db import IntegrityError, transaction
from django.utils.text import slugify
from django.utils.translation import gettext

from accounts.audit import Action, Kind, record_change
from accounts.models import Workspace
from common.errors import Conflict, InvalidInput, NotFound
from documents.ingestion import jobs, listeners
from documents.ingestion.concurrency import lock_collection
from documents.ingestion.stored_files import delete_files
from documents.models import Chunk, Collection, EmbeddingSpace, IngestionRun
from documents.page_cache import page_cache
from documents.page_images import PAGED_MEDIA_TYPES
from documents.services.audit import record
from documents.services.documents import create_run
from documents.services.model_languages import space_for_languages
from documents.transfer.exporter import ExportResult, write_export
from documents.transfer.importer import ExportReader, Importer
from reading.chunkers import check_options

MAX_SLUG_CHARACTERS = 63


def get_collection(*, workspace: Workspace, slug: str) -> Collection:
    """The collection; raises NotFound that lists the existing ones."""
    collection = (
        Collection.objects.select_related("space").filter(workspace=workspace, slug=slug).first()
    )
    if collection is None:
        slugs = list(workspace.collections.order_by("slug").values_list("slug", flat=True)[:20])
        known = gettext("There are: {names}.") if slugs else gettext("There is none yet.")
        known = known.format(names=", ".join(slugs))
        raise NotFound(
            gettext("There is no collection “{slug}”. {known}").format(slug=slug, known=known)
        )
    return collection


def create_collection(
    *,
    workspace: Workspace,
    name: str,
    slug: str = "",
    languages: Sequence[str] = (),
    **options: Any,
) -> Collection:
    """A new, empty collection with `options` of CollectionOptions, in the site's default embedding
    space, or in that of a model which was made for its language and the further `languages` of its
    documents, where the default was not. With `automatic_model` its first documents may choose
    another one (`documents.ingestion.space_choice`). Raises InvalidInput and Conflict."""
    from documents.collection_options import CollectionOptions  # noqa: PLC0415 (loads pydantic)

    name = name.strip()
    slug = slug or slugify(name.casefold())[:MAX_SLUG_CHARACTERS].strip("-_")
    if not name:
        raise InvalidInput(gettext("A collection needs a name."), field="name")
    if not slug:
        raise InvalidInput(
            gettext(
                "Nothing of this name can stand in an address. Give one beside it (the"
                " slug): lower-case letters from a to z, digits and hyphens, at most"
                " {limit}."
            ).format(limit=MAX_SLUG_CHARACTERS),
            field="slug",
        )
    check_slug(slug)
    chosen = CollectionOptions(**options)
    check_options(chosen.chunker, chosen.chunker_options)
    try:
        with transaction.atomic():
            made = Collection.objects.create(
                workspace=workspace,
                name=name[:200],
                slug=slug,
                space=space_for_languages(list(filter(None, (chosen.language, *languages)))),
                **chosen.columns(),
            )
            record(Action.MADE, made)
            return made
    except IntegrityError as error:
        raise Conflict(
            gettext("There is a collection “{slug}” already. Choose another name.").format(
                slug=slug
            )
        ) from error


def check_slug(slug: str) -> None:
    """Raise InvalidInput for a slug that a collection cannot have."""
    if slug != slugify(slug) or len(slug) > MAX_SLUG_CHARACTERS:
        raise InvalidInput(
            gettext(
                "The slug is what stands in the address: lower-case letters, digits and"
                " hyphens, at most {limit}."
            ).format(limit=MAX_SLUG_CHARACTERS),
            field="slug",
        )


def get_or_create_collection(
    *, workspace: Workspace, slug: str, languages: Sequence[str] = ()
) -> Collection:
    """The collection with this slug, created with defaults for these languages if missing."""
    try:
        return get_collection(workspace=workspace, slug=slug)
    except NotFound:
        name = slug.replace("-", " ").replace("_", " ").capitalize()
        return create_collection(workspace=workspace, name=name, slug=slug, languages=languages)


def update_collection(
    *, collection: Collection, name: str | None = None, **options: Any
) -> Collection:
    """Change what is given: the name, and `options` of CollectionOptions.

    A new language or chunker applies to documents ingested from now on; existing ones are chunked
    again when they are ingested again, even with the same bytes. A new chunker starts with its own
    defaults, unless options are given with it. A reranker (an entry of RERANKERS, or empty for the
    site's default) and `fusion` (empty for the site's default) apply to the next search. If `graph`
    changes (off, rules or llm), the graph is extracted again from all documents. `facets` are the
    metadata fields that searches count; empty for automatic ones. Without `automatic_model` it
    keeps its model whatever language its documents are in. Without `vectors` it is searched by
    words; once they are on again the workers embed what has none. Raises InvalidInput, and Conflict
    where vectors are switched off during a move to another model.
    """
    from documents.collection_options import CollectionOptions  # noqa: PLC0415 (loads pydantic)

    given = CollectionOptions(**options).columns()
    if not given.keys().isdisjoint({"chunker", "chunker_options"}):
        same = given.get("chunker", collection.chunker) == collection.chunker
        given.setdefault("chunker_options", collection.chunker_options if same else {})
        given.setdefault("chunker", collection.chunker)
        check_options(given["chunker"], given["chunker_options"])
    if name is not None and not name.strip():
        raise InvalidInput(gettext("A collection needs a name."), field="name")
    if name is not None:
        given["name"] = name.strip()[:200]
    for field, value in given.items():
        setattr(collection, field, value)
    with transaction.atomic():
        if "vectors" in given:
            lock_collection(collection.pk)  # what is being loaded has its vectors, or has not
        rows = Collection.objects.select_for_update().filter(pk=collection.pk)
        before = rows.values(*given).first()
        if before is None:
            raise NotFound(gettext("The collection “{slug}” is gone.").format(slug=collection.slug))
        collection.save(update_fields=[*given, "updated_at"])
        changed = [field for field in given if before[field] != getattr(collection, field)]
        if "vectors" in changed:
            _switch_vectors(collection)
        if "graph" in changed:
            listeners.changed(collection)
            graphs = (Collection.Graph(before["graph"]), Collection.Graph(collection.graph))
            record(Action.CHANGED, collection, fields=changed, values={"graph": graphs})
        elif changed:
            record(Action.CHANGED, collection, fields=changed)
    return collection


def _switch_vectors(collection: Collection) -> None:
    """Have the workers embed what has no vector, where vectors were switched on."""
    if not collection.vectors and Collection.objects.get(pk=collection.pk).former_spaces:
        raise Conflict(
            gettext(
                "“{slug}” is being moved to another model. Switch its vectors off when that has"
                " ended."
            ).format(slug=collection.slug)
        )
    if collection.has_vectors:
        from documents.tasks import enqueue_reindexing  # noqa: PLC0415 (loads Celery)

        bare = Chunk.objects.filter(collection=collection, embedding=None)
        ids = bare.order_by("document_id").values_list("document_id", flat=True).distinct()
        enqueue_reindexing(list(ids))


def delete_collection(*, collection: Collection) -> None:
    """Delete the collection with all its rows, vectors, index entries and stored files."""
    with transaction.atomic():
        # Until those who bring something just now are done.
        lock_collection(collection.pk)
        files = list(collection.documents.exclude(file="").values_list("file", flat=True))
        paged = collection.documents.filter(media_type__in=PAGED_MEDIA_TYPES)
        hashes = set(paged.values_list("source_sha256", flat=True))
        record(Action.DELETED, collection, values={"documents": collection.documents.count()})
        # The chunks by one statement: collecting them as objects would load every one.
        listeners.remove_chunks(Chunk.objects.filter(collection=collection))
        collection.delete()
        transaction.on_commit(lambda: delete_files(files))
        transaction.on_commit(lambda: page_cache.forget(hashes))


def chunk_count(*, collection: Collection) -> int:
    """Number of searchable chunks of the collection."""
    return Chunk.objects.filter(collection=collection, is_current=True).count()


def export_collection(
    *,
    collection: Collection,
    file: BinaryIO,
    with_vectors: bool = False,
    only: Sequence[int] | None = None,
    on_progress: Callable[[int, int], Any] = lambda done, total: None,
) -> ExportResult:
    """Write the collection as it is now, or `only` the documents with these ids, one JSON object a
    line. Stored files are not included."""
    exported = write_export(
        collection, file, with_vectors=with_vectors, only=only, on_progress=on_progress
    )
    record_change(
        action=Action.EXPORTED,
        kind=Kind.COLLECTION if only is None else Kind.DOCUMENT,
        workspace_id=collection.workspace_id,
        object_id=collection.pk if only is None else only,
        collection_id=collection.pk,
        values={"documents": exported.documents, "passages": exported.chunks},
    )
    return exported


def import_collection(
    *,
    workspace: Workspace,
    slug: str,
    file: BinaryIO,
    source: str = "",
    on_progress: Callable[[IngestionRun], Any] = lambda run: None,
) -> IngestionRun:
    """Import an export into a collection, which is created like the exported one if missing;
    returns the finished run.

    Vectors are taken from the file if the collection has the same model, and made again if not. An
    unchanged document is skipped. Invalid lines fail under their number, and the others are
    imported. Raises InvalidInput for a file that is not an export, InferenceError.
    """
    reader = ExportReader(file)
    header = reader.header
    try:
        collection = get_collection(workspace=workspace, slug=slug)
    except NotFound:
        collection = create_collection(
            workspace=workspace,
            slug=slug,
            name=header.name if slug == header.slug else slug.replace("-", " ").capitalize(),
            description=header.description,
            language=header.language,
            chunker=header.chunker,
            chunker_options=header.chunker_options,
            graph=header.graph,
        )
    run = create_run(
        collection=collection, policy=IngestionRun.Policy.OVERWRITE, source=f"import {source}"
    )
    importing = Importer(run, header, on_progress=on_progress)
    with suppress(jobs.RunCancelled):
        # The languages of its documents may yet move the collection to the model of the file.
        spaces = [collection.space, *EmbeddingSpace.objects.all()]
        space = next((each for each in spaces if header.is_of(each)), collection.space)
        importing.import_entries(reader.entries(space))
    jobs.finish_run(run.pk)
    run.refresh_from_db()
    return run
