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


@dataclass(frozen=True, slots=True)
class Neighbourhood:
    """Mentions around the seeds and the question's names, one entry each in all of these, of shape
    (mentions,).

    `own` where the node is the name of the chunk's document. `frequencies` is in how many documents
    of the scope the entry's node is mentioned.
    """

    chunks: Ints
    documents: Ints
    nodes: Ints
    own: Bools
    frequencies: Ints


@dataclass(frozen=True, slots=True)
class Stop:
    """A chunk or a node on a path, by its id."""

    kind: Literal["chunk", "node"]
    id: int


@dataclass(frozen=True, slots=True)
class Step:
    """How a chunk was reached: over `node`, from chunk `source`; from the question where that is
    None. It was the `hop`th step of its path."""

    node: int
    source: int | None
    hop: int


@dataclass(frozen=True, slots=True)
class RankedGraph:
    """`scores` by chunk id, above 0 to 1: how strong the strongest path to it is. Seeds have what
    paths from them start with, if no path to them is stronger.

    `steps` are the last steps of paths by hop and chunk, `last` that of the strongest path to each
    chunk; a seed without one is where paths start. `entrances` tells which of the question's names
    a seed mentions, the rarest.
    """

    scores: Mapping[int, float]
    steps: Mapping[tuple[int, int], Step]
    last: Mapping[int, Step]
    entrances: Mapping[int, int]

    def path(self, chunk_id: int) -> tuple[Stop, ...]:
        """Nodes and chunks in turns, from a name in the question (or a seed that mentions none) to
        this chunk. Empty for a chunk that was not reached."""
        if chunk_id not in self.scores:
            return ()
        stops = [Stop("chunk", chunk_id)]
        step = self.last.get(chunk_id)
        while step is not None:
            stops.append(Stop("node", step.node))
            if step.source is None:
                return tuple(reversed(stops))
            stops.append(Stop("chunk", step.source))
            step = self.steps.get((step.hop - 1, step.source))
        entrance = self.entrances.get(stops[-1].id)
        if entrance is not None:
            stops.append(Stop("node", entrance))
        return tuple(reversed(stops))


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
    if not len(neighbourhood.nodes):
        return RankedGraph(starts, {}, {}, {})
    rows = _Rows.of(neighbourhood, question, total)
    values = rows.starting(starts)
    entrances = rows.entrances(values)
    scores = values.copy()
    by_node = np.full(len(values), -1)
    came = np.full(len(values), -1)  # by which hop the strongest path to each chunk arrives
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
    known = dict(zip(rows.chunk_ids[found].tolist(), scores[found].tolist(), strict=True))
    steps, last = _traced(rows, arrivals, came, found)
    return RankedGraph(scores={**starts, **known}, steps=steps, last=last, entrances=entrances)


