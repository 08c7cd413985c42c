"""Application configuration."""

from django.apps import AppConfig


class GraphConfig(AppConfig):
    name = "graph"

    def ready(self) -> None:
        from documents.ingestion import listeners  # noqa: PLC0415 (models are ready by now)

        listeners.register("graph.listener.GraphListener")
