"""What the documents of each collection name most."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from common.replicas import reads_from_replica
from documents.models import Chunk, Collection
from graph.extraction.normalized_names import normalize_name
from graph.models import Mention
from graph.reading.results import Connected
from graph.reading.vertices import Ref, load_vertices
from graph.scopes import AccessFilter, GraphScope

#: Labels of extracted nodes that are references and numbers of a text, not what it is about.
REFERENCE_LABELS = ["code", "date", "email", "ref"]
#: Collections beyond these are not looked at.
MAX_COLLECTIONS = 6
#: Nodes of all collections together, and the fewest of one.
MAX_NODES, MIN_NODES = 24, 4
#: Mentions looked at, of all collections together.
MAX_SAMPLED_MENTIONS = 20_000
#: Candidates per node shown.
CANDIDATES = 3


@dataclass(frozen=True, slots=True)
class MostNamed:
    """The nodes that most documents of a collection name; `degree` counts these documents."""

    collection: Collection
    nodes: Sequence[Connected]


@reads_from_replica
def most_named(*, scope: GraphScope) -> list[MostNamed]:
    """Of each collection, by name, the nodes that most of its documents name. All have an equal
    share of the list, so that one of many documents leaves room for the others.

    Links, code identifiers, dates and addresses count only in a collection that names nothing else.
    """
    collections = Collection.objects.filter(workspace=scope.workspace_id)
    if scope.user is not None:
        collections = collections.visible_to(scope.user)
    if scope.collection_ids is not None:
        collections = collections.filter(pk__in=scope.collection_ids)
    read = collections.exclude(graph=Collection.Graph.OFF).order_by("name", "pk")
    found = []
    for collection in (shown := list(read[:MAX_COLLECTIONS])):
        limit = max(MAX_NODES // len(shown), MIN_NODES)
        sample = MAX_SAMPLED_MENTIONS // len(shown)
        if nodes := _most_named_in(collection, scope, limit=limit, sample=sample):
            found.append(MostNamed(collection, nodes))
    return found


def _most_named_in(
    collection: Collection, scope: GraphScope, *, limit: int, sample: int
) -> Sequence[Connected]:
    chunks = Chunk.objects.filter(collection=collection, is_current=True)
    readable = chunks.visible_to(scope.user) if scope.user is not None else chunks
    mentions = Mention.objects.filter(chunk__in=readable).values_list("node", "chunk__document")
    entities = mentions.exclude(node__labels__overlap=REFERENCE_LABELS)
    named = list(entities[:sample]) or list(mentions[:sample])
    documents = Counter(node for node, _ in set(named))
    passages = Counter(node for node, _ in named)
    often = sorted(documents, key=lambda node: (-documents[node], -passages[node], node))
    refs = [Ref("node", node) for node in often[: CANDIDATES * limit]]
    vertices = load_vertices(AccessFilter(scope), refs)
    candidates = [Connected(vertices[ref], documents[ref.pk]) for ref in refs if ref in vertices]
    return _without_parts(candidates)[:limit]


def _without_parts(candidates: Sequence[Connected]) -> list[Connected]:
    """Without `Ada` where `Ada Lovelace` stands in half of its documents or more."""
    forms = [f" {normalize_name(each.vertex.name)} " for each in candidates]
    return [
        each
        for each, form in zip(candidates, forms, strict=True)
        if not any(
            form in longer != form and 2 * other.degree >= each.degree
            for other, longer in zip(candidates, forms, strict=True)
        )
    ]
