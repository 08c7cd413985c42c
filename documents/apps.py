"""Application configuration: registers the checks."""

from django.apps import AppConfig


class DocumentsConfig(AppConfig):
    name = "documents"

    def ready(self) -> None:
        from documents import checks  # noqa: F401, PLC0415 (registers; models are ready by now)
