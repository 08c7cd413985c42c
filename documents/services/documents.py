"""Documents: ingested from text, uploads, pages of the web and other sources, read as text,
downloaded. Begin with `ingest_sources`; `checked_access` validates access lists."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path, PurePosixPath
from typing import IO, TYPE_CHECKING, Any, cast

from django.conf import settings
from django.core.exceptions import ObjectDoesNotExist
from django.core.files.base import File
from django.core.files.uploadedfile import TemporaryUploadedFile
from django.db import IntegrityError
from django.http import FileResponse
from django.utils.formats import number_format
from django.utils.translation import gettext

from accounts.audit import Action
from accounts.services import named_principals, principals
from common.errors import Forbidden, InvalidInput, NotFound
from common.stored_messages import translated_message
from documents.ingestion import jobs, versions
from documents.ingestion.concurrency import share_collection_locks
from documents.ingestion.containers import UNPACK_LATER, with_parts
from documents.ingestion.duplicates import make_alias
from documents.ingestion.pipeline import InlineIngestion
from documents.ingestion.preparation import recipe_for
from documents.ingestion.registration import read_if_changed, register_documents
from documents.ingestion.sources import (
    MAX_KEY_CHARACTERS,
    ChunkFile,
    Entry,
    Source,
    bundle_chunks,
    checked_metadata,
    find_chunk_files,
    storable_name,
    text_source,
)
from documents.ingestion.stored_files import replace_file, storing_transaction
from documents.ingestion.text_changes import join_passages
from documents.ingestion.vector_indexes import suspended_index
from documents.models import Chunk, Collection, Document, IngestionItem, IngestionRun
from documents.services.audit import record
from documents.services.deletion import delete_documents, parts_by_name
from reading.parsers.chunk_json import CHUNK_BUNDLE_SUFFIX

if TYPE_CHECKING:
    from documents.ingestion.web_pages import Fetch


def checked_access(
    access: Sequence[str] | None, *, workspace_id: int, user: Any = None
) -> list[str] | None:
    """The entries that an access list means, in their order; None is everybody. Users may be named
    by `user:ID`, user name or email address, groups by `group:ID` or name.

    Raises InvalidInput for an empty list, for unknown users or groups, and for a list without
    `user`, whose list it is.
    """
    (checked,) = checked_access_lists([access], workspace_id=workspace_id, user=user)
    if isinstance(checked, InvalidInput):
        raise checked
    return checked


def checked_access_lists(
    lists: Sequence[Sequence[str] | None], *, workspace_id: int, user: Any = None
) -> list[list[str] | InvalidInput | None]:
    """For each list what `checked_access` returns, or raises; with three queries for all."""
    if all(access is None for access in lists):
        return [None] * len(lists)
    named = named_principals(
        {name for access in lists for name in access or () if isinstance(name, str)},
        workspace_id=workspace_id,
    )
    own = None if user is None else set(principals(user))

    def check(access: Sequence[str] | None) -> list[str] | InvalidInput | None:
        if access is None:
            return None
        if isinstance(access, str) or not all(isinstance(name, str) for name in access):
            message = gettext("An access list is a list of names, such as “user:7”.")
        elif not access:
            message = gettext(
                "An empty list would hide it from everybody. Give null for everybody in"
                " the workspace, or delete the document."
            )
        elif unknown := [name for name in access if not named[name]]:
            message = gettext(
                "“{name}” is nobody here. Name members of the workspace by user:ID, user name or"
                " email address, and groups by group:ID or name."
            ).format(name=unknown[0])
        elif several := [name for name in access if len(named[name]) > 1]:
            message = gettext("“{name}” may be {entries}. Give the one that you mean.").format(
                name=several[0], entries=", ".join(named[several[0]])
            )
        else:
            entries = sorted({entry for name in access for entry in named[name]})
            if own is None or own & set(entries):
                return entries
            message = gettext(
                "You could not see the document any more yourself. Add user:{pk}."
            ).format(pk=user.pk)
        return InvalidInput(message, field="access")

    return [check(access) for access in lists]


#: A request takes this many parts out of a container itself; a worker takes those of larger ones.
PARTS_IN_REQUEST = 40
#: Shown to all members as the source of a run whose files only some may see.
RESTRICTED_SOURCE_NAME = "Documents with an access list"


@dataclass(frozen=True, slots=True)
class DocumentText:
    """A document's full text, and the chunks whose offsets point into it."""

    text: str
    chunks: list[Chunk]


