"""Application configuration."""

from django.apps import AppConfig


class RagConfig(AppConfig):
    name = "rag"

    def ready(self) -> None:
        from memory import listeners  # noqa: PLC0415 (models are ready by now)

        listeners.register("rag.forgetting.forget_memory")
