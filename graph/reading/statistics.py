"""How large a graph is, what it is made of, what is best connected, and what the documents of each
collection name most."""

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil

from common.replicas import reads_from_replica
from documents.models import Chunk, Collection
from graph.extraction.normalized_names import normalize_name
from graph.models import Mention
from graph.reading.results import Connected, GraphStatistics
from graph.reading.vertices import Ref, fetch_dicts, load_sql, load_vertices
from graph.scopes import AccessFilter, GraphScope

#: Larger tables are sampled.
MAX_NODES = 100_000
MAX_EDGES = 50_000
#: Number of most frequent labels and relations, and of best connected nodes.
MAX_NAMES, MAX_BEST_CONNECTED = 50, 10
#: Labels of extracted nodes that are references and numbers of a text, not what it is about.
REFERENCE_LABELS = ["code", "date", "email", "ref"]
#: Collections beyond these are not looked at.
MAX_COLLECTIONS = 6
#: Nodes of all collections together, and the fewest of one.
MAX_NAMED, MIN_NAMED = 24, 4
#: Mentions looked at, of all collections together.
MAX_SAMPLED_MENTIONS = 20_000
#: Candidates per node shown.
CANDIDATES = 3


@reads_from_replica
def graph_statistics(*, scope: GraphScope) -> GraphStatistics:
    """Statistics of the visible graph; estimates for a large one."""
    seen = AccessFilter(scope)
    (totals,) = fetch_dicts(
        load_sql("statistics_totals").format(document=seen.listed("document")), seen.parameters
    )
    every_node = max(1, ceil(totals["nodes"] / MAX_NODES))
    every_edge = max(1, ceil(totals["edges"] / MAX_EDGES))
    nodes = _counts(
        seen, load_sql("statistics_nodes").format(node=seen.node("node")), one_in=every_node
    )
    edges = _counts(
        seen,
        load_sql("statistics_edges").format(
            edge=seen.edge("edge"), source=seen.node("source"), target=seen.node("target")
        ),
        one_in=every_edge,
    )
    degrees = {Ref("node", int(pk)): number for pk, number in edges["node"].items()}
    vertices = load_vertices(seen, degrees)
    return GraphStatistics(
        nodes=nodes[""][""],
        edges=edges[""][""],
        documents=totals["documents"],
        mentions=totals["mentions"],
        origins=nodes["origin"],
        labels=nodes["label"],
        rels=edges["rel"],
        best_connected=tuple(
            Connected(vertices[ref], degree) for ref, degree in degrees.items() if ref in vertices
        ),
        sampled=every_node > 1 or every_edge > 1,
    )


def _counts(seen: AccessFilter, statement: str, *, one_in: int) -> dict[str, dict[str, int]]:
    counts: dict[str, dict[str, int]] = defaultdict(dict)
    given = {"one_in": one_in, "names": MAX_NAMES, "best": MAX_BEST_CONNECTED}
    for row in fetch_dicts(statement, seen.parameters | given):
        counts[row["what"]][row["name"]] = row["number"] * one_in
    return counts


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
        limit = max(MAX_NAMED // len(shown), MIN_NAMED)
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
    # Without `Ada` where `Ada Lovelace` stands in half of its documents or more.
    forms = [f" {normalize_name(each.vertex.name)} " for each in candidates]
    return [
        each
        for each, form in zip(candidates, forms, strict=True)
        if not any(
            form in longer != form and 2 * other.degree >= each.degree
            for other, longer in zip(candidates, forms, strict=True)
        )
    ][:limit]
