"""What of this installation a backup notes: version, migrations, settings that answers hang on."""

import tomllib
from typing import Any

from django.apps import apps
from django.conf import settings
from django.db.migrations.loader import MigrationLoader
from django.db.models import FileField

from ragsite.backup.manifest import Migration

#: Numbers and names by which the site works, none of them secret: tests compare.
_PREFIXES = ("EVALUATION_", "GRAPH_", "INGESTION_", "MEMORY_", "PARSER_", "RAG_")
_NAMES = ("EXACT_SCAN_CHUNKS", "FALLBACK_LANGUAGE", "HISTORY_DAYS", "SEARCH_LOG_DAYS", "TIME_ZONE")
#: What of a model's options is noted: never its key, nor an address, which may hold one.
_OPTIONS = ("model", "model_name", "dimensions", "revision")


def version() -> str:
    """Of ragsite itself, such as `0.1.0`."""
    said = tomllib.loads((settings.BASE_DIR / "pyproject.toml").read_text())
    return str(said["project"]["version"])


def known_migrations() -> frozenset[Migration]:
    """All that this version can have applied, those that were squashed since included."""
    loader = MigrationLoader(None)
    disk = loader.disk_migrations or {}
    replaced = {name for migration in disk.values() for name in migration.replaces}
    return frozenset((app, name) for app, name in {*disk, *replaced})


def noted_settings() -> dict[str, Any]:
    """By name, as JSON."""
    return {
        name: getattr(settings, name)
        for name in sorted(dir(settings))
        if name in _NAMES or name.startswith(_PREFIXES)
    } | {"INFERENCE": _models()}


def _models() -> dict[str, Any]:
    return {
        kind: {
            alias: {"BACKEND": model["BACKEND"]}
            | {k: v for k, v in model.get("OPTIONS", {}).items() if k in _OPTIONS}
            for alias, model in models.items()
        }
        for kind, models in settings.INFERENCE.items()
    }


def file_columns() -> list[tuple[str, str]]:
    """Table and column of everything that names stored files."""
    return [
        (model._meta.db_table, str(field.column))
        for model in apps.get_models()
        for field in model._meta.local_concrete_fields
        if isinstance(field, FileField)
    ]
