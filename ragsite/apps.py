"""Application configuration."""

from django.apps import AppConfig


class RagsiteConfig(AppConfig):
    name = "ragsite"

    def ready(self) -> None:
        # Apps are not ready before.
        from common.model_names import translate_model_names  # noqa: PLC0415
        from ragsite import checks, tracing  # noqa: PLC0415

        checks.skip_page_checks()
        tracing.start_tracing()
        translate_model_names()
