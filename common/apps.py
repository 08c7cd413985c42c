"""Application configuration."""

from django.apps import AppConfig


class CommonConfig(AppConfig):
    name = "common"

    def ready(self) -> None:
        from common import checks, vectors  # noqa: PLC0415 (apps are not ready before)

        checks.register()
        vectors.connect()