def ingest_text(
    *,
    collection: Collection,
    key: str,
    text: str,
    title: str = "",
    media_type: str = "text/plain",
    metadata: dict[str, Any] | None = None,
    **options: Any,
) -> IngestionRun:
    """Queue a document given as text; `key` is the caller's own id for it. `options` are those of
    `ingest_sources`."""
    suffixes = {"text/plain": ".txt", "text/markdown": ".md", "text/html": ".html"}
    if media_type not in suffixes:
        raise InvalidInput(
            gettext("Text may be {names}, not {media_type}. Send other types as files.").format(
                names=", ".join(suffixes), media_type=media_type
            ),
            field="media_type",
        )
    if not 0 < len(key) <= MAX_KEY_CHARACTERS:
        raise InvalidInput(
            gettext("The key must have 1 to {limit} characters.").format(
                limit=number_format(MAX_KEY_CHARACTERS, force_grouping=True)
            ),
            field="key",
        )
    if not text.strip():
        raise InvalidInput(gettext("The text is empty."), field="text")
    declared = {
        "title": title,
        "metadata": checked_metadata(metadata or {}),
        "file_name": key + suffixes[media_type],
    }
    source = text_source(key, text, **{name: value for name, value in declared.items() if value})
    return ingest_sources(collection=collection, sources=[source], source=title or key, **options)


def keep_source_documents(
    collection: Collection, entries: Iterable[Entry], *, user: Any = None
) -> Iterator[Entry]:
    """The entries; chunk records from another folder than before get the key of the document with
    the same `source_document`, so that they replace it. A document under their own key goes first,
    and where several have that `source_document` they become another one."""
    keys: dict[str, list[str]] | None = None
    for entry in entries:
        if not (isinstance(entry, Source) and entry.name.endswith(CHUNK_BUNDLE_SUFFIX)):
            yield entry
            continue
        if keys is None:  # of all such documents, by their names: one query for any number
            rows = Document.objects.current() if user is None else Document.objects.visible_to(user)
            bundles = rows.filter(
                collection=collection, is_current=True, source__endswith=CHUNK_BUNDLE_SUFFIX
            )
            keys = defaultdict(list)
            for source, key in bundles.values_list("source", "key"):
                keys[source].append(key)
        known = keys.get(entry.name[:1024], [])
        is_moved = len(known) == 1 and entry.key not in known
        yield replace(entry, key=known[0]) if is_moved else entry


def ingest_sources(
    *,
    collection: Collection,
    sources: Iterable[Entry],
    user: Any = None,
    policy: str = IngestionRun.Policy.SKIP_IF_UNCHANGED,
    store_once: bool = False,
    source: str = "",
    access: Sequence[str] | None = None,
    batch: int | None = None,
) -> IngestionRun:
    """Store sources and queue them for the workers, all or none.

    Of a mail or archive with more than PARTS_IN_REQUEST parts these are taken out by a worker. With
    `store_once` a file with the bytes of another document becomes an alias of it. `access` lists
    who may see new documents, such as `user:7`; existing documents keep their lists and
    reject a text meant for fewer people. The run does not name files with an access list. `batch`
    documents are sent in one message, if given. Raises InvalidInput for an invalid list, and
    NotFound for a collection that was deleted.
    """
    listed = checked_access(access, workspace_id=collection.workspace_id, user=user)
    with storing_transaction() as stored:
        share_collection_locks([collection.pk])  # it cannot be deleted from here on
        _require_collection(collection)
        run = create_run(
            collection=collection,
            user=user,
            policy=policy,
            store_once=store_once,
            source=source if listed is None else RESTRICTED_SOURCE_NAME,
        )
        watch = PartWatch(collection, user)
        queued = [
            document_id
            for entry in watch.entries(
                _with_access(listed, with_parts(sources, most=PARTS_IN_REQUEST))
            )
            if (document_id := queue_source(entry, run, stored)) is not None
        ]
        from documents.tasks import BATCH, enqueue  # noqa: PLC0415 (loads Celery)

        enqueue(queued, batch=batch or BATCH)
    watch.remove_dropped()
    if not queued:
        jobs.finish_run(run.id)
    run.refresh_from_db()
    return run


class PartWatch:
    """Remembers which parts the containers of a run had before it, to delete those that they no
    longer have."""

    def __init__(self, collection: Collection, user: Any = None) -> None:
        self._collection = collection
        self._user = user
        #: By the key of a container, the names of its parts now, and of those that it had before.
        self._changed: dict[str, tuple[list[str], list[str]]] = {}

    def entries(self, entries: Iterable[Entry]) -> Iterator[Entry]:
        for entry in entries:
            if isinstance(entry, Source) and "parts" in entry.declared:
                rows = Document.objects.filter(
                    collection=self._collection, key=entry.key, is_current=True
                )
                before = rows.values_list("declared__parts", flat=True).first() or []
                now = entry.declared["parts"]
                if dropped := [name for name in before if name not in set(now)]:
                    self._changed[entry.key] = (now, dropped)
            yield entry

    def remove_dropped(self) -> None:
        """Delete them, unless the container was refused and so is as before."""
        for key, (now, dropped) in self._changed.items():
            rows = Document.objects.filter(collection=self._collection, key=key, is_current=True)
            if self._user is not None:
                rows = rows.visible_to(self._user)
            if rows.filter(declared__parts=now).exists():
                found = parts_by_name(self._collection.pk, key, dropped)
                delete_documents(documents=found)


