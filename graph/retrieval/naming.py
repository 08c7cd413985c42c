"""Names for the stops of paths, as people read them."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from documents.models import Chunk
from graph.addresses import passage_id
from graph.models import Node
from graph.ranking import Stop


@dataclass(frozen=True, slots=True)
class Named:
    """A stop with its public id and its name: a passage has its document's title."""

    kind: Literal["chunk", "node"]
    id: str
    name: str


def named_stops(paths: Iterable[Iterable[Stop]]) -> dict[Stop, Named]:
    """By stop; one that was removed meanwhile is absent."""
    stops = {stop for path in paths for stop in path}
    nodes = Node.objects.filter(pk__in=[stop.id for stop in stops if stop.kind == "node"])
    chunks = (
        Chunk.objects.filter(pk__in=[stop.id for stop in stops if stop.kind == "chunk"])
        .select_related("document", "collection")
        .only("ordinal", "document__key", "document__title", "document__source", "collection__slug")
    )
    names = {
        Stop("node", pk): Named("node", key, name or key)
        for pk, key, name in nodes.values_list("pk", "key", "name")
    }
    for chunk in chunks:
        document = chunk.document
        key = passage_id(collection=chunk.collection.slug, key=document.key, ordinal=chunk.ordinal)
        names[Stop("chunk", chunk.pk)] = Named("chunk", key, document.shown_title)
    return names
