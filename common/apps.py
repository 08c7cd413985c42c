"""Application configuration."""

from django.apps import AppConfig


class CommonConfig(AppConfig):
    name = "common"

    def ready(self) -> None:
        from common import checks, pgvector, rls  # noqa: PLC0415 (apps are not ready before)

        checks.register()
        rls.secure_after_migrate()
        pgvector.register_on_connect()
