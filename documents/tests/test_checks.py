"""Wrong settings and spaces are said by `check`, not by a request."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from documents.checks import check_roots, check_settings, check_spaces
from documents.models import Chunk, EmbeddingSpace
from documents.tests.factories import ChunkFactory
from tests.kit import hashing, use_models

HASHING = "inference.backends.hashing.HashingEmbedder"


def ids(messages: Iterable[Any]) -> list[str]:
    return [message.id for message in messages]


def test_good_settings_say_nothing() -> None:
    assert list(check_settings(None)) == []


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("MAX_UPLOAD_BYTES", 0, "documents.E001"),
        ("INGESTION_LEASE_SECONDS", -1, "documents.E001"),
        ("FALLBACK_LANGUAGE", "english", "documents.E002"),
        ("PARSER_SECONDS", 0.5, "documents.E001"),
        ("PARSER_SECONDS", float("nan"), "documents.E006"),
        ("PARSER_SECONDS", 100_000.0, "documents.E006"),
        ("PARSER_MEMORY_BYTES", 1024, "documents.E007"),
        ("PARSER_MEMORY_BYTES", 512 * 1024**2, "documents.W003"),
    ],
)
def test_a_bad_setting_is_named(settings: Any, name: str, value: Any, expected: str) -> None:
    setattr(settings, name, value)
    (message,) = check_settings(None)
    assert message.id == expected
    assert name in message.msg
    assert message.hint


def test_a_root_below_which_requests_may_read_is_a_directory_apart(
    settings: Any, tmp_path: Path
) -> None:
    settings.MEDIA_ROOT = tmp_path / "site" / "media"
    (tmp_path / "data").mkdir()
    (tmp_path / "link").symlink_to(tmp_path)
    for root, expected in {
        str(tmp_path / "data"): [],
        "data": ["documents.E008"],
        "/": ["documents.E008"],
        f"{tmp_path}/data/../site": ["documents.E008"],
        str(tmp_path): ["documents.E009"],
        str(tmp_path / "link"): ["documents.E009"],
        str(tmp_path / "absent"): ["documents.W004"],
    }.items():
        settings.INGEST_ROOTS = [root]
        assert ids(check_roots(None)) == expected, root


@pytest.mark.django_db
def test_a_space_is_compared_with_its_embedder(settings: Any) -> None:
    space = EmbeddingSpace.objects.get()
    ChunkFactory()
    assert list(check_spaces(None, databases=["default"])) == []
    EmbeddingSpace.objects.update(model_name="another")
    assert ids(check_spaces(None, databases=["default"])) == ["documents.E005"]
    use_models(settings, embedder=hashing(128), reranker={})
    assert ids(check_spaces(None, databases=["default"])) == ["documents.E004"]
    settings.INFERENCE["embedder"]["away"] = {
        "BACKEND": "inference.backends.transformers_local.TransformersEmbedder",
        "OPTIONS": {"model": "nobody/has-fetched-this"},
    }
    EmbeddingSpace.objects.filter(id=space.id).update(embedder="away")
    assert ids(check_spaces(None, databases=["default"])) == ["documents.W002"]
    EmbeddingSpace.objects.filter(id=space.id).update(embedder="nobody")
    assert ids(check_spaces(None, databases=["default"])) == ["documents.E003"]
    Chunk.objects.all().delete()
    assert list(check_spaces(None, databases=["default"])) == []


def test_without_a_database_nothing_is_asked_of_it() -> None:
    assert list(check_spaces(None, databases=None)) == []
