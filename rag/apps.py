"""Application configuration."""

from django.apps import AppConfig


class RagConfig(AppConfig):
    name = "rag"

    def ready(self) -> None:
        from memory import scopes  # noqa: PLC0415 (models are ready by now)

        scopes.register_eraser("rag.services.conversations.forget_memory")
