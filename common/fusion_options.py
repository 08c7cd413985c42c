"""Options of fusion, as a request, a collection and the site may set them. Does not import
numpy.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from math import isfinite
from typing import Any, Literal, Self

from common.errors import InvalidInput
from common.translation import format_number, gettext

#: `score` adds scaled scores by weights that follow the question, and compares the best texts;
#: `weighted` adds them by fixed weights alone; `rrf` adds reciprocal ranks.
Method = Literal["score", "rrf", "weighted"]
METHODS: tuple[Method, ...] = ("score", "rrf", "weighted")

#: Cormack, Clarke and Büttcher, “Reciprocal Rank Fusion outperforms …” (SIGIR 2009).
RRF_K = 60
RRF_KS = range(1, 1001)
#: How many candidates each arm may be asked for.
DEPTHS = range(10, 2001)


@dataclass(frozen=True, slots=True)
class FusionOptions:
    """How a search fuses its arms. None leaves an option to the next level: request, collections,
    site.

    `rrf_k` is the constant of `rrf`, `weights` are by arm (often called α for `vector` and β for
    `lexical`), `depth` is the number of candidates of each arm.
    """

    method: Method | None = None
    rrf_k: int | None = None
    weights: Mapping[str, float] | None = None
    depth: int | None = None

    @classmethod
    def parse(cls, given: Any, *, arms: Iterable[str] = ("lexical", "vector")) -> Self:
        """From plain data, as collections store it. Raises InvalidInput."""
        names = [field.name for field in fields(cls)]
        if not isinstance(given, Mapping) or given.keys() - set(names):
            raise InvalidInput(
                gettext(
                    'Fusion is an object of {names}, such as {{"method": "rrf", "rrf_k": 60}}.'
                ).format(names=", ".join(names)),
                field="fusion",
            )
        options = cls(**given)
        options.check(arms=arms)
        return options

    def check(self, *, arms: Iterable[str] = ("lexical", "vector")) -> None:
        """Raise InvalidInput for invalid options."""
        if self.method is not None and self.method not in METHODS:
            raise InvalidInput(
                gettext("There is no fusion “{method}”. Use {names}.").format(
                    method=self.method, names=", ".join(METHODS)
                ),
                field="fusion",
            )
        for name, value, known in (("rrf_k", self.rrf_k, RRF_KS), ("depth", self.depth, DEPTHS)):
            if value is not None and (isinstance(value, bool) or value not in known):
                raise InvalidInput(
                    gettext("{name} may be {least} to {most}.").format(
                        name=name,
                        least=known[0],
                        most=format_number(known[-1]),
                    ),
                    field=name,
                )
        if self.weights is not None:
            checked_weights(self.weights, arms=arms)

    def over(self, others: "FusionOptions") -> "FusionOptions":
        """These options, with `others` where they are None."""
        return FusionOptions(
            others.method if self.method is None else self.method,
            others.rrf_k if self.rrf_k is None else self.rrf_k,
            others.weights if self.weights is None else self.weights,
            others.depth if self.depth is None else self.depth,
        )


def checked_weights(data: Any, *, arms: Iterable[str]) -> dict[str, float]:
    """A weight for each of `arms`; missing ones are 0. Raises InvalidInput."""
    known = list(arms)
    if not isinstance(data, Mapping):
        raise InvalidInput(
            gettext("Weights are an object of {names}.").format(names=", ".join(known)),
            field="weights",
        )
    unknown = sorted(data.keys() - set(known))
    if unknown:
        raise InvalidInput(
            gettext("There is no arm “{unknown}” to weigh. There are: {names}.").format(
                unknown=unknown[0], names=", ".join(known)
            ),
            field="weights",
        )
    try:
        weights = {name: float(data.get(name, 0.0)) for name in known}
    except (TypeError, ValueError):
        weights = {}
    each = weights.values()
    if not all(isfinite(weight) and weight >= 0 for weight in each) or not any(each):
        raise InvalidInput(
            gettext("Weights are finite numbers of at least 0, one of them greater."),
            field="weights",
        )
    return weights