def _with_access(access: Sequence[str] | None, sources: Iterable[Entry]) -> Iterable[Entry]:
    for entry in sources:
        if access is not None and isinstance(entry, Source):
            yield replace(entry, access=tuple(access))
        else:
            yield entry


def _require_collection(collection: Collection) -> None:
    if not Collection.objects.filter(pk=collection.pk).exists():
        raise NotFound(gettext("The collection “{slug}” is gone.").format(slug=collection.slug))


def queue_source(entry: Entry, run: IngestionRun, stored: list[str]) -> int | None:
    """Store one source, appending its file to `stored`; returns the document's id if a worker must
    process it."""
    jobs.count_on_run(run.id, total=1, bytes=entry.size)
    recipe = recipe_for(run.collection)
    keys = [entry.key, entry.part_of] if isinstance(entry, Source) else []
    known = versions.documents_to_compare(run.collection, keys)
    content = read_if_changed(run, entry, known, recipe)
    if isinstance(content, IngestionItem):
        jobs.record_items(run, [content])
        return None
    assert isinstance(entry, Source)
    registered = register_documents(
        run.collection, [entry], run=run, state=IngestionItem.State.WAITING
    )
    document = registered[entry.key]
    # The name decides nothing about the path: it is kept in `source`.
    replace_file(document, content, stored)
    digest = recipe.digest(entry.declared)
    shares_text = run.store_once and UNPACK_LATER not in entry.declared
    if shares_text and make_alias(document, source_sha256=content.sha256, recipe=digest):
        return None
    return document.id


def ingest_inline(
    *,
    collection: Collection,
    sources: Iterable[Entry],
    policy: str = IngestionRun.Policy.SKIP_IF_UNCHANGED,
    store_once: bool = False,
    source: str = "",
    on_progress: Callable[[IngestionRun], Any] = lambda run: None,
    suspend_index: bool = False,
    access: Sequence[str] | None = None,
) -> IngestionRun:
    """Ingest in this process; returns the finished run. `access` is as in `ingest_sources`.

    `suspend_index` rebuilds the vector index at the end instead of updating it row by row; raises
    Conflict if other collections need it meanwhile, and NotFound for a collection that was deleted.
    """
    listed = checked_access(access, workspace_id=collection.workspace_id)
    source = source if listed is None else RESTRICTED_SOURCE_NAME
    try:
        with suspended_index(collection) if suspend_index else nullcontext():
            run = create_run(
                collection=collection, policy=policy, store_once=store_once, source=source
            )
            on_progress(run)
            watch = PartWatch(collection)
            entries = watch.entries(_with_access(listed, with_parts(sources)))
            run = InlineIngestion(run, on_progress=on_progress).ingest(entries)
            watch.remove_dropped()
            return run
    except (IntegrityError, ObjectDoesNotExist):
        _require_collection(collection)
        raise


@dataclass(frozen=True, slots=True)
class Upload:
    """An uploaded file. `name` may contain folders."""

    name: str
    file: "File[Any]"
    metadata: dict[str, Any] = field(default_factory=dict)


def ingest_uploads(
    *, collection: Collection, uploads: Sequence[Upload], **options: Any
) -> IngestionRun:
    """Store the files and queue them; returns at once with the run. `options` are those of
    `ingest_sources`."""
    if not uploads:
        raise InvalidInput(gettext("No file was sent. Choose at least one."), field="files")
    return ingest_sources(
        collection=collection,
        # In one order: two uploads of the same files cannot wait for each other.
        sources=sorted(
            with_parts(_upload_sources(uploads), most=PARTS_IN_REQUEST),
            key=lambda entry: entry.key if isinstance(entry, Source) else "",
        ),
        source=uploads[0].name if len(uploads) == 1 else f"{len(uploads)} files",
        **options,
    )


def _upload_sources(uploads: Sequence[Upload]) -> Iterable[Entry]:
    records: list[ChunkFile] = []
    for upload in uploads:
        name, file = storable_name(upload.name), upload.file
        found = find_chunk_files(name, partial(_open_upload, upload))
        if found is not None:
            records += found
            continue
        yield Source(
            key=name,
            name=name,
            size=file.size,
            read=partial(_read_upload, upload),
            declared={"metadata": upload.metadata} if upload.metadata else {},
            path=Path(file.temporary_file_path())  # as Django keeps a large one
            if isinstance(file, TemporaryUploadedFile)
            else None,
        )
    yield from bundle_chunks(records)


