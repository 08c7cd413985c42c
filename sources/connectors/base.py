"""What a connector is: it lists what a source has and fetches one item. Begin with `Connector`.

Comparing, retries, renames, deletions, access and progress are the same for all and are not its
business (`sources.synchronisation`). No models here; labels are marked for translation.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from types import TracebackType
from typing import Annotated, Any, ClassVar, Self
from urllib.parse import unquote, urlsplit

from pydantic import BaseModel, ConfigDict, Field

from common.options import OptionField, option_fields
from common.translation import format_number, gettext, gettext_noop


@dataclass(frozen=True, slots=True)
class Item:
    """What a source has: a file, message or page, without its bytes.

    `key` stays while it is the same thing. `version` changes whenever the bytes may have: an ETag,
    a hash, or size and time. `name` is its path as people read it, whose suffix tells its format;
    `url` is where people open it. `readers` are those that may read it at the source; None where
    the source does not say.
    """

    key: str
    version: str
    name: Annotated[str, "Its path."]
    size: Annotated[int | None, "Bytes, if the source tells."] = None
    modified_at: datetime | None = None
    url: str = ""
    readers: tuple[str, ...] | None = None


class SourceError(Exception):
    """The source as a whole cannot be used now; the message says why and names the cure.

    With `is_permanent` trying again is useless until somebody changed something: a password, a
    path. Else it is away: down, slow, refusing for a time.
    """

    def __init__(self, message: str, *, is_permanent: bool = False) -> None:
        super().__init__(message)
        self.is_permanent = is_permanent


class Unfinished(SourceError):
    """The listing takes long and goes on where it is when it is asked for again: others have their
    turn meanwhile. `count` items are listed so far."""

    def __init__(self, count: int) -> None:
        super().__init__(
            gettext(
                "This source is large: {count} items are listed so far. Save it, and the workers"
                " continue in the background."
            ).format(count=format_number(count))
        )
        self.count = count


class ItemError(Exception):
    """One item cannot be fetched; the others can."""


class ItemGone(ItemError):
    """The source no longer has the item."""


def check_size(size: int | None, max_bytes: int) -> None:
    """Raises ItemError for an item of more bytes than are allowed, where they are known."""
    if size is not None and size > max_bytes:
        raise ItemError(
            f"It has {size:,} bytes; {max_bytes:,} are allowed. Split it, or raise"
            " RAGSITE_MAX_UPLOAD_BYTES."
        )


def local_path(address: str) -> str:
    """The path on this server that `/srv/team` or `file:///srv/team` names; empty where `address`
    is one of another machine."""
    url = urlsplit(address)
    if url.scheme == "file" and url.netloc in {"", "localhost"}:
        return unquote(url.path)
    return "" if "://" in address else address


class ConnectorOptions(BaseModel):
    """Options of a connector. Fields of type `SecretStr` are kept encrypted and never shown; titles
    and descriptions label the form."""

    model_config = ConfigDict(extra="forbid", str_strip_whitespace=True)


#: An option of sources of files in folders; by default `**/*`, which is all.
Glob = Annotated[
    str,
    Field(
        title=gettext_noop("Files"),
        description=gettext_noop("* matches within one folder, **/ includes subfolders."),
    ),
]


class Connector(ABC):
    """A kind of source, opened with options. Used as a context manager, which closes it.

    Its methods raise SourceError where the source is away.
    """

    #: Its name in the database and on the command line, and on pages.
    kind: ClassVar[str]
    label: ClassVar[str]
    Options: ClassVar[type[ConnectorOptions]]
    #: Whether its items have `readers`.
    tells_readers: ClassVar[bool] = False
    #: Whether what a listing does not name may be gone. Not where it names only the newest.
    lists_everything: ClassVar[bool] = True
    #: What the form offers: minutes between runs.
    usual_schedule: ClassVar[str] = "15"
    #: What people should know of the last listing, such as that it stopped at a bound.
    note: str = ""

    @classmethod
    def option_fields(cls) -> list[OptionField]:
        """Its options, as doors show them."""
        return [*option_fields(cls.Options).values()]

    @abstractmethod
    def list_items(self) -> Iterator[Item]:
        """Everything that is there, page by page as it comes. A listing that cannot be finished
        raises SourceError: what it did not name would be taken for gone. One that takes long
        raises Unfinished now and then."""

    @abstractmethod
    def fetch(self, item: Item, file: Path, *, max_bytes: int) -> dict[str, Any]:
        """Write the item's bytes to `file`; returns title, language, media_type, file_name or
        metadata of the document, where the source knows them. Raises ItemError, or ItemGone."""

    @abstractmethod
    def is_gone(self, key: str) -> bool:
        """Whether the source definitely has it no more, asked anew. When in doubt, no."""

    def close(self) -> None:  # noqa: B027 (most have nothing to give back)
        """Close its connections to the source."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()
