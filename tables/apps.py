"""Application configuration."""

from django.apps import AppConfig


class TablesConfig(AppConfig):
    name = "tables"

    def ready(self) -> None:
        from documents.ingestion import listeners  # noqa: PLC0415 (models are ready by now)
        from tables.sql import role  # noqa: PLC0415

        listeners.register("tables.listener.TablesListener")
        role.set_up()
