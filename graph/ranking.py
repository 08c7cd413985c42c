"""Ranks chunks by their strongest path from a question and its best hits over
shared mentions. Pure. Begin with `rank`.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

#: Factor of the arm's weight: the lead of the best hit over the fifth best document.
WEIGHT_FACTOR = 1.0
COMPARED_DOCUMENTS = 5
#: Number of best hits of the other arms at which paths start.
MAX_SEEDS = 10
#: A hit half as good as the best one starts paths a sixteenth as strong.
SEED_POWER = 4
#: Paths go on from the best chunks that they reached, so often, and each time get so much weaker.
HOPS = 2
DAMPING = 0.5
BEAM = 10
#: What closeness to the rest of the question adds to a path: at a cosine of 1 four times its
#: strength. A usual one is 0.1, that of an answer 0.3.
REST_FACTOR = 4.0
#: Nodes mentioned by more documents connect nothing.
MAX_DOCUMENTS = 100


#: A smaller share of the question's length is nothing.
MIN_REST = 1e-4

#: Signs of a mention, which add up: its node is a hub; its node is the name of its document.
HUB, OWN_NAME = 1, 2
SIGNS = HUB + OWN_NAME + 1


@dataclass(frozen=True, slots=True)
class Neighbourhood:
    """Mentions around seeds and question names. `chunk` and `node` are indices into the sorted
    `chunk_ids` and `node_ids`, `own`: the node is the name of the chunk's document; all of
    shape (mentions,).

    `documents` (chunks,) numbers documents without gaps. `frequencies` (nodes,) counts
    documents of the scope that mention a node.
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
        """From mentions by ids of their ends, in any order and possibly repeated, and
        from readable chunks with their documents.
        """
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
        return cls(chunk_ids, node_ids, of_chunks, frequencies, chunk, node, sign >= OWN_NAME)


class PathStop(NamedTuple):
    """A chunk or a node on a path, by its id."""

    kind: Literal["chunk", "node"]
    id: int


@dataclass(frozen=True, slots=True)
class RankedGraph:
    """`scores` by chunk id, above 0 to 1: strength of the strongest path to it, in units of
    `unit`; for seeds at least their own starting value.
    """

    scores: Mapping[int, float]
    _walk: "_Walk | None" = None
    unit: float = 1.0

    def path(self, chunk_id: int) -> tuple[PathStop, ...]:
        """Nodes and chunks in turns, from a name in the question (or a seed without
        one) to this chunk. Empty if not reached.
        """
        if chunk_id not in self.scores:
            return ()
        before = self._walk.stops_before(chunk_id) if self._walk else ()
        return (*before, PathStop("chunk", chunk_id))

    def passages_before(self, chunk_id: int) -> tuple[int, ...]:
        """The chunks on the path to this one, without it."""
        return self._walk.chunks_before(chunk_id) if self._walk else ()

    def follow_question(self, question: Floats, passages: Mapping[int, Floats]) -> "RankedGraph":
        """Scores that prefer passages close to what their path has left of the question.

        `question` and `passages` (by chunk id) are vectors of one model, of any length. Of the
        question's, what points where the passages on the path point is taken away: they have told
        that part. What leads to a passage gains as much as it does, so that none is lifted over the
        one that leads to it. Paths without passages before, or with one that has no vector, stay.
        """
        scores = dict(self.scores)
        for chunk_id, strength in self.scores.items():
            before = self.passages_before(chunk_id)
            if before and all(each in passages for each in (*before, chunk_id)):
                told = [passages[each] for each in before]
                close = rest_similarity(question, told, passages[chunk_id])
                followed = strength * (1 + REST_FACTOR * max(close, 0.0))
                for each in (chunk_id, *before):
                    if each in scores:
                        scores[each] = max(scores[each], followed)
        return replace(self, scores=scores)

    def normalized(self, best_hit: int) -> "RankedGraph":
        """Scores up to 1, after `follow_question` in every embedding space; the best hit of the
        other arms has 1, as it had before, so that paths from lesser ones are not lifted over it.
        """
        best = max(self.scores.values(), default=0.0)
        if best <= 1:
            return self
        scores = {chunk_id: score / best for chunk_id, score in self.scores.items()}
        if best_hit in scores:
            scores[best_hit] = 1.0
        return replace(self, scores=scores, unit=self.unit * best)


