"""System checks of ingestion's settings, and of embedding spaces against their embedders."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.checks import CheckMessage, Error, Tags, Warning, register
from django.db import connections

from common import features
from common.checks import SETTINGS
from documents.languages import CONFIGURATIONS, DETECTED_ONLY
from documents.models import Chunk, EmbeddingSpace
from inference.interfaces import BackendUnavailable, DimensionMismatch, InferenceError

_AT_LEAST_ONE = (
    "MAX_UPLOAD_BYTES",
    "MAX_UPLOAD_FILES",
    "INGESTION_LEASE_SECONDS",
    "INGESTION_MAX_ATTEMPTS",
    "OCR_MAX_PAGES",
    "OCR_THREADS",
    "PARSER_SECONDS",
)
OCR_ENGINES = ("auto", "rapidocr", "tesseract")
_DAY = 86_400
#: Memory of the parsers themselves, and copies of a text: bytes, characters, normalised ones.
_PARSER_ITSELF = 256 * 1024**2
_COPIES = 6


@register(SETTINGS)
def check_settings(app_configs: Any, **kwargs: Any) -> Iterator[CheckMessage]:
    """Numbers that must be positive are, and the fallback language is known."""
    for name in _AT_LEAST_ONE:
        if getattr(settings, name) < 1:
            yield Error(
                f"RAGSITE_{name} is {getattr(settings, name)}.",
                hint="Set it to 1 or more, or leave it out.",
                id="documents.E001",
            )
    if not settings.PARSER_SECONDS <= _DAY:  # neither is NaN
        yield Error(
            f"RAGSITE_PARSER_SECONDS is {settings.PARSER_SECONDS}: more than a day.",
            hint="Set it to what a worker may spend on one file.",
            id="documents.E006",
        )
    if settings.PARSER_MEMORY_BYTES < _PARSER_ITSELF:
        yield Error(
            f"RAGSITE_PARSER_MEMORY_BYTES is {settings.PARSER_MEMORY_BYTES}.",
            hint=f"Set it to {_PARSER_ITSELF} or more: the parsers themselves need so much.",
            id="documents.E007",
        )
    elif settings.PARSER_MEMORY_BYTES < _PARSER_ITSELF + _COPIES * settings.MAX_UPLOAD_BYTES:
        yield Warning(
            "RAGSITE_PARSER_MEMORY_BYTES is too little for a text of"
            " RAGSITE_MAX_UPLOAD_BYTES: it would fail with too_much_memory.",
            hint="Set it to 256 MiB and six times the size of a file, or allow smaller files.",
            id="documents.W003",
        )
    if settings.OCR_ENGINE not in OCR_ENGINES:
        yield Error(
            f"RAGSITE_OCR_ENGINE is “{settings.OCR_ENGINE}”.",
            hint=f"Set it to one of {', '.join(OCR_ENGINES)}.",
            id="documents.E010",
        )
    if settings.FALLBACK_LANGUAGE not in {*CONFIGURATIONS, *DETECTED_ONLY}:
        yield Error(
            f"RAGSITE_FALLBACK_LANGUAGE “{settings.FALLBACK_LANGUAGE}” is no known language.",
            hint=f"Use one of {', '.join(sorted(CONFIGURATIONS))}.",
            id="documents.E002",
        )


@register(SETTINGS)
def check_roots(app_configs: Any, **kwargs: Any) -> Iterator[CheckMessage]:
    """Directories that requests may read exist and contain nothing of the site's own."""
    own = [Path(path) for path in (settings.VAR_DIR, settings.MEDIA_ROOT, settings.BASE_DIR)]
    for root in map(Path, settings.INGEST_ROOTS):
        if not root.is_absolute() or ".." in root.parts or root == Path("/"):
            yield Error(
                f"RAGSITE_INGEST_ROOTS holds “{root}”.",
                hint="Name each directory by its whole path, and not all of the machine.",
                id="documents.E008",
            )
        elif any(path.resolve().is_relative_to(root.resolve()) for path in own):
            yield Error(
                f"RAGSITE_INGEST_ROOTS holds “{root}”, in which the site's own files are.",
                hint="Its secret key and other people's uploads could be read: name a directory"
                " beside them.",
                id="documents.E009",
            )
        elif not root.is_dir():
            yield Warning(
                f"RAGSITE_INGEST_ROOTS holds “{root}”, which is no directory now.",
                hint="Mount it, or take it out.",
                id="documents.W004",
            )


@register(Tags.database)
def check_spaces(
    app_configs: Any, *, databases: Sequence[str] | None = None, **kwargs: Any
) -> Iterator[CheckMessage]:
    """Every live space has an embedder of the model that made its vectors."""
    if "default" not in (databases or ()) or not features.is_on("vectors"):
        return
    if EmbeddingSpace._meta.db_table not in connections["default"].introspection.table_names():
        return  # before the first migration
    if not Chunk.objects.exists():
        return  # the default space follows the configured embedder until the first document
    from documents.embedders import ModelMismatch, embedder_for  # noqa: PLC0415

    hint = (
        "Configure the embedder that made the space, and give a new one another alias in"
        " EMBEDDERS, a space of its own (`manage.py spaces add`) and the chunks (`manage.py"
        " reembed`)."
    )
    for space in EmbeddingSpace.objects.filter(state=EmbeddingSpace.State.LIVE):
        name = f"Embedding space {space}"
        try:
            embedder_for(space)
        except DimensionMismatch as error:
            yield Error(f"{name}: {error}", hint=hint, id="documents.E004")
        except ModelMismatch as error:
            yield Error(f"{name}: {error}", hint=hint, id="documents.E005")
        except BackendUnavailable as error:
            # No error: migrations must run before a model's host is up, and words find without it.
            yield Warning(f"{name}: {error}", id="documents.W002")
        except InferenceError as error:
            yield Error(f"{name}: {error}", id="documents.E003")
