"""What a search may be asked for: everything else is refused, with its name and the cure."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import isfinite
from typing import Any

import numpy as np
from numpy.typing import NDArray

from common.errors import InvalidInput
from common.fusion import METHODS, Method
from search.query import Query, QueryError, parse_query
from search.results import EXPANSIONS, MODES, SORTS, VERSIONS, Expansion, Mode, Sort, Versions

MAX_K = 100
MAX_OFFSET = 1000


@dataclass(frozen=True, slots=True)
class SearchQuery:
    """A question and how it is asked: all but where to look, and which page of it to show.

    The fields are those of `search.services.search`.
    """

    text: str
    mode: Mode = "hybrid"
    fusion: Method = "score"
    weights: Mapping[str, float] | None = None
    vector: Sequence[float] | NDArray[np.float32] | None = None
    rerank: bool | None = None
    min_similarity: float | None = None
    min_rerank: float | None = None
    diversify: bool = False
    group: bool = False
    expand: Expansion = "parent"
    sort: Sort = "relevance"

    def check(self) -> None:
        """Raise InvalidInput for a choice that there is not, or that goes with no other."""
        choices: tuple[tuple[str, str, Sequence[str]], ...] = (
            ("mode", self.mode, MODES),
            ("fusion", self.fusion, METHODS),
            ("expand", self.expand, EXPANSIONS),
            ("sort", self.sort, SORTS),
        )
        for field, value, known in choices:
            if value not in known:
                raise InvalidInput(
                    f"There is no {field} “{value}”. Use {', '.join(known)}.", field=field
                )
        check_thresholds(self.mode, self.rerank, self.min_similarity, self.min_rerank)


def check_page(*, k: int, offset: int) -> None:
    """Raise InvalidInput for a page that is not shown."""
    if not 1 <= k <= MAX_K:
        raise InvalidInput(f"k may be 1 to {MAX_K}.", field="k")
    if not 0 <= offset <= MAX_OFFSET:
        raise InvalidInput(f"offset may be 0 to {MAX_OFFSET}.", field="offset")


def checked_versions(versions: str) -> Versions:
    for known in VERSIONS:
        if versions == known:
            return known
    raise InvalidInput(
        f"There are no versions “{versions}”. Use {', '.join(VERSIONS)}.", field="versions"
    )


def check_thresholds(
    mode: Mode, rerank: bool | None, min_similarity: float | None, min_rerank: float | None
) -> None:
    if min_similarity is not None:
        if not -1 <= min_similarity <= 1:
            raise InvalidInput("min_similarity may be −1 to 1.", field="min_similarity")
        if mode == "lexical":
            raise InvalidInput(
                "Mode lexical compares no vectors, so no hit has a similarity. Use another mode or"
                " leave min_similarity out.",
                field="min_similarity",
            )
    if min_rerank is not None:
        if not 0 <= min_rerank <= 1:
            raise InvalidInput("min_rerank may be 0 to 1.", field="min_rerank")
        if rerank is False:
            raise InvalidInput(
                "Without reranking no hit has its score. Leave min_rerank out.", field="min_rerank"
            )


def parsed_query(query: str, *, mode: Mode, vector: Any) -> Query:
    if vector is not None and mode == "vector" and not query.strip():
        return Query(text="")
    try:
        return parse_query(query)
    except QueryError as error:
        raise InvalidInput(str(error), field="query") from error


def checked_vector(
    vector: Sequence[float] | NDArray[np.float32] | None,
) -> NDArray[np.float32] | None:
    if vector is None:
        return None
    try:
        asked = np.asarray(vector, dtype=np.float32)
    except (TypeError, ValueError, OverflowError) as error:
        raise InvalidInput("A vector is a list of numbers.", field="vector") from error
    if asked.ndim != 1 or not np.isfinite(asked).all() or not asked.any():
        raise InvalidInput(
            "A vector is a list of finite numbers that are not all zero.", field="vector"
        )
    return asked


def checked_weights(given: Mapping[str, float], *, arms: Iterable[str]) -> dict[str, float]:
    """A weight for each of `arms`; one that is not given is 0."""
    known = list(arms)
    unknown = sorted(given.keys() - set(known))
    if unknown:
        raise InvalidInput(
            f"There is no arm “{unknown[0]}” to weigh. There are: {', '.join(known)}.",
            field="weights",
        )
    weights = {name: float(given.get(name, 0.0)) for name in known}
    each = weights.values()
    if not all(isfinite(weight) and weight >= 0 for weight in each) or not any(each):
        raise InvalidInput(
            "Weights are finite numbers of at least 0, one of them greater.", field="weights"
        )
    return weights
