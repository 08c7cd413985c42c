"""Which chunks a question leads to over what passages mention: the strongest path to each. Pure."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

#: The arm counts for this times the lead of the best hit over the fifth best document.
WEIGHT = 1.0
COMPARED = 5
#: Where paths start: so many of the first arms' best hits.
SEEDS = 10
#: A hit half as good as the best one starts paths a sixteenth as strong.
SEED_POWER = 4
#: Paths go on from the best chunks that they reached, so often, and each time get so much weaker.
HOPS = 2
DAMPING = 0.5
BEAM = 10
#: What more documents mention connects nothing.
MOST_DOCUMENTS = 100


#: Signs of a mention, which add up: its node is a hub; its node is the name of its document.
HUB, OWN = 1, 2
SIGNS = HUB + OWN + 1


@dataclass(frozen=True, slots=True)
class Neighbourhood:
    """Mentions around the seeds and the question's names: `chunk` and `node` are places in
    `chunk_ids` and `node_ids`, by which they are sorted, `own` is where the node is the name of the
    chunk's document; all of shape (mentions,).

    Each chunk is of one of `documents`, numbers without gaps, of shape (chunks,). `frequencies` is
    in how many documents of the scope each node is mentioned, of shape (nodes,).
    """

    chunk_ids: Ints
    node_ids: Ints
    documents: Ints
    frequencies: Ints
    chunk: Ints
    node: Ints
    own: Bools

    @classmethod
    def of(
        cls, chunks: Ints, nodes: Ints, signs: Ints, readable: Ints, documents: Ints
    ) -> "Neighbourhood":
        """Of mentions by the ids of their ends, in any order and some of them several times, and of
        the ids of chunks that may be read with those of their documents."""
        chunk_ids, node_ids = _distinct(chunks), _distinct(nodes)
        chunk, node = np.searchsorted(chunk_ids, chunks), np.searchsorted(node_ids, nodes)
        of_chunks = np.full(len(chunk_ids), -1)
        numbers = np.searchsorted(_distinct(documents), documents)
        of_chunks[np.searchsorted(chunk_ids, readable)] = numbers
        kept = of_chunks >= 0
        is_readable = kept[chunk]
        chunk = (np.cumsum(kept) - 1)[chunk[is_readable]]
        # One number a mention, which sorts as its parts do.
        pair = chunk * len(node_ids) + node[is_readable]
        pair, sign = np.divmod(_distinct(pair * SIGNS + signs[is_readable]), SIGNS)
        chunk, node = np.divmod(pair, max(len(node_ids), 1))
        chunk_ids, of_chunks = chunk_ids[kept], of_chunks[kept]
        frequencies = _documents_by_node(node, of_chunks[chunk], len(node_ids))
        frequencies[node[sign & HUB > 0]] = np.iinfo(np.int32).max
        return cls(chunk_ids, node_ids, of_chunks, frequencies, chunk, node, sign >= OWN)


@dataclass(frozen=True, slots=True)
class Stop:
    """A chunk or a node on a path, by its id."""

    kind: Literal["chunk", "node"]
    id: int


@dataclass(frozen=True, slots=True)
class RankedGraph:
    """`scores` by chunk id, above 0 to 1: how strong the strongest path to it is. Seeds have what
    paths from them start with, if no path to them is stronger."""

    scores: Mapping[int, float]
    _paths: "_Paths | None" = None

    def path(self, chunk_id: int) -> tuple[Stop, ...]:
        """Nodes and chunks in turns, from a name in the question (or a seed that mentions none) to
        this chunk. Empty for a chunk that was not reached."""
        if chunk_id not in self.scores:
            return ()
        return (*(self._paths.to(chunk_id) if self._paths else ()), Stop("chunk", chunk_id))


def rank(
    neighbourhood: Neighbourhood,
    *,
    seeds: Mapping[int, float],
    question: Mapping[int, float],
    total: int,
    most: int = 100,
) -> RankedGraph:
    """The best `most` chunks that paths from the seeds and the question reach, and how strongly.

    `seeds` are fused scores of the first arms' hits by chunk id, `question` weights (1 for a name
    in full) of the nodes that the question names, `total` the number of documents in scope. A path
    goes from a chunk to what it mentions to another document's chunk that mentions it too; what the
    question names is where paths start like the best hit, and nothing they go over. It is
    the stronger the rarer that is, and strongest where it is that document's own name. Strengths
    multiply along a path; of the paths to a chunk the strongest one counts.
    """
    starts = _starts(seeds)
    if not len(neighbourhood.chunk):
        return RankedGraph(starts)
    rows = _Rows.of(neighbourhood, question, total)
    scores = values = rows.starting(starts)
    by_node = np.full(len(values), -1)
    came = np.full(len(values), -1)
    arrivals: list[tuple[Ints, Ints]] = []
    for hop in range(HOPS):
        reached, by_row, source = rows.hop(values, by_node, with_question=hop == 0)
        reached = reached * DAMPING**hop
        by_node = rows.node[by_row]
        arrivals.append((by_row, source))
        came = np.where(reached > scores, hop, came)
        scores = np.maximum(scores, reached)
        values = _best_only(reached, BEAM)
    found = np.flatnonzero(_best_only(scores, most))
    came[np.delete(np.arange(len(came)), found)] = -1
    known = dict(zip(rows.chunk_ids[found].tolist(), scores[found].tolist(), strict=True))
    return RankedGraph({**starts, **known}, _Paths(rows, came, arrivals))


@dataclass(frozen=True, slots=True)
class _Paths:
    """The strongest path to each chunk: by which hop it arrives, -1 where it starts there, and for
    each hop by which row each chunk was reached, and from the chunk in which place (-1: from the
    question); of shape (chunks,) all of them."""

    rows: "_Rows"
    came: Ints
    arrivals: Sequence[tuple[Ints, Ints]]

    def to(self, chunk_id: int) -> tuple[Stop, ...]:
        """The stops before this chunk."""
        rows = self.rows
        at = int(np.searchsorted(rows.chunk_ids, chunk_id))
        if at == len(rows.chunk_ids) or rows.chunk_ids[at] != chunk_id:
            return ()
        stops: list[Stop] = []
        for by_row, source in reversed(self.arrivals[: self.came[at] + 1]):
            stops.append(Stop("node", int(rows.node_ids[rows.node[by_row[at]]])))
            at = int(source[at])
            if at < 0:
                break
            stops.append(Stop("chunk", int(rows.chunk_ids[at])))
        entrances = np.flatnonzero((rows.chunk == at) & (rows.asked > 0))
        if len(entrances):  # what the question names in the seed; the rarest
            strengths = rows.strength[entrances] * rows.asked[entrances]
            best = entrances[np.argsort(strengths, kind="stable")[-1]]
            stops.append(Stop("node", int(rows.node_ids[rows.node[best]])))
        return tuple(reversed(stops))


def weight(hits: Iterable[tuple[int, float]]) -> float:
    """What the arm counts for beside the others: how far the best hit is ahead of the fifth best
    document.

    `hits` are documents' ids with the fused scores of their chunks, best first. Where many fit the
    question alike the answer is among them; where one stands out, what is missing is behind it.
    """
    best: dict[int, float] = {}
    for document, score in hits:
        best.setdefault(document, score)
        if len(best) == COMPARED:
            break
    scores = list(best.values())
    return WEIGHT * (scores[0] - scores[-1]) if scores else 0.0


def _starts(seeds: Mapping[int, float]) -> dict[int, float]:
    """What paths from the best of these seeds start with."""
    best = max(seeds.values(), default=0.0)
    if best <= 0:
        return {}
    kept = sorted(seeds, key=lambda chunk: (-seeds[chunk], chunk))[:SEEDS]
    starts = {chunk: max(seeds[chunk] / best, 0.0) ** SEED_POWER for chunk in kept}
    return {chunk: start for chunk, start in starts.items() if start > 0}


@dataclass(frozen=True, slots=True)
class _Rows:
    """The mentions, and how strong each is as the end of a step. `first` is the first row of each
    chunk."""

    chunk_ids: Ints
    node_ids: Ints
    chunk: Ints
    node: Ints
    document: Ints
    own: Bools
    strength: Floats
    asked: Floats
    first: Ints

    @classmethod
    def of(cls, neighbourhood: Neighbourhood, question: Mapping[int, float], total: int) -> "_Rows":
        chunk, node = neighbourhood.chunk, neighbourhood.node
        return cls(
            chunk_ids=neighbourhood.chunk_ids,
            node_ids=neighbourhood.node_ids,
            chunk=chunk,
            node=node,
            document=neighbourhood.documents[chunk],
            own=neighbourhood.own,
            strength=_strengths(neighbourhood, total),
            asked=_of_ids(question, neighbourhood.node_ids)[node],
            first=np.flatnonzero(_changes(chunk)),
        )

    def starting(self, starts: Mapping[int, float]) -> Floats:
        """What paths from each chunk start with; 0 where none do. A question may name several
        documents, and all of those start like the best hit."""
        values = _of_ids(starts, self.chunk_ids)
        named = np.maximum.reduceat(self.asked * self.strength * self.own, self.first)
        return np.where(values > 0, np.maximum(values, named), 0.0)

    def hop(
        self, values: Floats, by_node: Ints, *, with_question: bool
    ) -> tuple[Floats, Ints, Ints]:
        """From chunks worth `values`, reached `by_node`, over another node to other chunks: what
        the best step to each is worth, by which row it arrives, and from which chunk (−1 from the
        question)."""
        came, source = self._from_others(
            np.where(by_node[self.chunk] == self.node, 0.0, values[self.chunk])
        )
        came = np.where(self.asked > 0, 0.0, came)
        if with_question:
            source = np.where(self.asked > came, -1, source)
            came = np.maximum(came, self.asked)
        worth = came * self.strength
        most = np.maximum.reduceat(worth, self.first)
        best = np.flatnonzero(worth == most[self.chunk])
        best = best[np.searchsorted(best, self.first)]
        return most, best, source[best]

    def _from_others(self, leaving: Floats) -> tuple[Floats, Ints]:
        """For each row the best one of those of the same node in other documents, by what `leaving`
        over them is worth: that, and its chunk."""
        rows = np.flatnonzero(leaving)
        rows = rows[np.lexsort((-leaving[rows], self.node[rows]))]
        best = self._first_of_nodes(rows)
        others = rows[self.document[rows] != self.document[best[self.node[rows]]]]
        from_row = best[self.node]
        same = self.document[from_row] == self.document
        from_row = np.where(same, self._first_of_nodes(others)[self.node], from_row)
        is_any = from_row >= 0
        return np.where(is_any, leaving[from_row], 0.0), np.where(is_any, self.chunk[from_row], -1)

    def _first_of_nodes(self, rows: Ints) -> Ints:
        """The first row of each node among these, which are in the order of nodes; -1: none."""
        first = np.full(len(self.node_ids), -1)
        rows = rows[_changes(self.node[rows])]
        first[self.node[rows]] = rows
        return first


def _of_ids(values: Mapping[int, float], ids: Ints) -> Floats:
    """The value of each of the sorted ids; 0 without one."""
    found = np.zeros(len(ids))
    known = np.array([*values], np.int64)
    places = np.searchsorted(ids, known)
    for place, id_ in zip(places.tolist(), values, strict=True):
        if place < len(ids) and ids[place] == id_:
            found[place] = values[id_]
    return found


def _strengths(neighbourhood: Neighbourhood, total: int) -> Floats:
    """How much arriving by each mention counts, 0..1.

    Squared, so that what half the documents mention counts next to nothing; a document's own name
    leads to it however often others mention it, shared among its namesakes.
    """
    frequencies = np.maximum(neighbourhood.frequencies, 1)
    total = max(total, 2)
    rarity = np.maximum(1 - np.log(frequencies) / np.log(total), 0.0) ** 2
    rarity = np.where(frequencies > MOST_DOCUMENTS, 0.0, rarity)
    node, own = neighbourhood.node, neighbourhood.own
    owners = neighbourhood.documents[neighbourhood.chunk[own]]
    namesakes = _documents_by_node(node[own], owners, len(frequencies))
    shares = 1 / np.sqrt(np.maximum(namesakes, 1))
    return np.maximum(rarity[node], np.where(own, shares[node], 0.0))


def _documents_by_node(node: Ints, document: Ints, nodes: int) -> Ints:
    """In how many of these documents each node is, of shape (nodes,)."""
    documents = int(document.max(initial=0)) + 1
    return np.bincount(_distinct(node * documents + document) // documents, minlength=nodes)


def _distinct(values: Ints) -> Ints:
    """Each of these once, ascending: np.unique does the same in ten times as long."""
    ordered = np.sort(values)
    return ordered[_changes(ordered)]


def _changes(values: Ints) -> Bools:
    """Which of these differ from the one before them, as the first does."""
    are_new = np.ones(len(values), bool)
    np.not_equal(values[1:], values[:-1], out=are_new[1:])
    return are_new


def _best_only(values: Floats, most: int) -> Floats:
    """The same, with 0 for all but the `most` highest."""
    if len(values) <= most:
        return values
    kept = np.zeros_like(values)
    best = np.argsort(-values, kind="stable")[:most]
    kept[best] = values[best]
    return kept
