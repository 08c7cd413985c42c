"""The Django app: nothing but its system checks."""

from django.apps import AppConfig


class InferenceConfig(AppConfig):
    name = "inference"
    verbose_name = "Inference"

    def ready(self) -> None:
        from inference import checks  # noqa: F401, PLC0415  (registers them)