def _read_upload(upload: Upload) -> bytes:
    with _open_upload(upload) as file:
        return file.read()


@contextmanager
def _open_upload(upload: Upload) -> Iterator[IO[bytes]]:
    """The upload from its beginning; not closed, because it is read more than once."""
    upload.file.seek(0)
    yield cast("IO[bytes]", upload.file)
    upload.file.seek(0)


def require_urls(urls: Sequence[str]) -> None:
    """Raise Forbidden if fetching is disabled, and InvalidInput for an invalid URL."""
    if not settings.URL_INGESTION:
        raise Forbidden(
            gettext(
                "Nothing is fetched from the web here. Upload the page, or ask the"
                " operator to set RAGSITE_URL_INGESTION=true."
            )
        )
    from reading.web_fetch import FetchError, checked_url  # noqa: PLC0415 (loads HTTPX)

    for url in urls:
        try:
            checked_url(url)
        except FetchError as error:
            raise InvalidInput(translated_message(str(error)), field="url") from error


def ingest_urls(
    *,
    collection: Collection,
    urls: Sequence[str],
    metadata: dict[str, Any] | None = None,
    queue: bool = True,
    user: Any = None,
    on_progress: Callable[[IngestionRun], Any] = lambda run: None,
    fetch_with: "Fetch | None" = None,
    **options: Any,
) -> IngestionRun:
    """Fetch the pages now, and ingest them here or, with `queue`, by the workers; `options` are
    those of both.

    The document's key is the requested URL. A page that cannot be fetched fails alone. Raises
    Forbidden and InvalidInput.
    """
    from documents.ingestion.web_pages import fetch_page, web_sources  # noqa: PLC0415 (loads HTTPX)
    from reading.web_fetch import checked_url  # noqa: PLC0415 (loads HTTPX)

    require_urls(urls)
    fetch = fetch_with or fetch_page
    sources = web_sources(collection, urls, metadata=metadata, fetch_with=fetch)
    options |= {
        "collection": collection,
        "source": ", ".join(str(checked_url(url)) for url in urls),
    }
    if not queue:
        return ingest_inline(**options, sources=sources, on_progress=on_progress)
    # Before there is a transaction: a slow server must not hold one open.
    return ingest_sources(**options, sources=list(sources), user=user)


def create_run(
    *,
    collection: Collection,
    policy: str,
    store_once: bool = False,
    source: str = "",
    user: Any = None,
) -> IngestionRun:
    """Create the row of an ingestion run."""
    run = IngestionRun.objects.create(
        workspace_id=collection.workspace_id,
        collection=collection,
        user=user if getattr(user, "is_authenticated", False) else None,
        policy=policy,
        store_once=store_once,
        source=source[:1024],
    )
    record(Action.INGESTED, run, user=run.user)
    return run


def document_text(document: Document) -> DocumentText:
    """The full text, joined from the chunks. For an alias it is the original's.

    Only white space lies between two chunks; it becomes one blank line between two paragraphs, so
    that every chunk's offsets are exact.
    """
    chunks = list(
        Chunk.objects.filter(document=document.text_id)
        .defer("embedding", "search_vector", "metadata")
        .order_by("ordinal")
    )
    return DocumentText(text=join_passages(chunks), chunks=chunks)


TEXT_SUFFIXES = {"markdown": ".md", "plain": ".txt"}


def original_response(document: Document) -> FileResponse:
    """The stored file, which browsers download instead of displaying, because it may contain
    anything. Raises NotFound if there is none: of what commands ingest, files that are text
    themselves are not stored."""
    try:
        if not document.file:
            raise FileNotFoundError
        file: Any = document.file.open("rb")
    except OSError as error:
        raise NotFound(
            gettext(
                "The original file of this document is not stored here: it was brought"
                " as text, or by a command. Its text is here."
            )
        ) from error
    answer = FileResponse(
        file,
        as_attachment=True,
        filename=_download_name(document),
        content_type="application/octet-stream",
    )
    answer.headers["X-Content-Type-Options"] = "nosniff"
    answer.headers["Content-Length"] = str(document.file.size)
    return answer


def text_file(document: Document) -> tuple[str, str]:
    """Name and content of the document's text, with people's edits."""
    stem = PurePosixPath(_download_name(document)).stem or "document"
    return stem + TEXT_SUFFIXES.get(document.rendering, ".txt"), document_text(document).text


def _download_name(document: Document) -> str:
    source = str(document.declared.get("file_name") or document.source or document.key)
    name = PurePosixPath(source.replace("\\", "/")).name
    printable = "".join(letter for letter in name if letter.isprintable())
    return printable.strip(". ")[:200] or f"document-{document.pk}"
