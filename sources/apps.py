"""Application configuration."""

from django.apps import AppConfig


class SourcesConfig(AppConfig):
    name = "sources"

    def ready(self) -> None:
        from sources import checks  # noqa: F401, PLC0415 (registers them)
