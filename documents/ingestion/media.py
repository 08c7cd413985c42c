"""Stored files."""

import errno
from collections.abc import Sequence
from typing import BinaryIO

from django.core.files import File

from common.errors import RagsiteError
from documents.models import Document

_FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})


class StorageFull(RagsiteError):
    """What was sent cannot be kept."""

    code = "storage_full"
    status = 507


def store_file(document: Document, content: BinaryIO) -> str:
    """Keep the bytes as the document's file, under a name that says nothing of what was sent;
    which. Where that fails no file is left. Raises StorageFull, and OSError for another fault."""
    field = Document._meta.get_field("file")
    wanted = field.generate_filename(document, str(document.pk))
    # Nobody else takes it meanwhile: the row is held.
    name: str = field.storage.get_available_name(wanted, max_length=field.max_length)
    try:
        name = field.storage.save(name, File(content), max_length=field.max_length)
        document.file = name
        document.save()
    except BaseException as error:
        field.storage.delete(name)
        if isinstance(error, OSError) and error.errno in _FULL:
            raise StorageFull(
                "There is no room left for uploaded files, and nothing of this upload was kept."
                " Whoever runs the site must make room where MEDIA_ROOT lies; then send it again."
            ) from error
        raise
    return str(document.file.name)


def delete_files(names: Sequence[str]) -> None:
    """Remove uploaded files; ones that are gone already are no error."""
    storage = Document._meta.get_field("file").storage
    for name in names:
        storage.delete(name)