def _traced(
    rows: "_Rows", arrivals: Sequence[tuple[Ints, Ints]], came: Ints, found: Ints
) -> tuple[dict[tuple[int, int], Step], dict[int, Step]]:
    """The steps of the strongest paths to the chunks in these places, and the last of each."""
    steps: dict[tuple[int, int], Step] = {}
    last: dict[int, Step] = {}
    for end in found.tolist():
        at, hop = end, int(came[end])
        while hop >= 0 and at >= 0:
            by_row, source = arrivals[hop]
            chunk = int(rows.chunk_ids[at])
            steps[hop, chunk] = rows.step(by_row[at], source[at], hop)
            last.setdefault(int(rows.chunk_ids[end]), steps[hop, chunk])
            at, hop = int(source[at]), hop - 1
    return steps, last


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
    """The mentions with places in place of ids, and how strong each is as the end of a step."""

    chunk_ids: Ints
    node_ids: Ints
    chunk: Ints
    node: Ints
    document: Ints
    own: Bools
    strength: Floats
    asked: Floats

    @classmethod
    def of(cls, neighbourhood: Neighbourhood, question: Mapping[int, float], total: int) -> "_Rows":
        chunk_ids, chunk = np.unique(neighbourhood.chunks, return_inverse=True)
        node_ids, node = np.unique(neighbourhood.nodes, return_inverse=True)
        asked = np.array([question.get(int(each), 0.0) for each in node_ids])
        return cls(
            chunk_ids=chunk_ids,
            node_ids=node_ids,
            chunk=chunk,
            node=node,
            document=neighbourhood.documents,
            own=neighbourhood.own,
            strength=_strengths(neighbourhood, node, total),
            asked=asked[node],
        )

    def starting(self, starts: Mapping[int, float]) -> Floats:
        """What paths from each chunk start with; 0 where none do. A question may name several
        documents, and all of those start like the best hit."""
        values = np.array([starts.get(chunk, 0.0) for chunk in self.chunk_ids.tolist()])
        named = np.zeros_like(values)
        np.maximum.at(named, self.chunk, self.asked * self.strength * self.own)
        return np.where(values > 0, np.maximum(values, named), 0.0)

    def step(self, row: int, source: int, hop: int) -> Step:
        """The step that arrives by this row from the chunk in this place (−1: the question)."""
        came = None if source < 0 else int(self.chunk_ids[source])
        return Step(node=int(self.node_ids[self.node[row]]), source=came, hop=hop)

    def entrances(self, values: Floats) -> dict[int, int]:
        """For each seed the strongest of the question's names that it mentions."""
        rows = np.flatnonzero((values[self.chunk] > 0) & (self.asked > 0))
        rows = rows[np.argsort(self.strength[rows] * self.asked[rows], kind="stable")]
        return {
            int(self.chunk_ids[self.chunk[row]]): int(self.node_ids[self.node[row]]) for row in rows
        }

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
        order = np.lexsort((-worth, self.chunk))
        best = order[np.flatnonzero(np.diff(self.chunk[order], prepend=-1))]
        return worth[best], best, source[best]

    def _from_others(self, leaving: Floats) -> tuple[Floats, Ints]:
        """For each row the best one of those of the same node in other documents, by what `leaving`
        over them is worth: that, and its chunk."""
        order = np.lexsort((-leaving, self.node))
        first = order[np.flatnonzero(np.diff(self.node[order], prepend=-1))]
        others = order[self.document[order] != self.document[first][self.node[order]]]
        second = np.full(len(self.node_ids), -1)
        starts = np.flatnonzero(np.diff(self.node[others], prepend=-1))
        second[self.node[others[starts]]] = others[starts]
        from_row = first[self.node]
        same = self.document[from_row] == self.document
        from_row = np.where(same, second[self.node], from_row)
        is_any = from_row >= 0
        return np.where(is_any, leaving[from_row], 0.0), np.where(is_any, self.chunk[from_row], -1)


def _strengths(neighbourhood: Neighbourhood, node: Ints, total: int) -> Floats:
    """How much arriving by each mention counts, 0..1.

    Squared, so that what half the documents mention counts next to nothing; a document's own name
    leads to it however often others mention it, shared among its namesakes.
    """
    frequencies = np.maximum(neighbourhood.frequencies, 1)
    total = max(total, 2)
    rarity = np.maximum(1 - np.log(frequencies) / np.log(total), 0.0) ** 2
    rarity = np.where(frequencies > MOST_DOCUMENTS, 0.0, rarity)
    owners = np.unique(
        np.stack([node[neighbourhood.own], neighbourhood.documents[neighbourhood.own]]), axis=1
    )
    namesakes = np.bincount(owners[0], minlength=int(node.max()) + 1)[node]
    own = np.where(neighbourhood.own, 1 / np.sqrt(np.maximum(namesakes, 1)), 0.0)
    return np.maximum(rarity, own)


def _best_only(values: Floats, most: int) -> Floats:
    """The same, with 0 for all but the `most` highest."""
    if len(values) <= most:
        return values
    kept = np.zeros_like(values)
    best = np.argsort(-values, kind="stable")[:most]
    kept[best] = values[best]
    return kept
