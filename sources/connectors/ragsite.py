"""A collection of another ragsite, by its API. Begin with `RagSite`."""

import json
import re
from collections.abc import Iterator
from contextlib import suppress
from datetime import datetime
from pathlib import Path, PurePosixPath
from typing import Any, ClassVar
from urllib.parse import urlsplit

import httpx2
from pydantic import Field, SecretStr

from common.options import RARE
from common.translation import gettext, gettext_noop
from documents.ingestion.sources import storable_name
from sources.connectors.base import (
    Connector,
    ConnectorOptions,
    Item,
    ItemError,
    ItemGone,
    SourceError,
)
from sources.connectors.http import HttpClient
from sources.connectors.web_address import WebAddress

PAGE_SIZE = 200
#: Of documents that have come through several sources: sites that follow each other, or themselves,
#: would copy each other's copies for ever.
_COPY_OF_COPIES = re.compile(r"(source-\d+/){2}")
#: Their attachments are documents of their own there, and would come twice from the whole mail.
_MAILS = frozenset({"message/rfc822", "application/vnd.ms-outlook"})
#: Text that was corrected there or never had a file is fetched in its passages.
_TEXT_SUFFIXES = {"text/markdown": ".md", "text/html": ".md", "message/rfc822": ".md"}


class RagSiteOptions(ConnectorOptions):
    url: WebAddress = Field(
        title=gettext_noop("Address"),
        description=gettext_noop("Of the other ragsite, such as https://ragsite.example.org."),
    )
    api_key: SecretStr = Field(
        title=gettext_noop("API key"),
        description=gettext_noop("Created on the other site, with the right to read."),
    )
    collection: str = Field(
        title=gettext_noop("Collection there"), description=gettext_noop("Its short or full name.")
    )
    workspace: str = Field(
        default="",
        title=gettext_noop("Workspace there"),
        description=gettext_noop("Its short name. Empty: the workspace of the key."),
        json_schema_extra=RARE,
    )


