"""Application configuration."""

from django.apps import AppConfig


class RagsiteConfig(AppConfig):
    name = "ragsite"

    def ready(self) -> None:
        from ragsite import checks, tracing  # noqa: F401, PLC0415 (apps are not ready before)
        from ragsite.health import standard  # noqa: PLC0415

        standard.register_all()
        tracing.begin()
