"""A directory against the documents that came from it: what is new, changed, gone, moved."""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path, PurePosixPath

from django.conf import settings

from documents.ingestion import recipes, versions
from documents.ingestion.contents import content_of
from documents.ingestion.sources import BrokenSource, Source, clean_key, clean_name, discover
from documents.ingestion.walking import matches
from documents.models import Collection, Document, IngestionItem, IngestionRun
from documents.parsers import ParseError
from documents.parsers.chunk_json import CHUNK_BUNDLE_SUFFIX

Entry = Source | BrokenSource


def sync_source(directory: Path) -> str:
    """What a run says of where its files come from, if it is the sync of a directory."""
    return f"sync {directory}"


#: Sources whose rows are asked for at once.
BATCH = 500


@dataclass(frozen=True, slots=True)
class Gone:
    """A document whose file is not there any more."""

    id: int
    key: str
    name: str
    size: int
    source_sha256: str


@dataclass(frozen=True, slots=True)
class Move:
    """A document whose bytes lie under another name now."""

    gone: Gone
    key: str
    name: str


@dataclass(slots=True)
class Plan:
    """What became of a directory since it was ingested; each list names files by their path in it.

    `failed` are those that cannot be read, of which nothing is concluded; `retried` those whose
    ingestion failed before, which are tried again. `reasons` tells why, by name, for both.
    `changed_keys` are those to ingest.
    """

    new: list[str] = field(default_factory=list)
    modified: list[str] = field(default_factory=list)
    unchanged: list[str] = field(default_factory=list)
    renamed: list[Move] = field(default_factory=list)
    gone: list[Gone] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)
    retried: list[str] = field(default_factory=list)
    reasons: dict[str, str] = field(default_factory=dict)
    changed_keys: set[str] = field(default_factory=set)

    @property
    def found(self) -> int:
        """Files that are there."""
        return (
            len(self.new)
            + len(self.modified)
            + len(self.unchanged)
            + len(self.renamed)
            + len(self.failed)
            + len(self.retried)
        )


def compare(collection: Collection, directory: Path, glob: str, sources: Iterable[Entry]) -> Plan:
    """`sources` are those of the directory. Each file is read once, for its hash.

    Only documents whose key lies below the directory and whose file `glob` would match can be gone,
    and only where the file surely is not there.
    """
    plan = Plan()
    broken: list[str] = []
    unknown: list[Source] = []
    seen: set[str] = set()
    failures = _failures(collection, directory)
    for batch in _batches(sources):
        keys = [entry.key for entry in batch if isinstance(entry, Source)]
        known = versions.compared_with(collection, keys)
        for entry in batch:
            if isinstance(entry, BrokenSource):
                broken.append(entry.name)
                plan.reasons[entry.name] = entry.reason
                continue
            seen.add(entry.key)
            document, failure = known.get(entry.key), failures.get(entry.name)
            if document is not None and _is_unchanged(document, collection, entry):
                plan.unchanged.append(entry.name)
            elif reason := _failed_before(entry, document, failure):
                plan.retried.append(entry.name)
                plan.reasons[entry.name] = reason
                plan.changed_keys.add(entry.key)
            elif document is not None:
                plan.modified.append(entry.name)
                plan.changed_keys.add(entry.key)
            else:
                unknown.append(entry)
    plan.failed += broken
    gone = _gone(collection, directory, glob, seen=seen, broken=broken)
    _sort_unknown(plan, unknown, gone)
    return plan


def _batches(sources: Iterable[Entry]) -> Iterator[list[Entry]]:
    iterator = iter(sources)
    while batch := list(islice(iterator, BATCH)):
        yield batch


def _digest(source: Source) -> str | None:
    """Of its bytes; None where they cannot be read, or are too many, which ingestion will say."""
    try:
        return content_of(source, max_bytes=settings.MAX_UPLOAD_BYTES).sha256
    except ParseError:
        return None


def _is_unchanged(document: Document, collection: Collection, source: Source) -> bool:
    digest = _digest(source)
    recipe = recipes.recipe_of(collection).digest(source.declared)
    policy = IngestionRun.Policy.SKIP_IF_UNCHANGED
    return digest is not None and document.is_unchanged(policy, digest, recipe)


def _failures(collection: Collection, directory: Path) -> dict[str, IngestionItem]:
    """The last failed attempt at each file, by its name: one that never became a document is known
    only from the runs of this directory."""
    rows = IngestionItem.objects.filter(
        run__collection=collection,
        run__source__in=[sync_source(directory), str(directory)],
        state=IngestionItem.State.FAILED,
    )
    return {item.name: item for item in rows.select_related("run").order_by("id")}


