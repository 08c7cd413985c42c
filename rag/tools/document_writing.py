"""The tools of a chat model that write documents: store and remove them."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Required

from django.utils.translation import gettext
from pydantic import Field, with_config
from typing_extensions import TypedDict

from accounts.services import require_editor
from common.errors import InvalidInput, NotFound
from common.tools import nonempty
from documents.ingestion.items import Item
from documents.models import Collection
from rag.context import RagContext
from rag.tools.document_tools import MAX_ID_CHARACTERS, MAX_SLUG_CHARACTERS, quote_name
from reading.parsers.chunk_json import TEXT_FIELDS
from search.stores import Store

#: Longer texts would take too long; upload files instead.
MAX_CONTENT_CHARACTERS = 100_000
#: Documents per call. All arguments together are limited too.
MAX_DOCUMENTS = 100

TargetCollection = Annotated[
    str,
    Field(
        max_length=MAX_SLUG_CHARACTERS,
        description="Slug of the collection. Needed where there are several.",
    ),
]
_NewId = Annotated[
    str, nonempty("The id that it gets, such as notes/2026-05-01.", most=MAX_ID_CHARACTERS)
]
_Text = Annotated[str, Field(min_length=1, max_length=MAX_CONTENT_CHARACTERS)]
_Content = Annotated[_Text, Field(description="Its text.")]
_Metadata = Annotated[
    Mapping[str, Any] | None, Field(description="What else is known of it, by name.")
]
_Title = Annotated[str, Field(max_length=500, description="Its title.")]


@with_config(extra="forbid")
class _NewDocument(TypedDict, total=False):
    id: Required[_NewId]
    content: Required[_Content]
    metadata: _Metadata
    title: _Title


_NewDocuments = Annotated[
    Sequence[_NewDocument],
    Field(
        min_length=1,
        max_length=MAX_DOCUMENTS,
        description="Several at once, instead: each with id and content.",
    ),
]
_Texts = Annotated[
    Sequence[_Text],
    Field(
        min_length=1,
        max_length=MAX_DOCUMENTS,
        description="Or bare texts, which get the ids id_prefix:0, id_prefix:1, …",
    ),
]
_Chunks = Annotated[
    Sequence[Mapping[str, Any]],
    Field(
        min_length=1,
        max_length=MAX_DOCUMENTS,
        description="Or chunks, as in chunk JSON: each with chunk_text (or text, content),"
        " chunk_id, chapter_title, section_title and other metadata.",
    ),
]
_TextsJson = Annotated[
    str,
    Field(
        max_length=MAX_DOCUMENTS * MAX_CONTENT_CHARACTERS,
        description="Or texts or chunks as JSON: a list, or an object with the list chunks.",
    ),
]


def index_document(
    *,
    scope: RagContext,
    id: _NewId = "",
    content: _Content = "",
    metadata: _Metadata = None,
    title: _Title = "",
    documents: _NewDocuments = (),
    texts: _Texts = (),
    chunks: _Chunks = (),
    texts_json: _TextsJson = "",
    id_prefix: Annotated[str, nonempty("Of texts.", most=MAX_ID_CHARACTERS - 4)] = "",
    collection: TargetCollection = "",
) -> str:
    """Store a text as a document, in place of what has the same id, so that it is found from now
    on. Only when the user asked for it."""
    store = _writable_store(scope, collection)
    several = [bool(documents), bool(texts), bool(chunks), bool(texts_json)]
    forms = [bool(id or content), *several]
    if sum(forms) != 1 or bool(id) != bool(content) or (bool(texts) and not id_prefix):
        raise InvalidInput(
            gettext(
                "Give id and content, or documents with an id and content each, or texts and"
                " an id_prefix, or chunks, or texts_json."
            )
        )
    if documents:
        items = [
            Item(
                id=each["id"],
                text=each["content"],
                metadata=each.get("metadata") or {},
                title=each.get("title") or "",
            )
            for each in documents
        ]
    elif texts:
        items = [
            Item(id=f"{id_prefix}:{place}", text=text, metadata=metadata or {}, title=title)
            for place, text in enumerate(texts)
        ]
    elif chunks or texts_json:
        entries = chunks or _read_texts(texts_json)
        items = [
            _chunk_item(entry, place, id_prefix=id_prefix, title=title, metadata=metadata or {})
            for place, entry in enumerate(entries)
        ]
    else:
        items = [Item(id=id, text=content, metadata=metadata or {}, title=title)]
    stored = store.index_many(items)
    into = quote_name(store.collection.slug)
    if len(items) == 1:
        what = "Unchanged" if stored.unchanged else "Indexed"
        return f"{what}: {quote_name(items[0].id)} in collection {into}. It can be searched now."
    new = len(items) - stored.unchanged
    return (
        f"Indexed {new} of {len(items)} documents in collection {into}, the others are unchanged:"
        f" {quote_name(items[0].id)} to {quote_name(items[-1].id)}. They can be searched now."
    )


def _read_texts(texts_json: str) -> Sequence[Any]:
    """The texts or chunks of a JSON text: a list, or an object with the list `chunks`."""
    try:
        given = json.loads(texts_json)
    except (ValueError, RecursionError) as error:
        raise InvalidInput(
            gettext("texts_json is not valid JSON: {error}.").format(error=error),
            field="texts_json",
        ) from error
    entries = given.get("chunks", given.get("texts")) if isinstance(given, dict) else given
    if not isinstance(entries, list) or not 0 < len(entries) <= MAX_DOCUMENTS:
        raise InvalidInput(
            gettext(
                "texts_json is a list of 1 to {limit} texts or chunks, or an object with the list"
                " chunks."
            ).format(limit=MAX_DOCUMENTS),
            field="texts_json",
        )
    return entries


def _chunk_item(
    entry: Any, place: int, *, id_prefix: str, title: str, metadata: Mapping[str, Any]
) -> Item:
    """A text, or a record of chunk JSON, as an item: under its own id, else that of its place
    behind `id_prefix`, else the hash of its text. Raises InvalidInput."""
    fields = dict(entry) if isinstance(entry, Mapping) else {"text": entry}
    name = next((each for each in TEXT_FIELDS if fields.get(each)), TEXT_FIELDS[0])
    text, own = fields.pop(name, ""), fields.pop("metadata", None) or {}
    if not isinstance(text, str) or len(text) > MAX_CONTENT_CHARACTERS or not text.strip():
        raise InvalidInput(
            gettext(
                "Chunk {place} needs a text of 1 to {limit} characters, such as {name}."
            ).format(place=place, limit=MAX_CONTENT_CHARACTERS, name=name),
            field="chunks",
        )
    known = fields.pop("id", None) or fields.pop("chunk_id", None)
    digest = hashlib.sha256(text.encode(errors="replace")).hexdigest()
    given = f"{id_prefix}:{place}" if id_prefix else digest[:32]
    title = str(fields.pop("title", None) or title)
    return Item(
        id=given if known is None else str(known),
        text=text,
        metadata={**metadata, **fields, **own} if isinstance(own, Mapping) else own,
        title=title,
    )


def remove_document(
    *,
    scope: RagContext,
    id: Annotated[str, nonempty("Its id, as a search tells it.", most=MAX_ID_CHARACTERS)],
    collection: TargetCollection = "",
) -> str:
    """Remove a document by its id, so that it is found no more. Only when the user asked for it."""
    store = _writable_store(scope, collection)
    if not store.remove(id):
        raise NotFound(
            gettext("The collection {slug} has no document {id}.").format(
                id=quote_name(id), slug=quote_name(store.collection.slug)
            )
        )
    return f"Removed: {quote_name(id)} from collection {quote_name(store.collection.slug)}."


def _writable_store(scope: RagContext, slug: str) -> Store:
    """The store of the named collection, else of the only one. Raises NotFound, InvalidInput and
    Forbidden. Does not use `scope.search_scope`: a key may be allowed to write but not to read."""
    scope.require("write")
    require_editor(user=scope.user, workspace=scope.workspace)
    there = Collection.objects.visible_to(scope.user).filter(workspace=scope.workspace)
    if scope.collections:
        there = there.filter(slug__in=scope.collections)
    collections = list(there.select_related("space", "workspace").order_by("slug"))
    slugs = ", ".join(collection.slug for collection in collections[:20])
    if not collections:
        raise NotFound(gettext("There is no collection yet. Ask the user to create one."))
    if slug:
        collections = [collection for collection in collections if collection.slug == slug]
        if not collections:
            raise NotFound(
                gettext("There is no collection {slug}. Choose one of: {slugs}.").format(
                    slug=quote_name(slug), slugs=slugs
                )
            )
    if len(collections) > 1:
        raise InvalidInput(
            gettext("There are several collections. Name one of them: {slugs}.").format(slugs=slugs)
        )
    return Store(collections[0], user=scope.user)
