"""Application configuration."""

from django.apps import AppConfig


class RagsiteConfig(AppConfig):
    name = "ragsite"

    def ready(self) -> None:
        from ragsite import checks, tracing  # noqa: PLC0415 (apps are not ready before)

        checks.skip_page_checks()
        tracing.start_tracing()