def rank(
    neighbourhood: Neighbourhood,
    *,
    seeds: Mapping[int, float],
    question: Mapping[int, float],
    total: int,
    most: int = 100,
) -> RankedGraph:
    """The best `most` chunks on paths from the seeds and the question, with their strength.

    `seeds` are fused scores by chunk id, `question` weights (1: full name) of nodes that the
    question names, `total` the number of documents in scope. A path goes from a chunk over a
    mentioned node to a chunk of another document. Names in the question start paths like the
    best hit and are not passed through. Rarer nodes are stronger, a document's own name
    strongest. Strengths multiply along a path; the strongest path to a chunk counts.
    """
    # The best seeds begin paths, with these values.
    best = max(seeds.values(), default=0.0)
    kept = sorted(seeds, key=lambda chunk: (-seeds[chunk], chunk))[:MAX_SEEDS]
    starts = {
        chunk: start
        for chunk in kept
        if best > 0 and (start := max(seeds[chunk] / best, 0.0) ** SEED_POWER) > 0
    }
    if not len(neighbourhood.chunk):
        return RankedGraph(starts)
    walk = _Walk(neighbourhood, question, total)
    return RankedGraph({**starts, **walk.run(starts, most)}, walk)


def rest_similarity(question: Floats, known: Sequence[Floats], passage: Floats) -> float:
    """Cosine of `passage` with the part of `question` that is orthogonal to each of `known`, one
    after the other; 0 if nothing is left.
    """
    length, of_passage = float(np.linalg.norm(question)), float(np.linalg.norm(passage))
    rest = question
    for each in known:
        if squared := float(each @ each):
            rest = rest - float(rest @ each) / squared * each
    left = float(np.linalg.norm(rest))
    # What rounding leaves of a question that was told in full has no direction.
    if left <= MIN_REST * length or not of_passage:
        return 0.0
    return float(rest @ passage / (left * of_passage))


def graph_weight(hits: Iterable[tuple[int, float]]) -> float:
    """Fusion weight of the graph arm: the lead of the best hit over the fifth best document.

    `hits` are (document id, fused score), best first. If many match alike, the answer is among
    them; if one stands out, the missing part is linked to it.
    """
    best: dict[int, float] = {}
    for document, score in hits:
        best.setdefault(document, score)
        if len(best) == COMPARED_DOCUMENTS:
            break
    scores = list(best.values())
    return WEIGHT_FACTOR * (scores[0] - scores[-1]) if scores else 0.0


class _Walk:
    """Steps over mentions. The attributes have one value a mention, but `_first`, the first
    mention of each chunk, and `_came`, the hop by which the strongest path to each chunk arrives
    (-1: it starts there).
    """

    def __init__(
        self, neighbourhood: Neighbourhood, question: Mapping[int, float], total: int
    ) -> None:
        self._chunk_ids, self._node_ids = neighbourhood.chunk_ids, neighbourhood.node_ids
        self._chunk, self._node = neighbourhood.chunk, neighbourhood.node
        self._document = neighbourhood.documents[self._chunk]
        self._own = neighbourhood.own
        self._strength = _strengths(neighbourhood, total)
        self._asked = _of_ids(question, self._node_ids)[self._node]
        self._first = np.flatnonzero(_changes(self._chunk))
        self._came = np.full(len(self._chunk_ids), -1)
        # Per hop the mention by which each chunk was reached, and the chunk it came from (-1: the
        # question).
        self._arrivals: list[tuple[Ints, Ints]] = []

    def run(self, starts: Mapping[int, float], most: int) -> dict[int, float]:
        """Scores of the best `most` chunks, by id. Documents that the question names start like
        the best hit.
        """
        values = _of_ids(starts, self._chunk_ids)
        named = np.maximum.reduceat(self._asked * self._strength * self._own, self._first)
        scores = values = np.where(values > 0, np.maximum(values, named), 0.0)
        by_node = np.full(len(values), -1)
        for hop in range(HOPS):
            reached, by_row, source = self._hop(values, by_node, with_question=hop == 0)
            reached = reached * DAMPING**hop
            by_node = self._node[by_row]
            self._arrivals.append((by_row, source))
            self._came = np.where(reached > scores, hop, self._came)
            scores = np.maximum(scores, reached)
            values = _best_only(reached, BEAM)
        found = np.flatnonzero(_best_only(scores, most))
        self._came[np.delete(np.arange(len(scores)), found)] = -1
        return dict(zip(self._chunk_ids[found].tolist(), scores[found].tolist(), strict=True))

    def chunks_before(self, chunk_id: int) -> tuple[int, ...]:
        """The chunks on the strongest path before this one."""
        chunks: list[int] = []
        at = self._place(chunk_id)
        for _, source in reversed(self._arrivals[: self._came[at] + 1] if at >= 0 else []):
            at = int(source[at])
            if at < 0:
                break
            chunks.append(int(self._chunk_ids[at]))
        return tuple(reversed(chunks))

    def stops_before(self, chunk_id: int) -> tuple[PathStop, ...]:
        """The stops of the strongest path before this chunk."""
        at = self._place(chunk_id)
        if at < 0:
            return ()
        stops: list[PathStop] = []
        for by_row, source in reversed(self._arrivals[: self._came[at] + 1]):
            stops.append(PathStop("node", int(self._node_ids[self._node[by_row[at]]])))
            at = int(source[at])
            if at < 0:
                break
            stops.append(PathStop("chunk", int(self._chunk_ids[at])))
        entrances = np.flatnonzero((self._chunk == at) & (self._asked > 0))
        if len(entrances):  # what the question names in the seed; the rarest
            strengths = self._strength[entrances] * self._asked[entrances]
            best = entrances[np.argsort(strengths, kind="stable")[-1]]
            stops.append(PathStop("node", int(self._node_ids[self._node[best]])))
        return tuple(reversed(stops))

    def _place(self, chunk_id: int) -> int:
        """Index of the chunk; -1 if it is not around."""
        at = int(np.searchsorted(self._chunk_ids, chunk_id))
        is_here = at < len(self._chunk_ids) and self._chunk_ids[at] == chunk_id
        return at if is_here else -1

    def _hop(
        self, values: Floats, by_node: Ints, *, with_question: bool
    ) -> tuple[Floats, Ints, Ints]:
        """One step from chunks with `values`, reached `by_node`, over another node: value of the
        best step to each chunk, its row, and the chunk it came from (−1: the question).
        """
        came, source = self._from_others(
            np.where(by_node[self._chunk] == self._node, 0.0, values[self._chunk])
        )
        came = np.where(self._asked > 0, 0.0, came)
        if with_question:
            source = np.where(self._asked > came, -1, source)
            came = np.maximum(came, self._asked)
        worth = came * self._strength
        most = np.maximum.reduceat(worth, self._first)
        best = np.flatnonzero(worth == most[self._chunk])
        best = best[np.searchsorted(best, self._first)]
        return most, best, source[best]

    def _from_others(self, leaving: Floats) -> tuple[Floats, Ints]:
        """For each row the best row of its node in another document, by the value
        `leaving`: that value, and its chunk.
        """
        rows = np.flatnonzero(leaving)
        rows = rows[np.lexsort((-leaving[rows], self._node[rows]))]
        best = self._first_of_nodes(rows)
        others = rows[self._document[rows] != self._document[best[self._node[rows]]]]
        from_row = best[self._node]
        same = self._document[from_row] == self._document
        from_row = np.where(same, self._first_of_nodes(others)[self._node], from_row)
        is_any = from_row >= 0
        return np.where(is_any, leaving[from_row], 0.0), np.where(is_any, self._chunk[from_row], -1)

    def _first_of_nodes(self, rows: Ints) -> Ints:
        """First row of each node among these rows, sorted by node; -1: none."""
        first = np.full(len(self._node_ids), -1)
        rows = rows[_changes(self._node[rows])]
        first[self._node[rows]] = rows
        return first


