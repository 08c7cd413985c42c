"""What is known of a web site between runs: pages with the marks by which a server tells that they
did not change, their links, and how far a crawl is. Begin with `WebCache`.

A file below the site's directory, which may be deleted at any time: then all is read once more, and
what is the same has the same version.
"""

import fcntl
import json
import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from common.translation import gettext
from sources.connectors.base import SourceError, Unfinished

#: A crawl that nobody went on with for so long begins anew.
STALE_SECONDS = 3600.0
#: Pages that no crawl has met for so long are forgotten.
FORGOTTEN_SECONDS = 90 * 86400.0
#: A page whose sitemap says that it is the same is asked all the same after so long.
TRUSTED_SECONDS = 7 * 86400.0
#: Bytes that a listing had to read anyway and keeps for `fetch`.
KEPT_BYTES = 64 * 1024 * 1024
LOCK_SECONDS = 30.0

_TABLES = """
CREATE TABLE IF NOT EXISTS page (url TEXT PRIMARY KEY, known TEXT NOT NULL, body BLOB);
CREATE TABLE IF NOT EXISTS queue (
    position INTEGER PRIMARY KEY AUTOINCREMENT, url TEXT NOT NULL UNIQUE, depth INTEGER NOT NULL,
    lastmod TEXT NOT NULL, is_done INTEGER NOT NULL DEFAULT 0
);
CREATE TABLE IF NOT EXISTS state (name TEXT PRIMARY KEY, value TEXT NOT NULL);
"""


@dataclass(slots=True)
class Known:
    """What the last visit of an address found.

    `version` is empty for what is no content; `error` says why a page could not be read. `alias` is
    the address that goes before its own, `moved` where it has gone for good, `was` the version that
    it had before. `lastmod` is the
    sitemap's, `checked_at` seconds of the epoch.
    """

    version: str = ""
    name: str = ""
    size: int | None = None
    etag: str = ""
    modified: str = ""
    lastmod: str = ""
    links: list[str] | None = None
    alias: str = ""
    moved: str = ""
    was: str = ""
    error: str = ""
    checked_at: float = 0.0

    def is_same(self, lastmod: str) -> bool:
        """Whether a sitemap may be believed that the page did not change since it was looked at:
        not for the day of a change, which may have had another one."""
        last_day = datetime.fromtimestamp(max(self.checked_at - 86400.0, 0.0), UTC).date()
        return (
            bool(self.version and lastmod)
            and lastmod == self.lastmod
            and lastmod[:10] < last_day.isoformat()
            and 0 <= time.time() - self.checked_at < TRUSTED_SECONDS
        )


