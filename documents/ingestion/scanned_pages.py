"""OCR of a document's pages that have no text of their own, one after the other: each is kept as
soon as it is read, so that a worker that is killed or stopped loses one page at most. Begin with
`PageReading.read`."""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from time import monotonic
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db import connection, transaction

from documents.ingestion import jobs
from documents.ingestion.sources import Content, parser_limits
from documents.models import Document, IngestionItem, ScannedPage
from reading.parsers import ParseError
from reading.parsers.base import ReadPage
from reading.parsers.picture import needs_threads
from reading.sandbox import ParseRequest, run_in_sandbox
from reading.sandbox.protocol import page_from_fields

#: Below this confidence of its characters a document is hard to read: about every twentieth is
#: wrong then.
HARD_TO_READ = 0.9
#: The address space that onnxruntime, OpenCV and a page of twelve megapixels need; half of it is
#: memory.
MIN_MEMORY_BYTES = 1536 * 1024**2
#: By which the kind of a picture is known.
_HEAD_BYTES = 64
#: Stored engines that each setting accepts.
_ENGINES = {"auto": "", "rapidocr": "PP-OCR", "tesseract": "Tesseract"}


class ClaimLost(Exception):
    """The document belongs to nobody or somebody else now: its run was cancelled, it was replaced,
    or another worker took it over."""


class PagesLeft(Exception):
    """The time that was given is over, and pages are left to be read: those that were read are
    kept."""


@dataclass(frozen=True, slots=True)
class PageTexts:
    """Texts by page number, as parsers take them, and the document's `metadata` about them."""

    texts: dict[str, str]
    metadata: dict[str, Any]


class PageReading:
    """Reads pages of `document`, which must be claimed by `token`."""

    def __init__(self, document: Document, content: Content, *, name: str, token: UUID) -> None:
        self._document = document
        self._content = content
        self._name = name
        self._token = token
        declared = str(document.declared.get("language") or "")
        language = declared or document.collection.default_language
        self._languages = [language.lower()[:2]] if language else []
        with content.open() as file:
            is_threaded = needs_threads(file.read(_HEAD_BYTES))
        self._limits = parser_limits(
            memory_bytes=max(settings.PARSER_MEMORY_BYTES, MIN_MEMORY_BYTES),
            starts_programs=settings.OCR_ENGINE != "rapidocr"
            or settings.OCR_THREADS > 1
            or is_threaded,
        )

    def read(
        self,
        numbers: Sequence[int],
        *,
        on_page: Callable[[], object] = lambda: None,
        seconds: float = math.inf,
    ) -> PageTexts:
        """The texts of the pages; `on_page` is called after each.

        Raises ParseError if there are too many or none can be read, PagesLeft after `seconds` and a
        page, ClaimLost, and what `on_page` raises.
        """
        deadline = monotonic() + seconds
        if len(numbers) > settings.OCR_MAX_PAGES:
            raise ParseError(
                "too_large",
                f"{self._name} has {len(numbers):,} pages that need OCR;"
                f" {settings.OCR_MAX_PAGES:,} are allowed. Split it, or raise"
                " RAGSITE_OCR_MAX_PAGES.",
            )
        pages = self._stored_pages(numbers)
        problems: dict[int, ParseError] = {}
        self._show_progress(len(pages), len(numbers))
        for number in numbers:
            if number in pages:
                continue
            try:
                pages[number] = self._keep(number, self._read_page(number))
            except ParseError as error:
                problems[number] = error
                if len(problems) == len(numbers):
                    raise
            done = len(pages) + len(problems)
            self._show_progress(done, len(numbers))
            on_page()
            # After a page that is kept, so that some progress is made each time.
            if number in pages and done < len(numbers) and monotonic() > deadline:
                raise PagesLeft
        return _page_texts(list(pages.values()), sorted(problems))

    def _stored_pages(self, numbers: Sequence[int]) -> dict[int, ScannedPage]:
        """Pages that were read of the same bytes before, for this document or another one of the
        workspace, of which it gets copies."""
        known = ScannedPage.objects.filter(
            workspace_id=self._document.workspace_id,
            source_sha256=self._content.sha256,
            engine__startswith=_ENGINES[settings.OCR_ENGINE],
        )
        own = known.filter(document=self._document, page__in=numbers).defer("lines")
        pages = {page.page: page for page in own}
        others = {
            page.page: page
            for page in known.filter(page__in=set(numbers) - pages.keys()).order_by("id")
        }
        _copy(others.values(), self._document)
        return pages | others

    def _read_page(self, number: int) -> ReadPage:
        request = ParseRequest(
            name=self._name,
            data=self._content.data,
            path=self._content.path,
            task="read_page",
            options={
                "page": number,
                "engine": settings.OCR_ENGINE,
                "languages": self._languages,
                "threads": settings.OCR_THREADS,
            },
        )
        return run_in_sandbox(
            request, page_from_fields, limits=self._limits, while_waiting=self._check_claim
        )

    def _check_claim(self) -> None:
        if not Document.objects.filter(pk=self._document.pk, claimed_by=self._token).exists():
            raise ClaimLost

    @transaction.atomic
    def _keep(self, number: int, read: ReadPage) -> ScannedPage:
        # A page that is read is a sign of life: only pages that end the worker use up attempts.
        held = Document.objects.filter(pk=self._document.pk, claimed_by=self._token)
        if not held.update(attempts=0):
            raise ClaimLost
        page, _ = ScannedPage.objects.update_or_create(
            workspace_id=self._document.workspace_id,
            document=self._document,
            source_sha256=self._content.sha256,
            page=number,
            defaults={
                "engine": read.engine,
                "text": read.text,
                "lines": read.lines,
                "confidence": read.confidence,
                "rotation": read.rotation,
            },
        )
        return page

    def _show_progress(self, done: int, total: int) -> None:
        IngestionItem.objects.filter(
            document_id=self._document.pk, state__in=IngestionItem.ACTIVE
        ).update(pages_read=done, pages_to_read=total)
        for run_id in jobs.open_runs([self._document.pk]):
            jobs.touch_run(run_id)


