"""Steps as relations between ids."""

from collections.abc import Iterable, Mapping

from graph.keys import natural_order
from graph.reading.results import Link
from graph.reading.steps import Step
from graph.reading.vertices import Ref, Vertex


def links_of(steps: Iterable[Step], vertices: Mapping[Ref, Vertex]) -> tuple[Link, ...]:
    """The relations that these steps follow, each once, between those of `vertices`.

    Two rows of one document may tell the same: the larger weight counts.
    """
    links: dict[tuple[str, str, str], Link] = {}
    for each in steps:
        if each.source not in vertices or each.target not in vertices:
            continue
        link = Link(
            vertices[each.source].id, each.rel, vertices[each.target].id, each.weight, each.origin
        )
        name = (link.source, link.rel, link.target)
        if name not in links or links[name].weight < link.weight:
            links[name] = link
    return tuple(links[name] for name in sorted(links, key=_order))


def _order(name: tuple[str, str, str]) -> tuple[object, ...]:
    source, rel, target = name
    return natural_order(source), rel, natural_order(target)
