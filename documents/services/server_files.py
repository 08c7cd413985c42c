"""Directories of the server, for requests: only below the roots that the operator allows."""

from typing import Any

from common.errors import InvalidInput
from documents.ingestion.roots import allowed_directory
from documents.ingestion.sources import NothingFoundError, discover_some
from documents.models import Collection, IngestionRun
from documents.services.documents import ingest_sources
from documents.services.sync import Sync, sync_directory


def ingest_server_directory(
    *, collection: Collection, directory: str, glob: str = "**/*", **options: Any
) -> IngestionRun:
    """Store and queue the files; links that lead out of the root fail. Raises Forbidden and
    InvalidInput."""
    allowed = allowed_directory(directory)
    try:
        sources = discover_some([allowed.path], glob=glob, below=allowed.root)
    except NothingFoundError as error:
        raise InvalidInput(str(error), field="glob") from error
    return ingest_sources(
        collection=collection,
        sources=sources,
        source=str(allowed.path),
        **options,
    )


def sync_server_directory(*, collection: Collection, directory: str, **options: Any) -> Sync:
    """`sync_directory` below a root, with the workers ingesting. Raises Forbidden, too."""
    allowed = allowed_directory(directory)
    return sync_directory(
        collection=collection,
        directory=allowed.path,
        below=allowed.root,
        queue=True,
        **options,
    )
