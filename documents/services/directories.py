"""Directories of the server: keep a collection in sync with one (`sync_directory`), or ingest one
for a request (`ingest_server_directory`, only below RAGSITE_INGEST_ROOTS)."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path, PurePosixPath
from typing import Any, Literal

from django.conf import settings
from django.db import DatabaseError, connection

from common.errors import Conflict, Forbidden, InvalidInput
from common.translation import format_number, gettext
from documents.ingestion import versions
from documents.ingestion.containers import PART_MARK, with_parts
from documents.ingestion.preparation import recipe_for
from documents.ingestion.sources import (
    BrokenSource,
    NothingFoundError,
    Source,
    content_digest,
    discover,
    discover_any,
    matches_glob,
    may_exist,
    storable_key,
    storable_name,
)
from documents.models import Collection, Document, IngestionItem, IngestionRun
from documents.services.collections import check_slug
from documents.services.deletion import delete_documents, deletion_doubt
from documents.services.documents import ingest_inline, ingest_sources, keep_source_documents
from documents.services.renames import LeavingDocuments, rename_document
from reading.parsers.chunk_json import CHUNK_BUNDLE_SUFFIX


def sync_run_source(directory: Path) -> str:
    """The `source` of a run that syncs the directory."""
    return f"sync {directory}"


#: Sources whose rows are asked for at once, and documents that are deleted at once.
COMPARED_SOURCES = 500
DELETED_DOCUMENTS = 100


class SyncRefused(InvalidInput):
    """Too many documents would be deleted. `reason` says how many; the argument `option` of
    `sync_directory` allows it."""

    def __init__(
        self, reason: str, *, option: Literal["allow_empty", "allow_deletions"], field: str
    ) -> None:
        super().__init__(
            gettext(
                "{reason} Nothing was changed. List them with `dry_run`; if this is intended, set"
                " `{option}`."
            ).format(reason=reason, option=option),
            field=field,
        )
        self.reason = reason
        self.option = option


@dataclass(slots=True)
class SyncResult:
    """Changes of a directory since it was ingested, and what a sync did about them. Files are named
    by their relative paths.

    `moves` are documents whose bytes are now in another file, `gone` those whose file no longer
    exists; they are deleted only if requested (`deletions_applied`). `failed` cannot be read, so
    nothing is concluded about them; `retried` failed to ingest before and are tried again.
    `reasons` says why, by name, for both. `changed_keys` are those to ingest. `run` is None if
    nothing was ingested; `refused` is set by a dry run of what would be refused.
    """

    directory: Path
    new: list[str] = field(default_factory=list)
    modified: list[str] = field(default_factory=list)
    unchanged: list[str] = field(default_factory=list)
    moves: list[tuple[Document, Source]] = field(default_factory=list)
    gone: list[Document] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)
    retried: list[str] = field(default_factory=list)
    reasons: dict[str, str] = field(default_factory=dict)
    changed_keys: set[str] = field(default_factory=set)
    run: IngestionRun | None = None
    deletions_applied: bool = False
    refused: SyncRefused | None = None

    @property
    def key_prefix(self) -> str:
        """The common prefix of the keys of all files below the directory, not of those of
        `directory-2`."""
        return storable_key(str(self.directory)).rstrip("/") + "/"

    @property
    def renamed(self) -> list[tuple[str, str]]:
        """The paths of renamed files before and after."""
        prefix = self.key_prefix
        return [(before.key.removeprefix(prefix), after.name) for before, after in self.moves]

    @property
    def deleted(self) -> list[str]:
        """The paths of files that no longer exist."""
        prefix = self.key_prefix
        return [document.key.removeprefix(prefix) for document in self.gone]

    def add_broken(self, entry: BrokenSource) -> None:
        self.failed.append(entry.name)
        self.reasons[entry.name] = entry.reason


def _compare(
    collection: Collection, directory: Path, *, glob: str, below: Path | None
) -> SyncResult:
    """Compare the directory with the collection. Each file is read once, for its hash.

    Only documents whose key is below the directory and whose file `glob` would match can be
    removed, and only if the file certainly does not exist.
    """
    result = SyncResult(directory)
    unknown: list[Source] = []
    present: set[str] = set()
    recipe = recipe_for(collection)
    # The last failed attempt at each file, by name: a file that never became a document is known
    # only from the runs of this directory.
    rows = IngestionItem.objects.filter(
        run__collection=collection,
        run__source__in=[sync_run_source(directory), str(directory)],
        state=IngestionItem.State.FAILED,
    )
    failures = {item.name: item for item in rows.select_related("run").order_by("id")}
    remaining = with_parts(discover([directory], glob=glob, below=below))
    while batch := list(islice(remaining, COMPARED_SOURCES)):
        keys = [entry.key for entry in batch if isinstance(entry, Source)]
        known = versions.documents_to_compare(collection, keys)
        for entry in batch:
            if isinstance(entry, BrokenSource):
                result.add_broken(entry)
                continue
            present.add(entry.key)
            document = known.get(entry.key)
            if (
                document is not None
                and (digest := content_digest(entry)) is not None
                and document.is_unchanged(
                    IngestionRun.Policy.SKIP_IF_UNCHANGED, digest, recipe.digest(entry.declared)
                )
            ):
                result.unchanged.append(entry.name)
            elif reason := _previous_failure(entry, document, failures.get(entry.name)):
                result.retried.append(entry.name)
                result.reasons[entry.name] = reason
                result.changed_keys.add(entry.key)
            elif document is not None:
                result.modified.append(entry.name)
                result.changed_keys.add(entry.key)
            else:
                unknown.append(entry)
    gone = _removed_files(collection, result, glob, present_keys=present)
    leaving = LeavingDocuments(gone, match_access=False)
    # A file without document is new, or a renamed one.
    for source in unknown:
        # What comes out of a mail has that mail's key in its metadata, and so is ingested again.
        is_attached = "mail" in source.declared.get("metadata", {})
        if not is_attached and (before := leaving.take(source)):
            result.moves.append((before, source))
        else:
            result.new.append(source.name)
            result.changed_keys.add(source.key)
    moved = {document.pk for document, _ in result.moves}
    result.gone = [document for document in gone if document.pk not in moved]
    return result


def _previous_failure(source: Source, document: Document | None, item: IngestionItem | None) -> str:
    """Why the ingestion of these bytes failed, empty if it did not. Of a failed attempt only the
    size is known, not the hash."""
    if document is not None:
        if document.status == Document.Status.FAILED and document.size == source.size:
            return document.error
        if item is not None and item.run.started_at < document.updated_at:
            return ""  # it was loaded since
    return item.error if item is not None and item.size == source.size else ""


# --- removed files -------------------------------------------------------------------------------


def _removed_files(
    collection: Collection, result: SyncResult, glob: str, *, present_keys: set[str]
) -> list[Document]:
    prefix = result.key_prefix
    rows = Document.objects.filter(
        collection=collection,
        is_current=True,
        key__startswith=prefix,  # Django escapes what LIKE would take for a sign
        # What a program gave as text has no file, whatever its id looks like.
        declared__file_name__isnull=True,
        url="",
    ).order_by("key")
    fields = rows.only("id", "key", "source", "size", "source_sha256", "status", "declared")
    return [
        row
        for row in fields.iterator(chunk_size=2000)
        if row.key not in present_keys and _is_removed(row, prefix, glob, result.failed)
    ]


def _is_removed(document: Document, prefix: str, glob: str, broken: list[str]) -> bool:
    relative = document.key.removeprefix(prefix)
    name = storable_name(relative)
    # Nothing is concluded about an unreadable file, or what is below an unreadable directory.
    if any(
        path in {name, "."} or name.startswith((f"{path}/", f"{path}{PART_MARK}"))
        for path in broken
    ):
        return False
    if "part_of" in document.declared:
        # It goes with its container, or when that was read and has it no more.
        relative = relative.partition(PART_MARK)[0]
    if any(part.startswith(".") for part in relative.split("/")):
        return False
    if document.source.endswith(CHUNK_BUNDLE_SUFFIX):
        # Of many files, any of which may have been the last one: unless an unreadable file, record
        # or directory may have belonged to it. A chunk file may have any name.
        folders = {str(parent) for parent in PurePosixPath(relative).parents}
        return matches_glob(f"{relative}_chunk_001.json", glob) and not any(
            str(PurePosixPath(path).parent) in folders for path in broken
        )
    return matches_glob(relative, glob) and not may_exist(Path(document.key))


def allowed_directory(directory: str) -> tuple[Path, Path]:
    """The directory, resolved and so without links in its path, and the root above it. Raises
    Forbidden unless it is below a root, without revealing whether it exists, and InvalidInput if it
    is no directory."""
    roots = [Path(root).resolve() for root in settings.INGEST_ROOTS]
    if not roots:
        raise Forbidden(
            gettext(
                "This site does not read directories of its server on request. Upload"
                " the files, or ask the operator to add the directory to"
                " RAGSITE_INGEST_ROOTS."
            )
        )
    path = Path(directory)
    if not path.is_absolute() or ".." in path.parts or "\0" in directory:
        raise InvalidInput(
            gettext("Give the full path of the directory, starting with / and without “..”."),
            field="directory",
        )
    resolved = path.resolve()
    root = next((root for root in roots if resolved.is_relative_to(root)), None)
    if root is None:
        raise Forbidden(
            gettext(
                "{directory} is not below a directory that this site may read. The"
                " operator lists those in RAGSITE_INGEST_ROOTS."
            ).format(directory=directory)
        )
    if not resolved.is_dir():
        raise InvalidInput(
            gettext("{directory} is not a directory. Check the path.").format(directory=directory),
            field="directory",
        )
    return resolved, root


def sync_directory(
    *,
    collection: Collection,
    directory: Path,
    glob: str = "**/*",
    delete: bool = False,
    dry_run: bool = False,
    queue: bool = False,
    allow_empty: bool = False,
    allow_deletions: bool = False,
    below: Path | None = None,
    user: Any = None,
    on_progress: Callable[[IngestionRun], Any] = lambda run: None,
) -> SyncResult:
    """Ingest what is new or modified below `directory`, rename documents of renamed files and, with
    `delete`, delete documents whose files are gone.

    Every file is read once to compare. With `queue` the workers ingest; with `below` links that
    lead out of that directory are not followed. Raises InvalidInput if there is no directory;
    SyncRefused, except for a dry run, if it is empty and not `allow_empty`, or too much would be
    deleted and not `allow_deletions`; Conflict if somebody else is syncing it; InferenceError.
    """
    directory = _resolved_directory(directory)
    with _exclusive_sync(collection, directory):
        result = _compare(collection, directory, glob=glob, below=below)
        refused = _refusal(
            result, allow_empty=allow_empty, allow_deletions=allow_deletions or not delete
        )
        if dry_run:
            result.refused = refused
            return result
        if refused:
            raise refused
        unmoved = {
            source.key
            for document, source in result.moves
            if not rename_document(collection, document, source)
        }
        keys = result.changed_keys | unmoved
        # Discovered again: a directory may be too large to keep its sources in memory.
        sources = (
            entry
            for entry in with_parts(discover([directory], glob=glob, below=below))
            if isinstance(entry, BrokenSource) or entry.key in keys
        )
        arguments: dict[str, Any] = {
            "collection": collection,
            "sources": sources,
            "source": sync_run_source(directory),
        }
        if queue:
            result.run = ingest_sources(**arguments, user=user)
        else:
            result.run = ingest_inline(**arguments, on_progress=on_progress)
        if delete and result.run.cancel_requested_at is None:
            # Those whose files are still missing just before.
            sure = [
                document.pk
                for document in result.gone
                if document.source.endswith(CHUNK_BUNDLE_SUFFIX)
                or not may_exist(Path(document.key))
            ]
            for start in range(0, len(sure), DELETED_DOCUMENTS):
                batch = Document.objects.filter(pk__in=sure[start : start + DELETED_DOCUMENTS])
                delete_documents(documents=list(batch))
            result.deletions_applied = True
        return result


def plan_first_sync(*, slug: str, directory: Path, glob: str = "**/*") -> SyncResult:
    """A dry run for a collection that does not exist: every file is new, and nothing is written.
    Raises InvalidInput if there is no directory, or no collection can have this slug."""
    check_slug(slug)
    result = SyncResult(_resolved_directory(directory))
    for entry in with_parts(discover([result.directory], glob=glob)):
        if isinstance(entry, BrokenSource):
            result.add_broken(entry)
        else:
            result.new.append(entry.name)
    return result


def _resolved_directory(directory: Path) -> Path:
    if not directory.is_dir():
        raise InvalidInput(
            gettext(
                "{directory} is not a directory that can be read. Nothing was changed."
                " Check that its volume is mounted."
            ).format(directory=directory),
            field="directory",
        )
    return directory.resolve()


@contextmanager
def _exclusive_sync(collection: Collection, directory: Path) -> Iterator[None]:
    """Lock against another sync of this directory; ends with the connection, however that ends.

    The lock is held by a separate transaction: a session lock would stay behind in a connection
    pooler. That transaction is rolled back before its connection is closed: the server notices a
    closed connection a moment later, and would refuse a sync that follows at once.
    """
    key: list[Any] = [f"sync {directory}", collection.pk]
    own = connection.copy()
    try:
        own.set_autocommit(False)
        with own.cursor() as cursor:
            cursor.execute("SELECT pg_try_advisory_xact_lock(hashtextextended(%s, %s))", key)
            if not cursor.fetchone()[0]:
                raise Conflict(
                    gettext(
                        "Somebody else is syncing {directory} into {collection}. Try"
                        " again when that has ended."
                    ).format(directory=directory, collection=collection)
                )
        yield
    finally:
        with suppress(DatabaseError):
            own.rollback()
        own.close()


def _refusal(result: SyncResult, *, allow_empty: bool, allow_deletions: bool) -> SyncRefused | None:
    """Why the changes are not made: the directory had files and is empty, or most are gone."""
    gone = len(result.gone)
    present = len(result.modified) + len(result.unchanged) + len(result.moves) + len(result.retried)
    doubt = deletion_doubt(
        gone=gone,
        known=gone + present,
        listed=present + len(result.new) + len(result.failed),
        percent=50,
        allow_empty=allow_empty,
        allow_deletions=allow_deletions,
    )
    if doubt == "empty":
        return SyncRefused(
            gettext(
                "{directory} contains no files, but the collection has documents from"
                " it ({count}). Check that its volume is mounted and that the glob is"
                " right."
            ).format(directory=result.directory, count=format_number(gone)),
            option="allow_empty",
            field="directory",
        )
    if doubt == "many":
        return SyncRefused(
            gettext("{gone} of {known} documents would be deleted, more than half.").format(
                gone=format_number(gone), known=format_number(gone + present)
            ),
            option="allow_deletions",
            field="delete",
        )
    return None


def ingest_server_directory(
    *, collection: Collection, directory: str, glob: str = "**/*", **options: Any
) -> IngestionRun:
    """Store and queue the files of a directory; links that lead out of the root fail. Raises
    Forbidden and InvalidInput."""
    path, root = allowed_directory(directory)
    try:
        sources = discover_any([path], glob=glob, below=root)
    except NothingFoundError as error:
        raise InvalidInput(str(error), field="glob") from error
    entries = keep_source_documents(collection, sources, user=options.get("user"))
    return ingest_sources(collection=collection, sources=entries, source=str(path), **options)


def sync_server_directory(*, collection: Collection, directory: str, **options: Any) -> SyncResult:
    """`sync_directory` below an allowed root, ingested by the workers. Also raises Forbidden."""
    path, root = allowed_directory(directory)
    return sync_directory(collection=collection, directory=path, below=root, queue=True, **options)
