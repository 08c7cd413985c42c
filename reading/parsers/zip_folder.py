"""ZIP archives as folders: `unpack_zip` gives the files in one, `parse_zip` the list of them."""

import re
import stat
import unicodedata
import zipfile
from contextlib import suppress
from pathlib import PurePosixPath

from reading.parsers.base import (
    DEFAULT_LIMITS,
    WINDOW_BYTES,
    ContainerPart,
    Limits,
    ParsedDocument,
    ParseError,
    UnpackedContainer,
)
from reading.parsers.mail import free_name
from reading.parsers.normalise import normalise_text, readable_title
from reading.parsers.zip_archive import ZIP, ZIP_ERRORS, ZipArchive, open_zip

#: Names in the text of an archive.
MAX_LISTED = 500
_MAX_PATH_CHARACTERS = 500
_IS_UTF8, _IS_ENCRYPTED = 0x800, 0x1
_DRIVE = re.compile(r"[A-Za-z]:")
#: What systems add to archives.
_SYSTEM_NAMES = frozenset({"__macosx", "thumbs.db", "desktop.ini"})


def parse_zip(data: bytes, *, name: str, limits: Limits = DEFAULT_LIMITS) -> ParsedDocument:
    """The names of its files: they are documents themselves, if the archive is named so."""
    if PurePosixPath(name).suffix.lower() != ".zip":
        raise ParseError(
            "wrong_type", "The file is a ZIP archive. Rename it to .zip to have its files read."
        )
    with open_zip(data, limits) as archive:
        paths = [path for path, _ in _files(archive)]
    listed = [f"- {path}" for path in paths[:MAX_LISTED]]
    if len(paths) > MAX_LISTED:
        listed.append(f"- … and {len(paths) - MAX_LISTED:,} more")
    title = readable_title(name)
    return ParsedDocument(
        text="\n".join([f"Files in {title}:", "", *listed]) + "\n",
        media_type=ZIP,
        title=title,
        metadata={"files": len(paths)},
    )


def unpack_zip(
    data: bytes, *, name: str, limits: Limits = DEFAULT_LIMITS, first: int = 0
) -> UnpackedContainer:
    """The files in an archive, by path; from number `first` on a window of them with their bytes.
    None are in an Office file, whatever its name.

    Raises ParseError for archives that are broken, or above the limits; a file that cannot be read,
    or whose name leads out of the archive, is a part with a problem.
    """
    from reading.parsers.registry import detect_media_type  # noqa: PLC0415 (imports this)

    if detect_media_type(data, name=name) != ZIP:
        return UnpackedContainer(())
    with open_zip(data, limits) as archive:
        parts: list[ContainerPart] = []
        window = WINDOW_BYTES
        for number, (path, info) in enumerate(_files(archive)):
            size, content = info.file_size, None
            problem = _problem(info, limits)
            if not problem and (number == first or (number > first and size <= window)):
                try:
                    content = archive.open_member(info, path).read()
                except (*ZIP_ERRORS, ParseError, RuntimeError, OSError) as error:
                    problem = str(error)[:300] or "It is damaged. Pack it again."
                window -= size
            elif number > first:
                window = 0
            parts.append(ContainerPart(path, size, content, problem))
    if not parts:
        raise ParseError("empty", "The archive contains no files. Pack it again.")
    return UnpackedContainer(tuple(parts))


def _files(archive: ZipArchive) -> list[tuple[str, zipfile.ZipInfo]]:
    """Its files by path, without directories and what is hidden; no path comes twice."""
    taken: set[str] = set()
    found = []
    for info in archive.infos:
        parts = [part for part in _decoded_name(info).split("/") if part not in {"", "."}]
        is_hidden = any(
            part.lower() in _SYSTEM_NAMES or (part.startswith(".") and part != "..")
            for part in parts
        )
        if parts and not info.is_dir() and not is_hidden:
            # What ends with the sign between container and part would be taken for one.
            path = "/".join(parts)[-_MAX_PATH_CHARACTERS:].replace("!/", "_/")
            found.append((free_name(path, taken), info))
    return sorted(found, key=lambda pair: pair[0])


def _decoded_name(info: zipfile.ZipInfo) -> str:
    """With forward slashes. Old packers give names in their system's encoding and do not say so;
    Python takes them for code page 437, which loses nothing."""
    name = info.orig_filename
    if not info.flag_bits & _IS_UTF8:
        with suppress(UnicodeEncodeError, UnicodeDecodeError):
            name = name.encode("cp437").decode()
    return normalise_text(unicodedata.normalize("NFC", name).replace("\\", "/"))


def _problem(info: zipfile.ZipInfo, limits: Limits) -> str:
    """Why the member is not read; empty if it is."""
    name = info.orig_filename.replace("\\", "/")
    mode = info.external_attr >> 16
    if name.startswith("/") or _DRIVE.match(name) or ".." in name.split("/"):
        return "Its name points outside the archive. Pack it again with names inside one folder."
    if stat.S_IFMT(mode) not in {0, stat.S_IFREG}:
        return "It is a link or a device. Pack the file itself."
    if info.flag_bits & _IS_ENCRYPTED:
        return "It is protected by a password. Pack it without one."
    if info.file_size > limits.max_bytes:
        return f"It has {info.file_size:,} bytes; {limits.max_bytes:,} are allowed. Split it."
    return ""
