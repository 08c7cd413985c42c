"""Collections written to files and read from them."""

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, BinaryIO

from accounts.history import Action, Kind, note_change
from accounts.models import Workspace
from common.errors import NotFound
from documents.ingestion import runs, settling
from documents.models import Collection, IngestionRun
from documents.services.collections import create_collection, get_collection
from documents.services.documents import create_run
from documents.transfer import Exported, ExportReader, Header, Importing, write_export


def export_collection(
    *,
    collection: Collection,
    file: BinaryIO,
    with_vectors: bool = False,
    only: Sequence[int] | None = None,
    on_progress: Callable[[int, int], Any] = lambda done, total: None,
) -> Exported:
    """Write the collection as it is now, or `only` the documents with these ids, one JSON object a
    line. Stored files are not in it."""
    exported = write_export(
        collection, file, with_vectors=with_vectors, only=only, on_progress=on_progress
    )
    note_change(
        action=Action.EXPORTED,
        kind=Kind.COLLECTION if only is None else Kind.DOCUMENT,
        workspace_id=collection.workspace_id,
        thing=collection.pk if only is None else only,
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
    """Put the documents of an export into a collection, which is made like the one that was
    exported when missing; returns the finished run.

    Vectors are taken as they are where the collection has the same model, and made anew where not.
    A document that is there just so is skipped. What is broken fails by the number of its line, and
    the others are put in. Raises InvalidInput for a file that is no export, InferenceError.
    """
    reader = ExportReader(file)
    collection = _collection(workspace, slug, reader.header)
    run = create_run(
        collection=collection, policy=IngestionRun.Policy.OVERWRITE, source=f"import {source}"
    )
    importing = Importing(run, reader.header, on_progress=on_progress)
    with suppress(runs.RunCancelled):
        importing.put_in(reader.entries(collection.space))
    settling.finish_run(run.pk)
    run.refresh_from_db()
    return run


def _collection(workspace: Workspace, slug: str, header: Header) -> Collection:
    try:
        return get_collection(workspace=workspace, slug=slug)
    except NotFound:
        return create_collection(
            workspace=workspace,
            slug=slug,
            name=header.name if slug == header.slug else slug.replace("-", " ").capitalize(),
            description=header.description,
            language=header.language,
            chunker=header.chunker,
            chunker_options=header.chunker_options,
            graph=header.graph,
        )
