"""Parts of the site that its settings switch off: memory, the graph, vectors."""

from typing import Literal, get_args

from django.conf import settings
from django.http import HttpRequest
from django.utils.translation import gettext, gettext_noop

from common.errors import Forbidden

Feature = Literal["memory", "graph", "vectors"]

_OFF = {
    "memory": gettext_noop("Memory is switched off on this site (RAGSITE_MEMORY)."),
    "graph": gettext_noop("The graph is switched off on this site (RAGSITE_GRAPH)."),
    "vectors": gettext_noop(
        "Vectors are switched off on this site (RAGSITE_VECTORS). Search by words."
    ),
}


class SwitchedOff(Forbidden):
    """The request needs a part of the site that is switched off."""

    code = "switched_off"


def is_on(feature: Feature) -> bool:
    """Whether the site has this part."""
    switches = {
        "memory": settings.MEMORY,
        "graph": settings.GRAPH,
        "vectors": settings.VECTORS,
    }
    return bool(switches[feature])


def require(feature: Feature) -> None:
    """Raise SwitchedOff where the site does not have this part."""
    if not is_on(feature):
        raise SwitchedOff(gettext(_OFF[feature]))


def features(request: HttpRequest) -> dict[str, dict[str, bool]]:
    """Template context: `features.memory` and the like, whether the site has that part."""
    return {"features": {feature: is_on(feature) for feature in get_args(Feature)}}
