"""System checks of the settings of sources."""

from collections.abc import Iterator
from typing import Any

from django.conf import settings
from django.core.checks import CheckMessage, Error, register

from common.checks import SETTINGS


@register(SETTINGS)
def check_connectors(app_configs: Any, **kwargs: Any) -> Iterator[CheckMessage]:
    """Kinds of the operator's own can be imported, and are connectors."""
    if not settings.CONNECTORS:
        return
    # With pydantic, which a start need not load.
    from sources.connectors import connector_class  # noqa: PLC0415
    from sources.connectors.base import Connector  # noqa: PLC0415

    for kind, path in settings.CONNECTORS.items():
        try:
            found: Any = connector_class(kind)
        except ImportError as error:
            problem = str(error)
        else:
            if isinstance(found, type) and issubclass(found, Connector) and found.kind == kind:
                continue
            problem = f"it is no Connector whose kind is “{kind}”."
        yield Error(
            f"RAGSITE_CONNECTORS has {kind}={path}: {problem}",
            hint="Name a class by its module, which must be on PYTHONPATH: my_sources.Tickets.",
            id="sources.E001",
        )
