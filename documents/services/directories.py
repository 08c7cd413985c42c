"""Directories of the server: keep a collection in sync with one (`sync_directory`), or ingest one
for a request (`ingest_server_directory`, only below RAGSITE_INGEST_ROOTS)."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
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
    Entry,
    NothingFoundError,
    Source,
    discover,
    discover_any,
    matches_glob,
    read_content,
    storable_key,
    storable_name,
)
from documents.models import Collection, Document, IngestionItem, IngestionRun
from documents.services.collections import check_slug
from documents.services.deletion import delete_documents
from documents.services.documents import ingest_inline, ingest_sources
from documents.services.renames import file_suffix, rename_document
from reading.parsers import ParseError
from reading.parsers.chunk_json import CHUNK_BUNDLE_SUFFIX


def sync_run_source(directory: Path) -> str:
    """The `source` of a run that syncs the directory."""
    return f"sync {directory}"


#: Sources whose rows are asked for at once.
COMPARED_SOURCES = 500


@dataclass(slots=True)
class SyncPlan:
    """Changes of a directory since it was ingested; each list names files by their relative path.

    `renamed` are documents whose bytes are now in another file, `gone` those whose file no longer
    exists. `failed` cannot be read, so nothing is concluded about them; `retried` failed to ingest
    before and are tried again. `reasons` says why, by name, for both. `changed_keys` are those to
    ingest.
    """

    new: list[str] = field(default_factory=list)
    modified: list[str] = field(default_factory=list)
    unchanged: list[str] = field(default_factory=list)
    renamed: list[tuple[Document, Source]] = field(default_factory=list)
    gone: list[Document] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)
    retried: list[str] = field(default_factory=list)
    reasons: dict[str, str] = field(default_factory=dict)
    changed_keys: set[str] = field(default_factory=set)

    @property
    def found(self) -> int:
        """Number of files in the directory."""
        read = (*self.new, *self.modified, *self.unchanged, *self.failed, *self.retried)
        return len(read) + len(self.renamed)


def plan_sync(
    collection: Collection, directory: Path, glob: str, sources: Iterable[Entry]
) -> SyncPlan:
    """Compare the directory's `sources` with the collection. Each file is read once, for its hash.

    Only documents whose key is below the directory and whose file `glob` would match can be
    removed, and only if the file certainly does not exist.
    """
    plan = SyncPlan()
    broken: list[str] = []
    unknown: list[Source] = []
    seen: set[str] = set()
    # The last failed attempt at each file, by name: a file that never became a document is known
    # only from the runs of this directory.
    rows = IngestionItem.objects.filter(
        run__collection=collection,
        run__source__in=[sync_run_source(directory), str(directory)],
        state=IngestionItem.State.FAILED,
    )
    failures = {item.name: item for item in rows.select_related("run").order_by("id")}
    remaining = iter(sources)
    while batch := list(islice(remaining, COMPARED_SOURCES)):
        keys = [entry.key for entry in batch if isinstance(entry, Source)]
        known = versions.documents_to_compare(collection, keys)
        for entry in batch:
            if isinstance(entry, BrokenSource):
                broken.append(entry.name)
                plan.reasons[entry.name] = entry.reason
                continue
            seen.add(entry.key)
            document, failure = known.get(entry.key), failures.get(entry.name)
            recipe = recipe_for(collection).digest(entry.declared)
            if (
                document is not None
                and (digest := _source_digest(entry)) is not None
                and document.is_unchanged(IngestionRun.Policy.SKIP_IF_UNCHANGED, digest, recipe)
            ):
                plan.unchanged.append(entry.name)
            elif reason := _previous_failure(entry, document, failure):
                plan.retried.append(entry.name)
                plan.reasons[entry.name] = reason
                plan.changed_keys.add(entry.key)
            elif document is not None:
                plan.modified.append(entry.name)
                plan.changed_keys.add(entry.key)
            else:
                unknown.append(entry)
    plan.failed += broken
    gone = _removed_files(collection, directory, glob, present_keys=seen, broken=broken)
    _match_renames(plan, unknown, gone)
    return plan


def _source_digest(source: Source) -> str | None:
    """Hash of its bytes; None if it cannot be read or is too large, which ingestion will report."""
    try:
        return read_content(source, max_bytes=settings.MAX_UPLOAD_BYTES).sha256
    except ParseError:
        return None


def _previous_failure(source: Source, document: Document | None, item: IngestionItem | None) -> str:
    """Why the ingestion of these bytes failed, empty if it did not. Of a failed attempt only the
    size is known, not the hash."""
    if document is not None:
        if document.status == Document.Status.FAILED and document.size == source.size:
            return document.error
        if item is not None and item.run.started_at < document.updated_at:
            return ""  # it was loaded since
    return item.error if item is not None and item.size == source.size else ""


def _match_renames(plan: SyncPlan, unknown: Iterable[Source], gone: Sequence[Document]) -> None:
    """A file without document is new, or a renamed one."""
    sizes = {document.size for document in gone}
    left: dict[tuple[str, str], list[Document]] = defaultdict(list)
    for document in reversed(gone):
        if document.status == Document.Status.READY:
            left[document.source_sha256, file_suffix(document.source)].append(document)
    moved: set[int] = set()
    for source in unknown:
        # Only where a size agrees: a first run would read every file twice.
        # What comes out of a mail has that mail's key in its metadata, and so is ingested again.
        is_attached = "mail" in source.declared.get("metadata", {})
        is_known = source.size in sizes and not is_attached
        digest = _source_digest(source) if is_known else None
        # The same bytes, which are read in the same way.
        if digest and (same := left[digest, file_suffix(source.name)]):
            before = same.pop()
            moved.add(before.pk)
            plan.renamed.append((before, source))
        else:
            plan.new.append(source.name)
            plan.changed_keys.add(source.key)
    plan.gone += [document for document in gone if document.pk not in moved]


# --- removed files -------------------------------------------------------------------------------


def _removed_files(
    collection: Collection, directory: Path, glob: str, *, present_keys: set[str], broken: list[str]
) -> list[Document]:
    prefix = key_prefix(directory)
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
        if row.key not in present_keys and _is_removed(row, prefix, glob, broken)
    ]


def key_prefix(directory: Path) -> str:
    """The common prefix of the keys of all files below the directory, not of those of
    `directory-2`."""
    return storable_key(str(directory)).rstrip("/") + "/"


def _is_removed(document: Document, prefix: str, glob: str, broken: list[str]) -> bool:
    key, source = document.key, document.source
    relative = key.removeprefix(prefix)
    if "part_of" in document.declared:
        # It goes with its container, or when that was read and has it no more.
        if any(_is_file_or_below(relative, name) for name in broken):
            return False
        relative = relative.partition(PART_MARK)[0]
    if any(part.startswith(".") for part in relative.split("/")):
        return False
    if source.endswith(CHUNK_BUNDLE_SUFFIX):
        # Of many files, any of which may have been the last one: unless an unreadable file, record
        # or directory may have belonged to it. A chunk file may have any name.
        folders = {str(parent) for parent in PurePosixPath(relative).parents}
        return matches_glob(f"{relative}_chunk_001.json", glob) and not any(
            str(PurePosixPath(name).parent) in folders or _is_file_or_below(relative, name)
            for name in broken
        )
    return (
        matches_glob(relative, glob)
        and not any(_is_file_or_below(relative, name) for name in broken)
        and not _may_exist(Path(key))
    )


def _is_file_or_below(relative: str, broken: str) -> bool:
    """Whether the unreadable path is the file or a directory above it."""
    name = storable_name(relative)
    return broken in {name, "."} or name.startswith((f"{broken}/", f"{broken}{PART_MARK}"))


def _may_exist(path: Path) -> bool:
    """Only a definite answer counts: a file that cannot be reached may exist."""
    try:
        path.lstat()
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError:
        return True
    return True


def changed_sources(
    directory: Path, glob: str, keys: set[str], *, below: Path | None = None
) -> Iterator[Entry]:
    """The sources to ingest and those that cannot be read, discovered again: a directory may be too
    large to keep its sources in memory."""
    for entry in with_parts(discover([directory], glob=glob, below=below)):
        if isinstance(entry, BrokenSource) or entry.key in keys:
            yield entry


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


#: More deletions than this, of more than half of the documents, are not done unasked.
FREE_DELETIONS = 10
DELETION_BATCH = 100


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


@dataclass(frozen=True, slots=True)
class SyncResult:
    """The outcome for the files, each by its relative path. `run` is None if nothing was ingested;
    `deleted` files no longer exist, and their documents were deleted only if requested
    (`deletions_applied`). `failed` could not be read, `retried` failed to ingest before; `reasons`
    says why, by name, for both. `refused` is set by a dry run of what would be refused."""

    run: IngestionRun | None
    new: tuple[str, ...]
    modified: tuple[str, ...]
    unchanged: tuple[str, ...]
    renamed: tuple[tuple[str, str], ...]
    deleted: tuple[str, ...]
    failed: tuple[str, ...]
    retried: tuple[str, ...]
    reasons: Mapping[str, str]
    deletions_applied: bool
    refused: SyncRefused | None = None


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
        found = with_parts(discover([directory], glob=glob, below=below))
        plan = plan_sync(collection, directory, glob, found)
        refused = _refusal(
            plan, directory, allow_empty=allow_empty, allow_deletions=allow_deletions or not delete
        )
        if dry_run:
            return _sync_result(plan, directory, refused=refused)
        if refused:
            raise refused
        unmoved = {
            source.key
            for document, source in plan.renamed
            if not rename_document(collection, document, source)
        }
        arguments: dict[str, Any] = {
            "collection": collection,
            "sources": changed_sources(
                directory,
                glob,
                plan.changed_keys | unmoved,
                below=below,
            ),
            "source": sync_run_source(directory),
        }
        if queue:
            run = ingest_sources(**arguments, user=user)
        else:
            run = ingest_inline(**arguments, on_progress=on_progress)
        goes_on = run.cancel_requested_at is None
        if delete and goes_on:
            _delete_removed(plan.gone)
        return _sync_result(plan, directory, run=run, applied=delete and goes_on)


def plan_first_sync(*, slug: str, directory: Path, glob: str = "**/*") -> SyncResult:
    """A dry run for a collection that does not exist: every file is new, and nothing is written.
    Raises InvalidInput if there is no directory, or no collection can have this slug."""
    check_slug(slug)
    directory = _resolved_directory(directory)
    plan = SyncPlan()
    for entry in with_parts(discover([directory], glob=glob)):
        if isinstance(entry, BrokenSource):
            plan.failed.append(entry.name)
            plan.reasons[entry.name] = entry.reason
        else:
            plan.new.append(entry.name)
    return _sync_result(plan, directory)


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


def _refusal(
    plan: SyncPlan, directory: Path, *, allow_empty: bool, allow_deletions: bool
) -> SyncRefused | None:
    """Why the plan is not carried out: the directory had files and is empty, or most are gone."""
    gone, known = len(plan.gone), len(plan.gone) + len(plan.modified) + len(plan.unchanged)
    known += len(plan.renamed) + len(plan.retried)
    if plan.found == 0 and plan.gone and not allow_empty:
        return SyncRefused(
            gettext(
                "{directory} contains no files, but the collection has documents from"
                " it ({count}). Check that its volume is mounted and that the glob is"
                " right."
            ).format(directory=directory, count=format_number(gone)),
            option="allow_empty",
            field="directory",
        )
    if gone > FREE_DELETIONS and 2 * gone > known and not allow_deletions:
        return SyncRefused(
            gettext("{gone} of {known} documents would be deleted, more than half.").format(
                gone=format_number(gone), known=format_number(known)
            ),
            option="allow_deletions",
            field="delete",
        )
    return None


def _delete_removed(gone: Sequence[Document]) -> None:
    """Delete the documents whose files are still missing: checked again just before."""
    sure = [
        document.pk
        for document in gone
        if document.source.endswith(CHUNK_BUNDLE_SUFFIX) or not _may_exist(Path(document.key))
    ]
    for start in range(0, len(sure), DELETION_BATCH):
        batch = Document.objects.filter(pk__in=sure[start : start + DELETION_BATCH])
        delete_documents(documents=list(batch))


def _sync_result(
    plan: SyncPlan,
    directory: Path,
    *,
    run: IngestionRun | None = None,
    applied: bool = False,
    refused: SyncRefused | None = None,
) -> SyncResult:
    prefix = key_prefix(directory)

    def relative(document: Document) -> str:
        return document.key.removeprefix(prefix)

    return SyncResult(
        run=run,
        new=tuple(plan.new),
        modified=tuple(plan.modified),
        unchanged=tuple(plan.unchanged),
        renamed=tuple((relative(document), source.name) for document, source in plan.renamed),
        deleted=tuple(map(relative, plan.gone)),
        failed=tuple(plan.failed),
        retried=tuple(plan.retried),
        reasons=plan.reasons,
        deletions_applied=applied,
        refused=refused,
    )


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
    return ingest_sources(collection=collection, sources=sources, source=str(path), **options)


def sync_server_directory(*, collection: Collection, directory: str, **options: Any) -> SyncResult:
    """`sync_directory` below an allowed root, ingested by the workers. Also raises Forbidden."""
    path, root = allowed_directory(directory)
    return sync_directory(collection=collection, directory=path, below=root, queue=True, **options)