class WebCache:
    """A crawl is of one process at a time, within `locked`. All raise SourceError where nothing can
    be written."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._kept_bytes = 0
        self._database: sqlite3.Connection | None = None

    def close(self) -> None:
        if self._database is not None:
            self._database.close()
            self._database = None

    @contextmanager
    def locked(self, count: int = 0) -> Iterator[None]:
        """Nobody else crawls meanwhile. Raises Unfinished where another process does."""
        self._folder.mkdir(parents=True, exist_ok=True)
        with (self._folder / "lock").open("wb") as lock:
            end = time.monotonic() + LOCK_SECONDS
            while True:
                try:
                    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    break
                except BlockingIOError:
                    if time.monotonic() > end:
                        raise Unfinished(count) from None
                    time.sleep(0.1)
            yield

    # --- a crawl ---------------------------------------------------------------------------------

    def resume(self) -> bool:
        """Whether there is a crawl to go on with."""
        touched = float(self.state("touched_at") or 0.0)
        return 0 <= time.time() - touched < STALE_SECONDS

    def begin(self) -> None:
        """Forget the crawl before, and the bytes that it kept."""
        self._execute("DELETE FROM queue")
        self._execute("DELETE FROM state")
        self._execute("UPDATE page SET body = NULL WHERE body IS NOT NULL")
        self._kept_bytes = 0

    def finish(self) -> None:
        """The crawl is through: the next one begins anew. Kept bytes stay for `fetch`."""
        self._execute("DELETE FROM queue")
        self._execute("DELETE FROM state WHERE name = 'touched_at'")
        self._execute(
            "DELETE FROM page WHERE json_extract(known, '$.checked_at') < ?",
            time.time() - FORGOTTEN_SECONDS,
        )

    def state(self, name: str) -> str:
        row = self._execute("SELECT value FROM state WHERE name = ?", name).fetchone()
        return str(row[0]) if row else ""

    def set_state(self, name: str, value: str) -> None:
        self._execute("INSERT OR REPLACE INTO state VALUES (?, ?)", name, value)

    def enqueue(self, url: str, *, depth: int, lastmod: str = "") -> None:
        """Visit it once in this crawl."""
        self._execute(
            "INSERT OR IGNORE INTO queue (url, depth, lastmod) VALUES (?, ?, ?)",
            *(url, depth, lastmod),
        )

    def queued(self) -> Iterator[str]:
        """Addresses of this crawl, visited or not."""
        for (url,) in self._execute("SELECT url FROM queue ORDER BY position").fetchall():
            yield url

    def steps(self) -> Iterator[tuple[str, int, str, bool]]:
        """(address, depth, lastmod, whether it was visited) in order, also what is enqueued
        meanwhile."""
        position = 0
        while row := self._execute(
            "SELECT position, url, depth, lastmod, is_done FROM queue WHERE position > ?"
            " ORDER BY position LIMIT 1",
            position,
        ).fetchone():
            position = row[0]
            yield row[1], row[2], row[3], bool(row[4])

    def done(self, url: str) -> None:
        self._execute("UPDATE queue SET is_done = 1 WHERE url = ?", url)
        self.set_state("touched_at", repr(time.time()))

    # --- pages -----------------------------------------------------------------------------------

    def known(self, url: str) -> Known | None:
        row = self._execute("SELECT known FROM page WHERE url = ?", url).fetchone()
        return Known(**json.loads(row[0])) if row else None

    def keep(self, url: str, known: Known, body: bytes | None = None) -> None:
        """Remember what a visit found, with its bytes where there is room for them."""
        if body is not None:
            self._kept_bytes += len(body)
            if self._kept_bytes > KEPT_BYTES:
                body = None
        known.checked_at = time.time()
        self._execute(
            "INSERT OR REPLACE INTO page VALUES (?, ?, ?)", url, json.dumps(asdict(known)), body
        )

    def take_body(self, url: str, version: str) -> bytes | None:
        """The bytes that the listing read, once, if they are of this version."""
        row = self._execute(
            "SELECT body FROM page WHERE url = ? AND body IS NOT NULL"
            " AND json_extract(known, '$.version') = ?",
            *(url, version),
        ).fetchone()
        if row is None:
            return None
        self._execute("UPDATE page SET body = NULL WHERE url = ?", url)
        return bytes(row[0])

    def _execute(self, statement: str, *values: Any) -> sqlite3.Cursor:
        try:
            if self._database is None:
                self._database = self._opened()
            return self._database.execute(statement, values)
        except (sqlite3.Error, OSError) as error:
            self.close()
            raise SourceError(
                gettext(
                    "The cache of the web site cannot be written to {folder}: {error}. Check the"
                    " free disk space. The folder can be deleted."
                ).format(folder=self._folder, error=error)
            ) from error

    def _opened(self) -> sqlite3.Connection:
        """The database; one that is broken, or of another release, is made anew."""
        self._folder.mkdir(parents=True, exist_ok=True)
        file = self._folder / "pages.sqlite3"
        for is_last in (False, True):
            database = sqlite3.connect(file, timeout=LOCK_SECONDS, isolation_level=None)
            try:
                database.execute("PRAGMA journal_mode = WAL")
                database.execute("PRAGMA synchronous = OFF")
                database.executescript(_TABLES)
                row = database.execute("SELECT known FROM page LIMIT 1").fetchone()
                if row:
                    Known(**json.loads(row[0]))
                kept = database.execute("SELECT total(length(body)) FROM page").fetchone()
                self._kept_bytes = int(kept[0])
                return database
            except (sqlite3.DatabaseError, TypeError, ValueError) as error:
                database.close()
                if is_last or isinstance(error, sqlite3.OperationalError):
                    raise
                for each in self._folder.glob("pages.sqlite3*"):
                    with suppress(FileNotFoundError):
                        each.unlink()
        raise AssertionError
