"""Application configuration."""

from django.apps import AppConfig


class RagConfig(AppConfig):
    name = "rag"

    def ready(self) -> None:
        from memory import listeners  # noqa: PLC0415 (models are ready by now)
        from rag.forgetting import forget_memory  # noqa: PLC0415

        listeners.register(forget_memory)
