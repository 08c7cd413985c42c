"""Collections as files: one JSON object a line, optionally with vectors, written and read as
streams."""

from documents.transfer.exporter import ExportResult, write_export
from documents.transfer.format import ExportHeader
from documents.transfer.importer import ExportReader, ImportedDocument, Importer, ImportProblem

__all__ = [
    "ExportHeader",
    "ExportReader",
    "ExportResult",
    "ImportProblem",
    "ImportedDocument",
    "Importer",
    "write_export",
]
