"""One step from some vertices: everything beside them, in one statement."""

from typing import Literal

Direction = Literal["out", "in", "both"]
DIRECTIONS: tuple[Direction, ...] = ("both", "out", "in")
Grain = Literal["document", "chunk"]
GRAINS: tuple[Grain, ...] = ("document", "chunk")
