"""Application configuration."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from django.apps import AppConfig

if TYPE_CHECKING:
    from inference.model_registry import ConnectedModel


class ModelServersConfig(AppConfig):
    name = "model_servers"
    verbose_name = "Model servers"

    def ready(self) -> None:
        from inference.model_registry import connect  # noqa: PLC0415 (settings are read)

        connect(_find_connected)


def _find_connected(kind: str) -> "Sequence[ConnectedModel]":
    from model_servers.registry import connected_models  # noqa: PLC0415 (once models are there)

    return connected_models(kind)
