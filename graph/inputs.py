"""What callers say of nodes and edges. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class NodeInput:
    """A node as it is to be. What is None stays as it is, or is empty where the node is new.

    Texts find the node by its name and by each of `aliases`.
    """

    id: str
    name: str | None = None
    labels: Sequence[str] | None = None
    props: Mapping[str, Any] | None = None
    aliases: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class EdgeInput:
    """An edge as it is to be. What is None stays as it is; a new one weighs 1 and has no
    properties."""

    source: str
    rel: str
    target: str
    weight: float | None = None
    props: Mapping[str, Any] | None = None
