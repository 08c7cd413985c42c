"""Application configuration."""

from django.apps import AppConfig


class ModelServersConfig(AppConfig):
    name = "model_servers"
    verbose_name = "Model servers"

    def ready(self) -> None:
        from inference.model_registry import connect  # noqa: PLC0415 (settings are read)
        from model_servers.registry import connected_models  # noqa: PLC0415

        connect(connected_models)