def _of_ids(values: Mapping[int, float], ids: Ints) -> Floats:
    """The value of each sorted id; 0 without one."""
    found = np.zeros(len(ids))
    known = np.array([*values], np.int64)
    places = np.searchsorted(ids, known)
    for place, id_ in zip(places.tolist(), values, strict=True):
        if place < len(ids) and ids[place] == id_:
            found[place] = values[id_]
    return found


def _strengths(neighbourhood: Neighbourhood, total: int) -> Floats:
    """How much arriving by each mention counts, 0..1.

    Squared, so that a node in half of the documents counts next to nothing; a document's own
    name counts regardless of frequency, shared among documents of that name.
    """
    frequencies = np.maximum(neighbourhood.frequencies, 1)
    total = max(total, 2)
    rarity = np.maximum(1 - np.log(frequencies) / np.log(total), 0.0) ** 2
    rarity = np.where(frequencies > MAX_DOCUMENTS, 0.0, rarity)
    node, own = neighbourhood.node, neighbourhood.own
    owners = neighbourhood.documents[neighbourhood.chunk[own]]
    namesakes = _documents_by_node(node[own], owners, len(frequencies))
    shares = 1 / np.sqrt(np.maximum(namesakes, 1))
    return np.maximum(rarity[node], np.where(own, shares[node], 0.0))


def _documents_by_node(node: Ints, document: Ints, nodes: int) -> Ints:
    """Number of these documents per node, of shape (nodes,)."""
    documents = int(document.max(initial=0)) + 1
    return np.bincount(_distinct(node * documents + document) // documents, minlength=nodes)


def _distinct(values: Ints) -> Ints:
    """Distinct values, ascending; ten times as fast as np.unique."""
    ordered = np.sort(values)
    return ordered[_changes(ordered)]


def _changes(values: Ints) -> Bools:
    """Whether each value differs from the previous one; True for the first."""
    are_new = np.ones(len(values), bool)
    np.not_equal(values[1:], values[:-1], out=are_new[1:])
    return are_new


def _best_only(values: Floats, most: int) -> Floats:
    """The values, with 0 for all but the `most` highest."""
    if len(values) <= most:
        return values
    kept = np.zeros_like(values)
    best = np.argsort(-values, kind="stable")[:most]
    kept[best] = values[best]
    return kept
