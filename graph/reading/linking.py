"""Steps as relations between ids."""

from collections.abc import Iterable, Mapping

from graph.reading.results import Link
from graph.reading.steps import Step
from graph.reading.vertices import Ref


def links_of(steps: Iterable[Step], ids: Mapping[Ref, str]) -> tuple[Link, ...]:
    """The relations that these steps follow, each once, between vertices of these ids, in the order
    of `ids`.

    Two rows of one document may tell the same: the larger weight counts.
    """
    links: dict[tuple[str, str, str], Link] = {}
    for each in steps:
        if each.source not in ids or each.target not in ids:
            continue
        link = Link(ids[each.source], each.rel, ids[each.target], each.weight, each.origin)
        name = (link.source, link.rel, link.target)
        if name not in links or links[name].weight < link.weight:
            links[name] = link
    place = {each: number for number, each in enumerate(ids.values())}
    return tuple(
        links[name]
        for name in sorted(links, key=lambda name: (place[name[0]], name[1], place[name[2]]))
    )