def _page_texts(pages: Sequence[ScannedPage], unreadable: Sequence[int]) -> PageTexts:
    """`unreadable` are pages that could not be read at all, as of a damaged PDF."""
    sizes = {page.page: max(len(page.text), 1) for page in pages}
    confidence = sum(page.confidence * sizes[page.page] for page in pages) / sum(sizes.values())
    about: dict[str, Any] = {
        "engine": ", ".join(sorted({page.engine for page in pages})),
        "pages": len(pages),
        "confidence": round(confidence, 3),
        "hard_to_read": confidence < HARD_TO_READ or bool(unreadable),
    }
    hard = sorted(page.page for page in pages if page.text and page.confidence < HARD_TO_READ)
    if hard and len(pages) > 1:
        about["hard_pages"] = hard[:100]
    if unreadable:
        about["unread_pages"] = list(unreadable)[:100]
    texts = {str(page.page): page.text for page in pages} | dict.fromkeys(map(str, unreadable), "")
    return PageTexts(texts, {"ocr": about})


#: Pages of bytes that a document does not have any more, once its new text is there.
_DELETE_OLD = """
    DELETE FROM documents_scannedpage AS page USING documents_document AS document
    WHERE document.id = page.document_id AND page.document_id = ANY(%s)
      AND page.source_sha256 <> document.source_sha256
"""


def delete_old_pages(document_ids: Sequence[int]) -> None:
    """Delete what was read of former bytes of these documents."""
    with connection.cursor() as cursor:
        cursor.execute(_DELETE_OLD, [list(document_ids)])


def copy_pages(document_id: int, *, heir: Document) -> None:
    """Give another document with the same bytes what was read of them."""
    _copy(ScannedPage.objects.filter(document=document_id), heir)


def _copy(pages: Iterable[ScannedPage], document: Document) -> None:
    """Store the pages once more, for `document`."""
    copies = list(pages)
    for page in copies:
        page.pk, page.document = None, document
        page._state.adding = True
    ScannedPage.objects.bulk_create(copies, ignore_conflicts=True)
