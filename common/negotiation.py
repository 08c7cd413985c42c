"""Content negotiation for answers that no renderer makes."""

from typing import Any

from rest_framework.negotiation import DefaultContentNegotiation


class ErrorsAsJson(DefaultContentNegotiation):
    """For an address that answers with a stream: only errors are JSON, whatever is accepted."""

    def select_renderer(self, request: Any, renderers: Any, format_suffix: Any = None) -> Any:
        return renderers[0], renderers[0].media_type
