"""Collections as files: one JSON object a line, with vectors if wanted, written and read in
streams."""

from documents.transfer.format import Header
from documents.transfer.reading import Broken, ExportReader, ImportedDocument
from documents.transfer.storing import Importing
from documents.transfer.writing import Exported, write_export

__all__ = [
    "Broken",
    "ExportReader",
    "Exported",
    "Header",
    "ImportedDocument",
    "Importing",
    "write_export",
]