class RagSite(Connector):
    """Lists the documents that the key may see, and fetches their files; where a file is not kept
    there, the text. Who may read them here the source says, not the other site."""

    kind = "ragsite"
    label = gettext_noop("Another ragsite")
    usual_schedule = "60"
    Options: ClassVar[type[ConnectorOptions]] = RagSiteOptions

    def __init__(self, options: RagSiteOptions) -> None:
        self._api = f"{options.url.rstrip('/')}/api/v1"
        self._wanted = options.collection
        self._http = HttpClient()
        self._headers = {"Authorization": f"Bearer {options.api_key.get_secret_value()}"}
        if options.workspace:
            self._headers["X-Workspace"] = options.workspace
        self._slug = ""

    def close(self) -> None:
        self._http.close()

    def list_items(self) -> Iterator[Item]:
        for document in self._rows("/documents/", collection=self._collection()):
            is_copy = _COPY_OF_COPIES.match(document["key"])
            if document["is_current"] and document["source_sha256"] and not is_copy:
                yield Item(
                    key=document["key"],
                    version=f"{document['source_sha256']} {document['version']}",
                    name=_name(document),
                    size=document["size"],
                    modified_at=datetime.fromisoformat(document["updated_at"]),
                    url=document["source_url"],
                )

    def fetch(self, item: Item, file: Path, *, max_bytes: int) -> dict[str, Any]:
        document = self._document(item.key)
        if document is None:
            raise ItemGone(f"{item.name} is there no more.")
        path = f"/documents/{document['id']}"
        declared = {"title": document["title"], "language": document["language"]}
        declared = {name: value for name, value in declared.items() if value}
        if document["media_type"] not in _MAILS:
            answer = self._http.download(
                f"{self._api}{path}/file/", file, max_bytes=max_bytes, headers=self._headers
            )
            if answer.is_success:
                return {**declared, "file_name": PurePosixPath(item.name).name}
            if answer.status_code != httpx2.codes.NOT_FOUND:
                self._require(answer)
        text = _joined(self._rows(f"{path}/chunks/"))
        if not text:
            raise ItemError("The other site has neither text nor file of it yet.")
        file.write_text(text)
        if file.stat().st_size > max_bytes:
            raise ItemError(
                f"It has more than {max_bytes:,} bytes. Raise RAGSITE_MAX_UPLOAD_BYTES."
            )
        suffix = _TEXT_SUFFIXES.get(document["media_type"], ".txt")
        return {**declared, "file_name": PurePosixPath(item.name).with_suffix(suffix).name}

    def is_gone(self, key: str) -> bool:
        # The collection answers, and does not have it: 404 of the collection itself is a fault.
        return self._document(key) is None

    def _document(self, key: str) -> dict[str, Any] | None:
        rows = self._rows("/documents/", collection=self._collection(), key=key)
        return next((row for row in rows if row["is_current"]), None)

    def _collection(self) -> str:
        """The short name of the collection. Raises SourceError that names those there are."""
        if not self._slug:
            found = {row["slug"]: row["name"] for row in self._rows("/collections/")}
            names = [slug for slug, name in found.items() if self._wanted in {slug, name}]
            if not names:
                there = ", ".join(list(found)[:20]) or "none that this key may see"
                raise SourceError(
                    gettext("The other site has no collection “{wanted}”. It has: {there}.").format(
                        wanted=self._wanted, there=there
                    ),
                    is_permanent=True,
                )
            self._slug = self._wanted if self._wanted in names else names[0]
        return self._slug

    def _rows(self, path: str, **parameters: str) -> Iterator[dict[str, Any]]:
        """All rows of a list, page by page."""
        url: str | None = f"{self._api}{path}"
        query: dict[str, Any] = {**parameters, "page_size": PAGE_SIZE}
        while url:
            answer = self._http.request("GET", url, headers=self._headers, params=query)
            self._require(answer)
            try:
                page = json.loads(answer.content)
                yield from page["results"]
                following = page["next"]
            except (ValueError, KeyError, TypeError) as error:
                raise SourceError(
                    gettext("{api} does not answer as a ragsite. Check the address.").format(
                        api=self._api
                    ),
                    is_permanent=True,
                ) from error
            # The query of the next page, at the address that is known to work: behind a proxy the
            # site may name itself otherwise.
            query = dict(httpx2.URL(following).params) if following else {}
            url = url if following else None

    def _require(self, answer: httpx2.Response) -> None:
        status = answer.status_code
        if answer.is_success:
            return
        if status in {401, 403}:
            raise SourceError(
                gettext(
                    "The other site refuses the API key, or the key lacks the right to read."
                    " Create a key with the right to read there."
                ),
                is_permanent=True,
            )
        with suppress(ValueError, KeyError, TypeError, IndexError):
            said = json.loads(answer.content)["errors"][0]["detail"]
            raise SourceError(
                gettext("The other site answers {status}: {said}").format(status=status, said=said)
            )
        raise SourceError(
            gettext(
                "{hostname} answers {status}. Check that it is a ragsite and is running."
            ).format(hostname=urlsplit(self._api).hostname, status=status)
        )


def _name(document: dict[str, Any]) -> str:
    """Its path, as people read it there: a suffix tells the format."""
    name = document["source"] or document["title"] or document["key"]
    return storable_name(str(name).partition("://")[2] or str(name))


def _joined(chunks: Iterator[dict[str, Any]]) -> str:
    """The text of a document from its passages, which may overlap."""
    text, end = "", 0
    for chunk in sorted(chunks, key=lambda each: (each["start"], -each["end"])):
        if chunk["end"] <= end:
            continue
        if chunk["start"] > end:
            text += "\n\n" if text else ""
            text += chunk["text"]
        else:
            text += chunk["text"][end - chunk["start"] :]
        end = chunk["end"]
    return text
