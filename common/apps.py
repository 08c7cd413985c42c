"""Application configuration."""

from django.apps import AppConfig


class CommonConfig(AppConfig):
    name = "common"

    def ready(self) -> None:
        from common import checks, row_security, vectors  # noqa: PLC0415 (apps are not ready before)

        checks.register()
        row_security.connect()
        vectors.connect()
