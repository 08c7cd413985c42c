"""Options of walks through the graph, at every door."""

from typing import Annotated

from pydantic import Field

from common.options import Options
from graph.node_ids import MAX_REL_CHARACTERS
from graph.reading.steps import (
    MAX_DEPTH,
    MAX_HOPS,
    MAX_NAMES,
    MAX_PAGE,
    MAX_REACHED,
    MAX_VERTICES,
    Direction,
    Grain,
)

Relation = Annotated[str, Field(min_length=1, max_length=MAX_REL_CHARACTERS)]
Steps = Annotated[int, Field(ge=1, le=MAX_DEPTH, description="Steps, at most.")]


class StepOptions(Options):
    """Which way relations are followed, and what mentions are."""

    direction: Direction = Field(
        default="both",
        description="`out` along relations, from their source to their target; `in` against them.",
    )
    grain: Grain = Field(
        default="document",
        description="Whether what mentions a node is shown as documents or as passages.",
    )


class WalkOptions(StepOptions):
    """Which relations are followed, and how."""

    rel: tuple[Relation, ...] = Field(
        default=(),
        max_length=MAX_NAMES,
        description="Only by these relations; may be repeated. Default: by any.",
    )


class NeighborOptions(WalkOptions):
    limit: int = Field(default=100, ge=1, le=MAX_PAGE, description="Neighbors a page.")


class TraversalOptions(WalkOptions):
    max_depth: Steps = 2
    limit: int = Field(default=1000, ge=1, le=MAX_REACHED, description="Nodes, at most.")


class PathOptions(WalkOptions):
    max_depth: Steps = 6


class SubgraphOptions(WalkOptions):
    hops: int = Field(default=1, ge=0, le=MAX_HOPS, description="Steps from any of them, at most.")
    limit: int = Field(default=200, ge=1, le=MAX_VERTICES, description="Nodes, at most.")
