"""Which languages a model was made for, by its name."""

import pytest

from inference.model_languages import is_made_for, known_languages


@pytest.mark.parametrize(
    ("name", "languages"),
    [
        ("all-MiniLM-L6-v2", {"en"}),
        ("sentence-transformers/all-mpnet-base-v2", {"en"}),
        ("BAAI/bge-small-en-v1.5", {"en"}),
        ("answerai-colbert-small-v1", {"en"}),
        ("intfloat/e5-base-v2", {"en"}),
        ("nomic-embed-text:latest", {"en"}),
        ("snowflake-arctic-embed", {"en"}),
        ("jinaai/jina-embeddings-v2-base-de", {"de", "en"}),
        ("multilingual-e5-small", {"*"}),
        ("Qwen/Qwen3-Embedding-0.6B", {"*"}),
        ("text-embedding-3-small", {"*"}),
        ("snowflake-arctic-embed2", {"*"}),
        ("cross-encoder/ms-marco-MiniLM-L12-v2", {"en"}),
        ("cross-encoder/mmarco-mMiniLMv2-L12-H384-v1", {"*"}),
        ("BAAI/bge-reranker-v2-m3", {"*"}),
        ("BAAI/bge-reranker-base", {"zh", "en"}),
        ("jinaai/jina-reranker-v2-base-multilingual", {"*"}),
        ("Qwen/Qwen3-Reranker-0.6B", {"*"}),
        ("our-own-model", set()),
    ],
)
def test_a_model_is_known_by_its_name(name: str, languages: set[str]) -> None:
    assert known_languages(name) == languages


def test_what_nobody_knows_is_no_reason_to_leave_a_text_out() -> None:
    assert not is_made_for(known_languages("ms-marco-MiniLM-L12-v2"), "de-CH")
    assert is_made_for(known_languages("our-own"), "de")
