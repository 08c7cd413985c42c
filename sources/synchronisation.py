"""One run of a source: list what it has, compare, fetch what changed, delete what is certainly
gone. Begin with `Synchronisation.work`.

The same for every connector. A run goes on where it stopped: what was listed and fetched is in
rows, documents are committed together with the versions that they came from, and a worker that lost
its claim writes nothing more. Nothing is deleted on the word of a listing alone.
"""

import hashlib
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypeVar

from django.conf import settings
from django.db import transaction
from django.db.models import F, Q, QuerySet
from django.utils.translation import gettext

from common.translation import format_number
from documents.ingestion.sources import MAX_KEY_CHARACTERS, Source
from documents.models import Document
from documents.services.deletion import delete_documents, deletion_doubt
from documents.services.document_update import update_document
from documents.services.documents import ingest_sources
from documents.services.renames import LeavingDocuments, rename_container
from sources.connectors import connector_class
from sources.connectors.base import Connector, Item, ItemError, ItemGone, Unfinished
from sources.models import DataSource, DataSourceItem, DataSourceRun
from sources.readers import AccessOf

#: Items that are compared, asked for and deleted at once.
COMPARED_ITEMS = 500
DELETED_ITEMS = 100
#: Items, and bytes of their files, that are committed together.
FETCHED_ITEMS = 50
FETCHED_BYTES = 32 * 1024 * 1024
#: Tries of one version of an item; then it waits until it changes or somebody retries it.
MAX_ITEM_FAILURES = 3
#: Names that a comparison keeps of each sort, to be shown.
SHOWN_NAMES = 1_000
#: Keys of documents have the source's prefix before them.
MAX_ITEM_KEY_CHARACTERS = MAX_KEY_CHARACTERS - 40

T = TypeVar("T")


class ClaimLost(Exception):
    """Another worker has the source now, because this one was taken for dead."""


class Cancelled(Exception):
    """Somebody has asked the run to end."""


class Doubtful(Exception):
    """What the listing says is not believed until somebody confirms it."""


@dataclass(slots=True)
class Comparison:
    """What a listing tells. The names are the first SHOWN_NAMES of each sort; `gone` are ids of
    items that it did not name, `refused` names with the reason."""

    listed: int = 0
    new: int = 0
    changed: int = 0
    known: int = 0
    new_names: list[str] = field(default_factory=list)
    changed_names: list[str] = field(default_factory=list)
    refused: list[tuple[str, str]] = field(default_factory=list)
    gone: list[int] = field(default_factory=list)

    @property
    def unchanged(self) -> int:
        return self.listed - self.new - self.changed - len(self.refused)


def compare(
    source: DataSource,
    items: Iterable[Item],
    *,
    store: bool,
    on_batch: Callable[[Comparison], Any] = lambda comparison: None,
) -> Comparison:
    """Compare a whole listing with the known items; with `store` keep its new and changed ones.

    An unchanged item costs no write. Raises SourceError from the listing.
    """
    missing = set(source.items.values_list("pk", flat=True))
    result = Comparison(known=len(missing))
    for batch in _batches(items, COMPARED_ITEMS):
        listed = {}
        for item in batch:
            if len(item.key) > MAX_ITEM_KEY_CHARACTERS:
                reason = f"Its path has more than {MAX_ITEM_KEY_CHARACTERS} characters."
                result.refused.append((item.name[:200], reason))
            else:
                listed[item.key] = _row(source, item)
        known = {row.key: row for row in source.items.filter(key__in=listed)}
        different = []
        for key, row in listed.items():
            before = known.get(key)
            if before is not None:
                missing.discard(before.pk)
            if before is None or not before.fetched_version:
                result.new += 1
                _append(result.new_names, row.name)
            elif before.fetched_version != row.version:
                result.changed += 1
                _append(result.changed_names, row.name)
            if before is None or (before.version, before.readers) != (row.version, row.readers):
                different.append(row)
        result.listed += len(batch)
        if store and different:
            DataSourceItem.objects.bulk_create(
                different,
                update_conflicts=True,
                unique_fields=["source", "key", "workspace"],
                update_fields=_LISTED_FIELDS,
            )
        on_batch(result)
    if connector_class(source.connector).lists_everything:
        result.gone = sorted(missing)
    return result


def _append(names: list[str], name: str) -> None:
    if len(names) < SHOWN_NAMES:
        names.append(name)


#: Set anew by a listing that differs; what could not be fetched before is tried again.
_LISTED_FIELDS = [
    *("name", "version", "size", "url", "readers", "modified_at"),
    *("failures", "error"),
]


def _row(source: DataSource, item: Item) -> DataSourceItem:
    """The item as it is stored, in columns of bounded length: only these can be compared."""
    return DataSourceItem(
        workspace_id=source.workspace_id,
        source=source,
        key=item.key,
        name=item.name[:1024],
        version=item.version[:200],
        size=item.size,
        url=item.url[:2000],
        readers=None if item.readers is None else sorted(item.readers),
        modified_at=item.modified_at,
    )


