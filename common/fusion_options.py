"""Options of fusion, as a request, a collection and the site may set them. Does not import
numpy.
"""

from collections.abc import Mapping
from typing import Annotated, Any, Literal, Self, get_args

from pydantic import Field, model_validator

from common.errors import InvalidInput
from common.options import Options
from common.translation import gettext

#: `score` adds scaled scores by weights that follow the question, and compares the best texts;
#: `weighted` adds them by fixed weights alone; `rrf` adds reciprocal ranks.
Method = Literal["score", "rrf", "weighted"]
METHODS: tuple[Method, ...] = get_args(Method)

#: Cormack, Clarke and Büttcher, “Reciprocal Rank Fusion outperforms …” (SIGIR 2009).
RRF_K = 60

FusionMethod = Annotated[
    Method | None,
    Field(
        description="How results of words and of meaning are joined: by scaled `score` with weights"
        " that follow the question, by rank (`rrf`), or `weighted` by fixed weights. Default: as"
        " the collections or the site have it (`score`)."
    ),
]


class FusionOptions(Options):
    """How a search fuses its arms. None leaves an option to the next level: request, collections,
    site.
    """

    method: FusionMethod = None
    rrf_k: int | None = Field(
        default=None,
        ge=1,
        le=1000,
        description="The constant of `rrf`. Default: of the collections or the site (60).",
    )
    depth: int | None = Field(
        default=None,
        ge=10,
        le=2000,
        description="How many candidates words and meaning list each. Default: as many as the"
        " question needs.",
    )
    weights: Mapping[str, Annotated[float, Field(ge=0)]] | None = Field(
        default=None,
        description="What `lexical` (α) and `vector` (β) count for, in place of what suits the"
        " question. In an address as JSON.",
    )

    @classmethod
    def of_site(cls, settings: Any) -> Self:
        """The defaults of the site. Raises InvalidInput."""
        return cls(
            method=settings.FUSION,
            rrf_k=settings.RRF_K,
            depth=settings.SEARCH_DEPTH or None,
            weights=settings.FUSION_WEIGHTS,
        )

    @property
    def arms(self) -> tuple[str, ...]:
        """Names of the arms that can be weighted."""
        return ("lexical", "vector")

    @model_validator(mode="after")
    def _check_weights(self) -> Self:
        if self.weights is None:
            return self
        names = ", ".join(self.arms)
        if unknown := sorted(self.weights.keys() - set(self.arms)):
            raise InvalidInput(
                gettext("There is no arm “{unknown}” to weigh. There are: {names}.").format(
                    unknown=unknown[0], names=names
                ),
                field="weights",
            )
        if not any(self.weights.values()):
            raise InvalidInput(
                gettext("Weights are finite numbers of at least 0, one of them greater."),
                field="weights",
            )
        return self

    def over(self, others: "FusionOptions") -> "FusionOptions":
        """These options, with `others` where they are None."""
        return others.model_copy(update=self.given())
