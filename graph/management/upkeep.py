"""What `manage.py graph` does about reading documents."""

import sys
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from common.errors import InvalidInput
from common.showing import Shown, table_of
from documents.management.naming import collection_named, workspace_named
from documents.models import Collection
from documents.progress import Bar
from graph.services.extraction import (
    ExtractionState,
    extract_waiting,
    extraction_state,
    reextract_collection,
)

Options = Mapping[str, Any]
PARTLY = 1


def extractions(options: Options) -> Shown:
    """How far the collections are read."""
    return _states(_collections(options), "")


def extract(options: Options) -> Shown:
    """What waits, here and now."""
    collections = [each for each in _collections(options) if each.graph != Collection.Graph.OFF]
    read = sum(_extract(collection, quiet=options["json"]) for collection in collections)
    shown = _states(collections, f"documents read: {read:,}")
    left = any(state["waiting"] or state["dead"] for state in shown.data)
    return Shown(shown.data, shown.lines, shown.table, code=PARTLY if left else 0)


def _extract(collection: Collection, *, quiet: bool) -> int:
    total = extraction_state(collection=collection).waiting
    with Bar(collection.slug, quiet=quiet or not sys.stderr.isatty()) as bar:
        return extract_waiting(
            collection=collection, on_progress=lambda read: bar.show(read, total)
        )


def reextract(options: Options) -> Shown:
    """All documents, or those that were read in another way."""
    collection = collection_named(workspace=options["workspace"], slug=options["collection"])
    if collection.graph == Collection.Graph.OFF:
        raise InvalidInput(
            f"“{collection.slug}” is not read for the graph. Change it to rules or llm on its page."
        )
    queued = reextract_collection(collection=collection, only_stale=options["stale"])
    shown = _states([collection], f"documents waiting to be read again: {queued:,}")
    return Shown({"queued": queued, "state": shown.data[0]}, shown.lines, shown.table)


def _collections(options: Options) -> list[Collection]:
    if options["collection"] is not None:
        return [collection_named(workspace=options["workspace"], slug=options["collection"])]
    workspace = workspace_named(options["workspace"])
    return list(Collection.objects.filter(workspace=workspace).order_by("slug"))


def _states(collections: list[Collection], told: str) -> Shown:
    states = {each: extraction_state(collection=each) for each in collections}
    data = [
        {"collection": each.slug, "graph": str(each.graph), **asdict(state)}
        for each, state in states.items()
    ]
    heads = ("collection", "graph", *ExtractionState.__slots__)
    cells = [tuple(row.values()) for row in data]
    return Shown(data, (told,) if told else (), table_of(heads, cells) if cells else None)
