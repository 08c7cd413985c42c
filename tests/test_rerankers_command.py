"""`manage.py rerankers`: from the name of a model to lines in .env, or a refusal that helps."""

from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from documents.ingestion.sources import text_source
from documents.models import Document
from documents.services import ingest_inline
from documents.tests.factories import CollectionFactory, WorkspaceFactory
from inference.tests.local.checkpoints import cross_encoder
from inference.tests.stub_server import Reply, stub_server
from ragsite.environment import FILE_VARIABLE, read_env_file
from search.judgements import Grade, judge

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("media_root")]


@pytest.fixture
def env_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, settings: Any) -> Path:
    path = tmp_path / "site.env"
    path.write_text("# ours\nLOG_LEVEL=INFO\nRERANKER_BACKEND=old\n")
    monkeypatch.setenv(FILE_VARIABLE, str(path))
    for name in ("RERANKER_BACKEND", "RERANKER_OPTIONS"):
        monkeypatch.delenv(name, raising=False)
    # So that they are as before when the test is over.
    settings.INFERENCE, settings.SHARED_MODELS = settings.INFERENCE, settings.SHARED_MODELS
    return path


def by_words(payload: dict[str, Any]) -> Reply:
    """How many words of the question a document has."""
    asked = set(payload["query"].lower().strip("?").split())
    shares = [len(asked & set(text.lower().split())) for text in payload["documents"]]
    results = [{"index": at, "relevance_score": n / 10} for at, n in enumerate(shares)]
    return Reply({"results": results})


def test_a_server_is_tried_measured_and_written_and_unset_again(
    env_file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    collection = CollectionFactory(workspace=WorkspaceFactory(slug="default"), slug="notes")
    texts = {"a": "The who and what of a bell.", "b": "Who invented the telephone line."}
    sources = [text_source(key, text) for key, text in texts.items()]
    ingest_inline(collection=collection, sources=sources)
    judge(
        collection=collection,
        question="Who invented the telephone?",
        document=Document.objects.get(key="b"),
        grade=Grade.GOOD,
        user=None,
    )
    with stub_server() as server:
        server.always(by_words)
        call_command("rerankers", "set", server.url, "--model", "words", "--options", "{}")
        said = capsys.readouterr().out
        assert f"{server.url} works: 20 passages in " in said
        assert "On 1 question of default/notes" in said
        assert "hit@1" in said
        call_command("rerankers", "list")
        assert "HttpReranker  words  works, " in capsys.readouterr().out
    values = {name: value for name, (_, value) in read_env_file(env_file).items()}
    assert values == {
        "LOG_LEVEL": "INFO",
        "RERANKER_BACKEND": "inference.backends.rerank_http.HttpReranker",
        "RERANKER_OPTIONS": f'{{"model": "words", "base_url": "{server.url}"}}',
    }
    call_command("rerankers", "unset")
    assert env_file.read_text() == "# ours\nLOG_LEVEL=INFO\n"


def test_reranking_is_switched_off_for_the_site(env_file: Path) -> None:
    call_command("rerankers", "off")
    assert "RERANKER_BACKEND=inference.backends.rerank_basic.NoReranker" in env_file.read_text()
    call_command("rerankers", "unset")
    assert "RERANKER_BACKEND" not in env_file.read_text()


def test_what_is_no_reranker_changes_nothing(env_file: Path, tmp_path: Path) -> None:
    before = env_file.read_text()
    folder = tmp_path / "model"
    with pytest.raises(CommandError, match="hub"):
        call_command("rerankers", "set", "nobody/has-this-model")
    with pytest.raises(CommandError, match="Say with --model"):
        call_command("rerankers", "set", "http://127.0.0.1:9")
    with stub_server() as server:
        server.always(lambda payload: by_words({**payload, "query": "the"}))
        with pytest.raises(CommandError, match="does not put “Alexander"):
            call_command("rerankers", "set", server.url, "--model", "the")
    cross_encoder(folder)
    config = folder / "config.json"
    config.write_text(config.read_text().replace("ForSequenceClassification", "Model"))
    with pytest.raises(CommandError, match="BertModel, which is no reranker"):
        call_command("rerankers", "set", str(folder))
    assert env_file.read_text() == before


def test_one_set_by_hand_that_cannot_be_loaded_ends_with_1_and_the_cure(
    settings: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    backend = "inference.backends.rerank_cross_encoder.CrossEncoderReranker"
    broken = {"BACKEND": backend, "OPTIONS": {"model": str(tmp_path / "nowhere")}}
    settings.INFERENCE = {**settings.INFERENCE, "reranker": {"default": broken}}
    settings.SHARED_MODELS = False
    with pytest.raises(SystemExit, match="1"):
        call_command("rerankers", "list")
    said = capsys.readouterr().out
    assert "CrossEncoderReranker" in said
    assert "nowhere" in said