def doubt(source: DataSource, comparison: Comparison) -> str:
    """The reason to ask before applying the listing; empty if there is none."""
    gone, known = len(comparison.gone), comparison.known
    found = deletion_doubt(
        gone=gone,
        known=known,
        listed=comparison.listed,
        percent=source.max_deletions,
        allow_deletions=not source.delete_missing,
    )
    if found == "empty":
        return gettext(
            "The source lists no files, but {known} documents came from it. Nothing was changed."
            " Check the path, and that the volume is mounted. If the source is meant to be empty,"
            " confirm the deletions."
        ).format(known=format_number(known))
    if found == "many":
        return gettext(
            "The run would delete {gone} of {known} documents, more than {limit} %. Nothing was"
            " changed. If this is intended, confirm the deletions."
        ).format(gone=format_number(gone), known=format_number(known), limit=source.max_deletions)
    return ""


class Synchronisation:
    """The work of one claimed run. `claimed` is the source's row as long as the claim holds."""

    def __init__(
        self,
        run: DataSourceRun,
        *,
        connector: Connector,
        claimed: QuerySet[DataSource],
        on_progress: Callable[[DataSourceRun], Any] = lambda run: None,
    ) -> None:
        self.run, self.source = run, run.source
        self._connector, self._claimed, self._on_progress = connector, claimed, on_progress
        self._asked_at = 0.0
        self._access_of = AccessOf(self.source)

    def work(self, *, seconds: float | None = None) -> bool:
        """Go on for about so long; returns whether the run is through. A listing is done whole,
        unless the connector has it in parts.

        Raises SourceError, Doubtful, Cancelled, ClaimLost.
        """
        end = time.monotonic() + seconds if seconds is not None else None
        if self.run.state == DataSourceRun.State.LISTING:
            while not self._list():
                if end is not None:
                    return False
        if self.run.state == DataSourceRun.State.FETCHING:
            # First: the text of a document that all may see is not changed to one meant for few.
            self._apply_access()
            if not self._fetch(end):
                return False
            self._set(state=DataSourceRun.State.DELETING)
        self._delete()
        return True

    # --- listing ---------------------------------------------------------------------------------

    def _list(self) -> bool:
        """Whether the listing is through."""

        def report(comparison: Comparison) -> None:
            self._check()
            self._set(listed=comparison.listed, new=comparison.new, changed=comparison.changed)

        items = self._connector.list_items()
        try:
            comparison = compare(self.source, items, store=True, on_batch=report)
        except Unfinished as error:
            self._check()
            self._set(listed=error.count)
            return False
        if not self.run.may_delete_any and (reason := doubt(self.source, comparison)):
            raise Doubtful(reason)
        self._set(
            state=DataSourceRun.State.FETCHING,
            gone=comparison.gone,
            failed=len(comparison.refused),
            error=self._connector.note,
        )
        return True

    # --- fetching --------------------------------------------------------------------------------

    def _fetch(self, end: float | None) -> bool:
        """Fetch what differs, until `end`; returns whether nothing is left."""
        pending = (
            self.source.items.exclude(fetched_version=F("version"))
            .exclude(pk__in=self.run.gone)
            .filter(failures__lt=MAX_ITEM_FAILURES)
            .order_by("pk")
        )
        after = 0
        while rows := list(pending.filter(pk__gt=after)[:FETCHED_ITEMS]):
            with TemporaryDirectory(prefix="ragsite-source-") as folder:
                ready: list[tuple[DataSourceItem, dict[str, Any], Path]] = []
                size = 0
                for row in rows:
                    self._check()
                    after = row.pk
                    file = Path(folder, str(row.pk))
                    if (declared := self._fetch_item(row, file)) is not None:
                        ready.append((row, declared, file))
                        size += file.stat().st_size
                    if size > FETCHED_BYTES or (end is not None and time.monotonic() > end):
                        break
                self._ingest(ready)
            if end is not None and time.monotonic() > end:
                return not pending.filter(pk__gt=after).exists()
        return True

    def _fetch_item(self, row: DataSourceItem, file: Path) -> dict[str, Any] | None:
        item = Item(row.key, row.version, row.name, row.size, row.modified_at, row.url)
        try:
            return self._connector.fetch(item, file, max_bytes=settings.MAX_UPLOAD_BYTES)
        except ItemGone:
            return None  # the next listing will not name it
        except ItemError as error:
            with transaction.atomic():
                self._hold_claim()
                self.source.items.filter(pk=row.pk).update(
                    failures=F("failures") + 1, error=str(error)
                )
            self._set(failed=self.run.failed + 1)
            return None

    def _ingest(self, ready: Sequence[tuple[DataSourceItem, dict[str, Any], Path]]) -> None:
        """Commit documents and the versions that they came from together."""
        if not ready:
            return
        renamed, entries = 0, []
        keys = self.source.items.filter(pk__in=self.run.gone).values_list("key", flat=True)
        leaving = LeavingDocuments(self._documents(keys), match_access=True)
        with transaction.atomic():
            self._hold_claim()
            for row, declared, file in ready:
                entry = self._entry(row, declared, file)
                before = leaving.take(entry)
                if before is not None and rename_container(self.source.collection, before, entry):
                    key = before.key.removeprefix(self.source.key_prefix)
                    self.source.items.filter(key=key).delete()
                    renamed += 1
                else:
                    entries.append(entry)
                # As it was listed, whatever came: what has changed since is listed anew next time.
                row.fetched_version = row.version
                row.failures, row.error, row.applied_readers = 0, "", row.readers
            if entries:
                ingested = ingest_sources(
                    collection=self.source.collection,
                    sources=entries,
                    source=self.source.name,
                )
                self._set(ingestion_runs=[*self.run.ingestion_runs, ingested.pk])
            DataSourceItem.objects.bulk_update(
                [row for row, _, _ in ready],
                ["fetched_version", "failures", "error", "applied_readers"],
            )
            self._set(
                fetched=self.run.fetched + len(entries),
                renamed=self.run.renamed + renamed,
                bytes=self.run.bytes + sum(file.stat().st_size for _, _, file in ready),
            )

    def _entry(self, row: DataSourceItem, declared: dict[str, Any], file: Path) -> Source:
        declared = {"url": row.url, **declared} if row.url else declared
        access = self._access_of.item(row.name, row.readers)
        return Source(
            key=self.source.key_prefix + row.key,
            name=row.name,
            size=file.stat().st_size,
            read=file.read_bytes,
            declared=declared,
            path=file,
            access=None if access is None else tuple(access),
        )

    def _documents(self, keys: Iterable[str]) -> QuerySet[Document]:
        """The documents of items with these keys."""
        return Document.objects.filter(
            collection=self.source.collection,
            key__in=[self.source.key_prefix + key for key in keys],
            is_current=True,
        )

    # --- access ----------------------------------------------------------------------------------

    def _apply_access(self) -> None:
        """Give documents the lists that they should have now: all, where settings, groups or
        members are others, and those whose readers at the source are."""
        digest = hashlib.sha256(self._access_of.state.encode()).hexdigest()
        items = self.source.items.order_by("pk")
        if digest == self.source.applied_access:
            if not self.source.maps_readers:
                return
            same = Q(readers=F("applied_readers")) | Q(readers=None, applied_readers=None)
            items = items.exclude(same)
        for rows in _batches(items.iterator(), COMPARED_ITEMS):
            wanted = {
                self.source.key_prefix + row.key: self._access_of.item(row.name, row.readers)
                for row in rows
            }
            for document in self._documents(row.key for row in rows):
                self._check()
                if document.access != wanted[document.key]:
                    update_document(document=document, access=wanted[document.key])
            for row in rows:
                row.applied_readers = row.readers
            DataSourceItem.objects.bulk_update(rows, ["applied_readers"])
        self._claimed.update(applied_access=digest)

    # --- deleting --------------------------------------------------------------------------------

    def _delete(self) -> None:
        """Delete what the listing did not name and the source, asked again, does not have."""
        if not self.source.delete_missing:
            return
        gone = self.source.items.filter(pk__in=self.run.gone).order_by("pk")
        for rows in _batches(list(gone), DELETED_ITEMS):
            sure = []
            for row in rows:
                self._check()
                if self._connector.is_gone(row.key):
                    sure.append(row)
            with transaction.atomic():
                self._hold_claim()
                delete_documents(documents=list(self._documents(row.key for row in sure)))
                self.source.items.filter(pk__in=[row.pk for row in sure]).delete()
                self._set(deleted=self.run.deleted + len(sure))

    # --- claim and progress ----------------------------------------------------------------------

    def _check(self) -> None:
        """Once a second: raise where the run was cancelled or the claim is lost."""
        if time.monotonic() - self._asked_at < 1.0:
            return
        self._asked_at = time.monotonic()
        if not self._claimed.exists():
            raise ClaimLost
        if DataSourceRun.objects.filter(pk=self.run.pk, cancel_requested_at__isnull=False).exists():
            raise Cancelled

    def _hold_claim(self) -> None:
        """In a transaction: nobody else takes the source until it ends."""
        if not self._claimed.select_for_update().values_list("pk", flat=True).first():
            raise ClaimLost

    def _set(self, **values: Any) -> None:
        for name, value in values.items():
            setattr(self.run, name, value)
        self.run.save(update_fields=list(values))
        self._on_progress(self.run)


def _batches(items: Iterable[T], size: int) -> Iterator[list[T]]:
    remaining = iter(items)
    while batch := list(islice(remaining, size)):
        yield batch
