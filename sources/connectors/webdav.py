"""A folder of a WebDAV server, such as Nextcloud or ownCloud (RFC 4918)."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar
from urllib.parse import quote, unquote, urlsplit

import httpx2
from lxml import etree
from pydantic import Field, SecretStr

from common.translation import gettext, gettext_noop
from documents.ingestion.sources import matches_glob
from sources.connectors.base import (
    Connector,
    ConnectorOptions,
    Glob,
    Item,
    ItemError,
    ItemGone,
    SourceError,
)
from sources.connectors.http import HttpClient, http_date

_PROPERTIES = b"""<?xml version="1.0"?><d:propfind xmlns:d="DAV:"><d:prop><d:resourcetype/>
<d:getetag/><d:getcontentlength/><d:getlastmodified/></d:prop></d:propfind>"""
_NAMESPACE = "{DAV:}"
#: A folder below a folder … in a circle of links.
MAX_DEPTH = 40


class WebDavOptions(ConnectorOptions):
    url: str = Field(
        title=gettext_noop("Address"),
        description=gettext_noop(
            "Of the folder, such as https://cloud.example.org/remote.php/dav/files/ann/Team."
        ),
    )
    username: str = Field(default="", title=gettext_noop("User name"))
    password: SecretStr = Field(
        default=SecretStr(""),
        title=gettext_noop("Password"),
        description=gettext_noop("Use a separate password for this site."),
    )
    glob: Glob = "**/*"


class WebDav(Connector):
    """Lists folder by folder, because many servers refuse to list all at once."""

    kind = "webdav"
    label = gettext_noop("WebDAV (Nextcloud, ownCloud)")
    Options: ClassVar[type[ConnectorOptions]] = WebDavOptions

    def __init__(self, options: WebDavOptions) -> None:
        self._root = options.url.rstrip("/") + "/"
        self._glob = options.glob
        login = (options.username, options.password.get_secret_value())
        self._http = HttpClient(auth=login if options.username else None)

    def list_items(self) -> Iterator[Item]:
        root_path = unquote(urlsplit(self._root).path)
        waiting = [""]
        while waiting:
            folder = waiting.pop()
            for response in self._propfind(folder, depth=1):
                path = unquote(urlsplit(_text(response, "href")).path)
                relative = path.removeprefix(root_path)
                if path == relative or relative.rstrip("/") == folder.rstrip("/"):
                    continue  # of another place, or the folder itself
                if any(part.startswith(".") for part in relative.split("/")):
                    continue
                if response.find(f".//{_NAMESPACE}collection") is not None:
                    if relative.count("/") < MAX_DEPTH:
                        waiting.append(relative.rstrip("/") + "/")
                elif matches_glob(relative, self._glob):
                    yield self._item(relative, response)

    def _item(self, relative: str, response: etree._Element) -> Item:
        size, modified = _text(response, "getcontentlength"), _text(response, "getlastmodified")
        return Item(
            key=relative,
            version=_text(response, "getetag") or f"{size}-{modified}",
            name=relative,
            size=int(size) if size.isdecimal() else None,
            modified_at=http_date(modified),
            url=self._address(relative),
        )

    def fetch(self, item: Item, file: Path, *, max_bytes: int) -> dict[str, Any]:
        answer = self._http.download(self._address(item.key), file, max_bytes=max_bytes)
        if answer.status_code in {404, 410}:
            raise ItemGone(f"{item.name} is there no more.")
        if not answer.is_success:
            raise ItemError(f"The server answers {answer.status_code} for it.")
        return {}

    def is_gone(self, key: str) -> bool:
        # The folder above must answer: a share that is away answers 404 for all that is below.
        try:
            self._propfind("", depth=0)
        except SourceError:
            return False
        answer = self._http.request("HEAD", self._address(key))
        return answer.status_code in {404, 410}

    def close(self) -> None:
        self._http.close()

    def _address(self, relative: str) -> str:
        return self._root + quote(relative)

    def _propfind(self, folder: str, *, depth: int) -> list[etree._Element]:
        answer = self._http.request(
            "PROPFIND",
            self._address(folder),
            content=_PROPERTIES,
            headers={"Depth": str(depth), "Content-Type": "application/xml"},
        )
        self._require_listing(answer, folder)
        try:
            tree = etree.fromstring(answer.content, _parser())
        except etree.XMLSyntaxError as error:
            raise SourceError(
                gettext(
                    "{root} does not answer as a WebDAV server. Check that the address is that of"
                    " the WebDAV folder."
                ).format(root=self._root),
                is_permanent=True,
            ) from error
        return list(tree.findall(f"{_NAMESPACE}response"))

    def _require_listing(self, answer: httpx2.Response, folder: str) -> None:
        status = answer.status_code
        if status == httpx2.codes.MULTI_STATUS:
            return
        if status in {401, 403}:
            raise SourceError(
                gettext(
                    "The server does not let this user read “{folder}”. Check name and password."
                ).format(folder=folder or "/"),
                is_permanent=True,
            )
        if status == httpx2.codes.NOT_FOUND and not folder:
            raise SourceError(
                gettext("There is no folder at {root}. Check the address.").format(root=self._root)
            )
        # Also a folder that vanished while it was listed: the next run sees it right.
        raise SourceError(
            gettext("The server answers {status} for the folder “{folder}”.").format(
                status=status, folder=folder or "/"
            )
        )


def _parser() -> etree.XMLParser:
    """Of a server that is not trusted: no entities, nothing fetched."""
    return etree.XMLParser(resolve_entities=False, no_network=True, load_dtd=False)


def _text(response: etree._Element, name: str) -> str:
    found = response.find(f".//{_NAMESPACE}{name}")
    return (found.text or "").strip() if found is not None else ""
