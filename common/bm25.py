"""BM25 over posting blocks, in arrays: packing them, scoring with them, the best of the scores.

Robertson and Zaragoza, “The Probabilistic Relevance Framework: BM25 and Beyond” (2009). Pure;
begin with `score`. Every number of a score is exact but for the rounding of a term's weight to 32
bits, so the same texts have the same scores however their postings are split into blocks.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

K1 = 1.2
B = 0.75
#: Ids of a block agree in all but these low bits.
BLOCK_BITS = 16
BLOCK = 1 << BLOCK_BITS
#: Greater frequencies and lengths are capped at these. Beyond the 256th occurrence a term adds no
#: information, and no tsvector has so many lexemes.
MAX_FREQUENCY = 255
MAX_LENGTH = 65_535
_BYTES = 5
#: The share of a term's score for another form of it, so that the exact spelling comes first.
VARIANT = 0.7
#: Scores are summed in a dense array over all ids of the blocks, unless that has more than this
#: many slots for each posting.
_SPARSE = 64

Ids = NDArray[np.int64]
Scores64 = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Postings:
    """Documents of one term: ids ascending, term frequency and length of each."""

    ids: Ids
    frequencies: NDArray[np.integer]
    lengths: NDArray[np.integer]

    def __len__(self) -> int:
        return len(self.ids)

    def without(self, removed: Ids) -> "Postings":
        """All but the ids in `removed`, which are sorted."""
        if not len(removed) or not len(self.ids):
            return self
        places = np.searchsorted(removed, self.ids)
        places[places == len(removed)] = 0
        alive = removed[places] != self.ids
        if alive.all():
            return self
        return Postings(self.ids[alive], self.frequencies[alive], self.lengths[alive])


def pack(postings: Postings) -> dict[int, bytes]:
    """The postings as blocks, by base (first id of the block over 65,536): low 16 bits of each id,
    one byte of frequency each, 16 bits of length each, little-endian.
    """
    if not len(postings):
        return {}
    columns = (
        (postings.ids & (BLOCK - 1)).astype("<u2"),
        np.minimum(postings.frequencies, MAX_FREQUENCY).astype("u1"),
        np.minimum(postings.lengths, MAX_LENGTH).astype("<u2"),
    )
    first, last = (int(postings.ids[at]) >> BLOCK_BITS for at in (0, -1))
    if first == last:  # as of most terms
        return {first: b"".join([column.tobytes() for column in columns])}
    bases = postings.ids >> BLOCK_BITS
    ends = np.append(np.flatnonzero(np.diff(bases)) + 1, len(bases)).tolist()
    return {
        int(bases[start]): b"".join([column[start:end].tobytes() for column in columns])
        for start, end in pairwise([0, *ends])
    }


def unpack(base: int, data: bytes) -> Postings:
    """The postings of a block. Raises ValueError for invalid bytes."""
    count, rest = divmod(len(data), _BYTES)
    if rest:
        raise ValueError(f"A block of {len(data)} bytes holds no whole number of postings.")
    low = np.frombuffer(data, "<u2", count)
    return Postings(
        ids=low + np.int64(base << BLOCK_BITS),
        frequencies=np.frombuffer(data, "u1", count, 2 * count),
        lengths=np.frombuffer(data, "<u2", count, 3 * count),
    )


def unpack_entries(numbers: NDArray[np.int64]) -> Postings:
    """Postings from ascending numbers: the id from bit 24 on, then 8 bits of frequency and 16 of
    length."""
    return Postings(numbers >> 24, (numbers >> 16) & MAX_FREQUENCY, numbers & MAX_LENGTH)


def merged(parts: Sequence[Postings]) -> Postings:
    """Postings of several blocks as one, in the order of their ids."""
    if len(parts) == 1:
        return parts[0]
    ids = np.concatenate([part.ids for part in parts]) if parts else np.zeros(0, np.int64)
    if not len(ids):
        return Postings(ids, np.zeros(0, "u1"), np.zeros(0, "<u2"))
    order = np.argsort(ids, kind="stable")
    return Postings(
        ids[order],
        np.concatenate([part.frequencies for part in parts])[order],
        np.concatenate([part.lengths for part in parts])[order],
    )


@dataclass(slots=True)
class Term:
    """A query term and its postings. `times` is its frequency in the query.

    `counted` postings make up its document frequency; `others` (superseded versions) are scored too
    but not counted. `variants` and `other_variants` are documents that have another form of the
    term only: counted likewise, they score `VARIANT` of it.
    """

    times: float = 1.0
    counted: list[Postings] = field(default_factory=list)
    others: list[Postings] = field(default_factory=list)
    variants: list[Postings] = field(default_factory=list)
    other_variants: list[Postings] = field(default_factory=list)

    @property
    def document_frequency(self) -> int:
        """Number of documents that have the term, in whatever form."""
        return sum(map(len, self.counted)) + sum(map(len, self.variants))

    @property
    def is_unknown(self) -> bool:
        """Whether no document has it."""
        return not (self.counted or self.others or self.variants or self.other_variants)

    def weight(self, statistics: "Statistics") -> float:
        """Inverse document frequency times the frequency in the query."""
        held = self.document_frequency
        absent = max(max(statistics.documents, statistics.least) - held, 0)
        # The + 1 keeps the weight of a term that most documents have above zero (Lucene).
        return self.times * float(np.log(1 + (absent + 0.5) / (held + 0.5)))


@dataclass(slots=True)
class Statistics:
    """Number of documents searched, and the sum of their lengths.

    Document frequencies are judged as among at least `least` documents: among very few, a term that
    occurs nowhere would weigh five times one that occurs once.
    """

    documents: int = 0
    total_length: int = 0
    least: int = 0

    @property
    def average_length(self) -> float:
        """At least 1, so that nothing is divided by zero."""
        return max(1.0, self.total_length / self.documents) if self.documents else 1.0


class Scores:
    """BM25 scores of documents with a score above 0."""

    def __init__(self, positions: Ids, values: Scores64, bases: Ids) -> None:
        count = len(bases) << BLOCK_BITS
        self._bases = bases
        self._positions: Ids | None = None
        if count <= max(_SPARSE * len(positions), BLOCK):
            sums = np.bincount(positions, values, minlength=count)
        else:
            self._positions, inverse = np.unique(positions, return_inverse=True)
            sums = np.bincount(inverse, values, minlength=len(self._positions))
        self._values: Scores64 = sums.astype(np.float64, copy=False)

    def best(self, count: int) -> tuple[Ids, Scores64]:
        """Ids and scores of the best `count` documents and all ties with the last, best first; ties
        by id.
        """
        values = self._values
        if len(values) > 4 * count:
            # The maxima of many slices: the smallest of the best `count` of these is reached by as
            # many scores, and comparing with it is quicker than to sort or partition.
            width = max(256, 1 << (2 * count - 1).bit_length())
            whole = len(values) // width * width
            if whole:
                peaks = values[:whole].reshape(-1, width).max(axis=0)
                least = np.partition(peaks, width - count)[width - count] if count < width else 0.0
                at = np.flatnonzero(values >= max(least, np.finfo(np.float64).tiny))
            else:
                at = np.flatnonzero(values)
        else:
            at = np.flatnonzero(values)
        found = values[at]
        if len(found) > count:
            least = np.partition(found, len(found) - count)[len(found) - count]
            at, found = at[found >= least], found[found >= least]
        order = np.lexsort((at, -found))
        positions = at[order] if self._positions is None else self._positions[at[order]]
        ids: Ids = (self._bases[positions >> BLOCK_BITS] << BLOCK_BITS) | (positions & (BLOCK - 1))
        return ids, found[order]

    def of(self, ids: Ids) -> Scores64:
        """The scores of these documents, in their order."""
        if not len(self._bases) or not len(ids):
            return np.zeros(len(ids))
        slots = np.searchsorted(self._bases, ids >> BLOCK_BITS)
        slots[slots == len(self._bases)] = 0
        known = self._bases[slots] == ids >> BLOCK_BITS
        positions = (slots << BLOCK_BITS) + (ids & (BLOCK - 1))
        if self._positions is not None:
            places = np.searchsorted(self._positions, positions)
            places[places == len(self._positions)] = 0
            known &= self._positions[places] == positions
            positions = places
        scores: Scores64 = np.where(known, self._values[np.where(known, positions, 0)], 0.0)
        return scores

    def __len__(self) -> int:
        return int(np.count_nonzero(self._values))


def score(groups: Iterable[tuple[Statistics, Sequence[Term]]]) -> Scores:
    """Scores of all documents that have a term. Each group is one language with its own statistics;
    a document is in one group.
    """
    ids: list[Ids] = []
    values: list[NDArray[np.float32]] = []
    for statistics, terms in groups:
        parts: list[Postings] = []
        weights: list[float] = []  # of each part
        for term in terms:
            weight = term.weight(statistics) * (K1 + 1)
            for of_term, factor in (
                ((*term.counted, *term.others), 1.0),
                ((*term.variants, *term.other_variants), VARIANT),
            ):
                parts += of_term
                weights += [weight * factor] * len(of_term)
        if not parts:
            continue
        frequencies = np.concatenate([part.frequencies for part in parts]).astype(np.float32)
        norm = np.concatenate([part.lengths for part in parts]).astype(np.float32)
        norm *= np.float32(K1 * B / statistics.average_length)
        norm += np.float32(K1 * (1 - B))
        norm += frequencies
        frequencies *= np.repeat(np.array(weights, np.float32), [len(part) for part in parts])
        frequencies /= norm
        ids += [part.ids for part in parts]
        values.append(frequencies)
    if not ids:
        return Scores(np.zeros(0, np.int64), np.zeros(0), np.zeros(0, np.int64))
    # A block's ids share their base, which is all that need be looked at to place it.
    firsts = np.array([part[0] >> BLOCK_BITS for part in ids if len(part)], dtype=np.int64)
    lasts = np.array([part[-1] >> BLOCK_BITS for part in ids if len(part)], dtype=np.int64)
    together = np.concatenate(ids)
    bases = np.unique(firsts if (firsts == lasts).all() else together >> BLOCK_BITS)
    if len(bases) == 1 or (len(bases) and bases[-1] - bases[0] == len(bases) - 1):
        positions = together - (bases[0] << BLOCK_BITS)
    else:
        slots = np.searchsorted(bases, together >> BLOCK_BITS)
        positions = (slots << BLOCK_BITS) + (together & (BLOCK - 1))
    return Scores(positions, np.concatenate(values).astype(np.float64), bases)