def _failed_before(source: Source, document: Document | None, item: IngestionItem | None) -> str:
    """Why the ingestion of these bytes failed, empty where it did not. Of a failed attempt only the
    size is known, and not the hash."""
    if document is not None:
        if document.status == Document.Status.FAILED and document.size == source.size:
            return document.error
        if item is not None and item.run.started_at < document.updated_at:
            return ""  # it was loaded since
    return item.error if item is not None and item.size == source.size else ""


def _sort_unknown(plan: Plan, unknown: Iterable[Source], gone: list[Gone]) -> None:
    """A file that no document has is new, or one that is gone under another name."""
    sizes = {entry.size for entry in gone}
    left: dict[tuple[str, str], list[Gone]] = defaultdict(list)
    for entry in reversed(gone):
        left[entry.source_sha256, _suffix(entry.name)].append(entry)
    moved: set[int] = set()
    for source in unknown:
        # Only where a size agrees: a first run would read every file twice.
        digest = _digest(source) if source.size in sizes else None
        # The same bytes, which are read in the same way.
        if digest and (same := left[digest, _suffix(source.name)]):
            before = same.pop()
            moved.add(before.id)
            plan.renamed.append(Move(before, source.key, source.name))
        else:
            plan.new.append(source.name)
            plan.changed_keys.add(source.key)
    plan.gone += [entry for entry in gone if entry.id not in moved]


def _suffix(name: str) -> str:
    return PurePosixPath(name).suffix.lower()


# --- what is gone --------------------------------------------------------------------------------


def _gone(
    collection: Collection, directory: Path, glob: str, *, seen: set[str], broken: list[str]
) -> list[Gone]:
    prefix = key_prefix(directory)
    rows = Document.objects.filter(
        collection=collection,
        is_current=True,
        key__startswith=prefix,  # Django escapes what LIKE would take for a sign
        # What a program gave as text has no file, whatever its id looks like.
        declared__file_name__isnull=True,
        url="",
    ).order_by("key")
    fields = rows.values_list("id", "key", "source", "size", "source_sha256", "status")
    return [
        Gone(pk, key, source, size, digest if status == Document.Status.READY else "")
        for pk, key, source, size, digest, status in fields.iterator(chunk_size=2000)
        if key not in seen and _is_gone(key, source, prefix, glob, broken)
    ]


def key_prefix(directory: Path) -> str:
    """What the keys of all files below the directory begin with: not those of `directory-2`."""
    return clean_key(str(directory)).rstrip("/") + "/"


def _is_gone(key: str, source: str, prefix: str, glob: str, broken: list[str]) -> bool:
    relative = key.removeprefix(prefix)
    if any(part.startswith(".") for part in relative.split("/")):
        return False
    if source.endswith(CHUNK_BUNDLE_SUFFIX):
        # Of many files, any of which may have been the last one.
        named = f"{relative}_chunk_001.json"
        return matches(named, glob) and not any(_is_beside(relative, name) for name in broken)
    return (
        matches(relative, glob)
        and not any(_is_within(relative, name) for name in broken)
        and not _may_exist(Path(key))
    )


def _is_beside(relative: str, broken: str) -> bool:
    """Whether what cannot be read, a file beside the bundle or a record in one, or a directory, may
    have been of the bundle. A file of chunks may have any name."""
    parents = map(str, PurePosixPath(relative).parents)
    return str(PurePosixPath(broken).parent) in parents or _is_within(relative, broken)


def _is_within(relative: str, broken: str) -> bool:
    """Whether what cannot be read is the file, or a directory above it."""
    name = clean_name(relative)
    return broken in {name, "."} or name.startswith(f"{broken}/")


def _may_exist(path: Path) -> bool:
    """Only a clear no is one: a file that cannot be reached may be there."""
    try:
        path.lstat()
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError:
        return True
    return True


def is_gone_still(gone: Gone) -> bool:
    """Looked at again, just before it is deleted."""
    return gone.name.endswith(CHUNK_BUNDLE_SUFFIX) or not _may_exist(Path(gone.key))


def changed_sources(
    directory: Path, glob: str, keys: set[str], *, below: Path | None = None
) -> Iterator[Entry]:
    """Those to ingest, and what cannot be read, found anew: a directory may be too large for its
    sources to be kept."""
    for entry in discover([directory], glob=glob, below=below):
        if isinstance(entry, BrokenSource) or entry.key in keys:
            yield entry
