"""Stored files against the documents that name them. Reads the whole media folder."""

from collections.abc import Iterable
from dataclasses import dataclass

from documents.ingestion.unnamed import remove_unnamed, stored_files, unnamed_files
from documents.models import Document
from documents.validation.base import EXAMPLES, Check, Finding, Scope


def _without_file(scope: Scope) -> list[int]:
    storage = Document._meta.get_field("file").storage
    documents = Document.objects.exclude(file="")
    if scope.collection_id is not None:
        documents = documents.filter(collection=scope.collection_id)
    stored = set(stored_files())
    rows = documents.order_by("id").values_list("id", "file").iterator(chunk_size=10_000)
    suspects = {pk: name for pk, name in rows if name not in stored}
    # Replaced or brought while the folder was read.
    return [
        pk
        for pk, name in suspects.items()
        if not storage.exists(name) and documents.filter(pk=pk, file=name).exists()
    ]


@dataclass(frozen=True, slots=True)
class _Files:
    checks: tuple[Check, ...] = (
        Check(
            "file_missing",
            "documents",
            "have a stored file that is not there; their text is",
            "Restore the media folder from its backup, or upload them again.",
        ),
        Check(
            "file_unknown",
            "stored files",
            "belong to no document",
            "The scheduler removes them within the hour, `validate --fix` at once.",
            lambda scope: remove_unnamed(),
        ),
    )

    def findings(self, scope: Scope) -> Iterable[Finding]:
        missing, unknown = self.checks
        if ids := _without_file(scope):
            yield Finding(missing, len(ids), tuple(ids[:EXAMPLES]))
        # A file does not say of which collection it is.
        if scope.collection_id is None and (names := unnamed_files()):
            yield Finding(unknown, len(names), tuple(names[:EXAMPLES]))


PROBES = (_Files(),)
