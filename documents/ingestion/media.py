"""Stored files."""

from collections.abc import Sequence

from documents.models import Document


def delete_files(names: Sequence[str]) -> None:
    """Remove uploaded files; ones that are gone already are no error."""
    storage = Document._meta.get_field("file").storage
    for name in names:
        storage.delete(name)
