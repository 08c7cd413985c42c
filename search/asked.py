"""What a search may be asked for: everything else is refused, with its name and the cure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from common.errors import InvalidInput
from common.fusion_options import FusionOptions, Method
from documents.spaces import check_option
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
    fusion: Method | None = None
    rrf_k: int | None = None
    weights: Mapping[str, float] | None = None
    depth: int | None = None
    vector: Sequence[float] | NDArray[np.float32] | None = None
    rerank: bool | None = None
    min_similarity: float | None = None
    min_rerank: float | None = None
    diversify: bool = False
    group: bool = False
    expand: Expansion = "parent"
    sort: Sort = "relevance"
    ef_search: int | None = None
    probes: int | None = None

    @property
    def arms(self) -> tuple[str, ...]:
        """Which arms can be weighed."""
        return ("lexical", "vector", *(["graph"] if self.mode == "graph" else []))

    @property
    def fusion_options(self) -> FusionOptions:
        """What the request says of fusion."""
        return FusionOptions(self.fusion, self.rrf_k, self.weights, self.depth)

    def check(self) -> None:
        """Raise InvalidInput for a choice that there is not, or that goes with no other."""
        choices: tuple[tuple[str, str, Sequence[str]], ...] = (
            ("mode", self.mode, MODES),
            ("expand", self.expand, EXPANSIONS),
            ("sort", self.sort, SORTS),
        )
        for field, value, known in choices:
            if value not in known:
                raise InvalidInput(
                    f"There is no {field} “{value}”. Use {', '.join(known)}.", field=field
                )
        self.fusion_options.check(arms=self.arms)
        check_thresholds(self.mode, self.rerank, self.min_similarity, self.min_rerank)
        for field, number in (("ef_search", self.ef_search), ("probes", self.probes)):
            if number is None:
                continue
            check_option(field, number)
            if self.mode == "lexical":
                raise InvalidInput(
                    "Mode lexical asks no index of vectors. Use another mode or leave"
                    f" {field} out.",
                    field=field,
                )


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


def arm_weights(alpha: float | None, beta: float | None) -> dict[str, float] | None:
    """Weights from α of meaning and β of words; None where neither is given. Of one alone the other
    is what is left to 1."""
    if alpha is None and beta is None:
        return None
    vector = max(0.0, 1 - (beta or 0.0)) if alpha is None else alpha
    lexical = max(0.0, 1 - vector) if beta is None else beta
    return {"lexical": lexical, "vector": vector}
