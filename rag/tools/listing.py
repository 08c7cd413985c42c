"""Tools that say what there is: collections, and tables of catalogued databases."""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from django.db.models import Count

from common.wording import found
from documents.models import Collection, Document
from rag.context import RagContext
from rag.tools.sight import readable
from rag.tools.wording import name

MAX_LISTED = 200
SHOWN_COLUMNS = 40


def list_collections(*, scope: RagContext) -> str:
    """Those that may be searched, with how many documents each has for this caller."""
    ids = scope.search_scope().collection_ids
    collections = list(Collection.objects.filter(pk__in=ids).order_by("slug")[:MAX_LISTED])
    numbers = Counter(
        dict(
            readable(scope, collection__in=collections)
            .values_list("collection_id")
            .annotate(Count("pk"))
            .values_list("collection_id", "pk__count")
        )
    )
    lines = (
        f"{place}. {_collection(collection, numbers[collection.pk])}"
        for place, collection in enumerate(collections, 1)
    )
    return "\n".join([found(len(ids), "collection(s)"), *lines, *_more(len(ids))])


def list_tables(
    *, scope: RagContext, database: str = "", collection: str = "", name_contains: str = ""
) -> str:
    """Tables and views whose databases were catalogued, in the order of their names."""
    wanted = {"kind": "table", **({"database": database} if database else {})}
    tables = readable(
        scope,
        collection=collection,
        metadata__contains=wanted,
        **({"key__icontains": name_contains} if name_contains else {}),
    )
    number = tables.count()
    shown = tables.order_by("key", "collection__slug")[:MAX_LISTED]
    lines = (f"{place}. {_table(document)}" for place, document in enumerate(shown, 1))
    return "\n".join([found(number, "table(s)"), *lines, *_more(number)])


def _collection(collection: Collection, documents: int) -> str:
    about = f": {name(collection.description)}" if collection.description else ""
    return f"{name(collection.slug)} ({name(collection.name)}), {documents:,} document(s){about}"


def _table(document: Document) -> str:
    metadata: Mapping[str, Any] = document.metadata
    kind = "view" if metadata.get("is_view") else "table"
    place = f"{kind} of database {name(str(metadata.get('database', '')))}"
    columns = _columns(metadata.get("columns"))
    told = f"{name(document.key)}, {place}, collection {name(document.collection.slug)}"
    return f"{told}: {columns}" if columns else told


def _columns(columns: object) -> str:
    """Metadata may be anybody's: what is no list of columns is passed over."""
    listed = columns if isinstance(columns, list) else []
    names = [
        str(column["name"]) for column in listed if isinstance(column, Mapping) and "name" in column
    ]
    shown = ", ".join(name(each) for each in names[:SHOWN_COLUMNS])
    return f"{shown}, …" if len(names) > SHOWN_COLUMNS else shown


def _more(number: int) -> Iterable[str]:
    return [f"… and {number - MAX_LISTED} more."] if number > MAX_LISTED else []
