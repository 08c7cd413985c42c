"""Names of apps, models and fields in the language of the page, where the admin shows them."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from django.apps import apps
from django.conf import settings
from django.db.models import Field
from django.utils.translation import gettext_lazy


def own_apps() -> Iterator[Any]:
    """The apps of the project."""
    return (app for app in apps.get_app_configs() if Path(app.path).parent == settings.BASE_DIR)


def own_models() -> Iterator[Any]:
    """The models of the project's apps, without their hidden many-to-many tables."""
    for app in own_apps():
        yield from app.get_models()


def model_names() -> Iterator[str]:
    """Every name as the code has it: what the catalogs must translate."""
    yield from (str(app.verbose_name) for app in own_apps() if app.models)
    for model in own_models():
        meta = model._meta
        yield from (meta.verbose_name_raw, str(meta.verbose_name_plural))
        for field in meta.get_fields():
            if isinstance(field, Field) and field.model is model:
                yield str(field.verbose_name)


def translate_model_names() -> None:
    """Have every name looked up in the catalogs. Migrations keep the names of the code."""
    for app in own_apps():
        app.verbose_name = gettext_lazy(str(app.verbose_name))
    for model in own_models():
        meta = model._meta
        meta.verbose_name = gettext_lazy(str(meta.verbose_name))
        meta.verbose_name_plural = gettext_lazy(str(meta.verbose_name_plural))
        for field in meta.get_fields():
            if isinstance(field, Field) and field.model is model:
                field.verbose_name = gettext_lazy(str(field.verbose_name))
