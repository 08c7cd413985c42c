"""Rendered pages in files of this host, by the hash of the file that they are of. Whoever reads
them has checked that the visitor may see the document."""

import os
import re
import shutil
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from tempfile import NamedTemporaryFile
from threading import Lock
from time import monotonic

from django.conf import settings

#: What is left when the cache was full.
_KEPT_SHARE = 0.8
#: Between two looks at how large it is: this share of its bound was written, or so much time went.
_TRIM_SHARE = 0.05
SWEEP_SECONDS = 3600.0
_HASH = re.compile(r"[0-9a-f]{64}")


class PageCache:
    """Files `PAGE_CACHE_DIR/HASH/NAME` of at most `PAGE_CACHE_BYTES`; those that were not read for
    longest go first."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._written = 0
        self._swept_at = -SWEEP_SECONDS

    def get(self, sha256: str, name: str) -> bytes | None:
        """The content of a file; None if it is not there."""
        path = _folder(sha256) / name
        try:
            content = path.read_bytes()
            os.utime(path)
        except OSError:
            return None
        return content

    def put(self, sha256: str, name: str, content: bytes) -> None:
        """Keep a file. A full or read-only disk is no error: then nothing is kept."""
        folder = _folder(sha256)
        with suppress(OSError):
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            with NamedTemporaryFile(dir=folder, delete=False) as file:
                try:
                    file.write(content)
                    file.flush()
                    Path(file.name).replace(folder / name)
                except BaseException:
                    Path(file.name).unlink(missing_ok=True)
                    raise
            self._written += len(content)
        if self._written > settings.PAGE_CACHE_BYTES * _TRIM_SHARE:
            self.trim()

    @property
    def is_sweep_due(self) -> bool:
        """Whether it is time to remove the pages of files that no document has any more, which
        another host may have deleted. True once an hour."""
        with self._lock:
            is_due = monotonic() - self._swept_at >= SWEEP_SECONDS
            if is_due:
                self._swept_at = monotonic()
            return is_due

    def hashes(self) -> Iterator[str]:
        """Hashes of the files with cached pages."""
        with suppress(OSError):
            for entry in os.scandir(settings.PAGE_CACHE_DIR):
                if _HASH.fullmatch(entry.name):
                    yield entry.name

    def forget(self, hashes: Iterable[str]) -> None:
        """Remove the pages of these files."""
        for sha256 in hashes:
            if _HASH.fullmatch(sha256):
                shutil.rmtree(_folder(sha256), ignore_errors=True)

    def trim(self) -> None:
        """Remove what was not read for longest, if there is more than the bound."""
        with self._lock:
            self._written = 0
            files: list[tuple[float, int, str]] = []
            for sha256 in self.hashes():
                with suppress(OSError), os.scandir(_folder(sha256)) as entries:
                    for entry in entries:
                        stat = entry.stat()
                        files.append((stat.st_mtime, stat.st_size, entry.path))
            total = sum(size for _, size, _ in files)
            if total <= settings.PAGE_CACHE_BYTES:
                return
            files.sort()
            for _, size, path in files:
                Path(path).unlink(missing_ok=True)
                with suppress(OSError):  # it holds others
                    Path(path).parent.rmdir()
                total -= size
                if total <= settings.PAGE_CACHE_BYTES * _KEPT_SHARE:
                    break


def _folder(sha256: str) -> Path:
    return Path(settings.PAGE_CACHE_DIR) / sha256


page_cache = PageCache()
