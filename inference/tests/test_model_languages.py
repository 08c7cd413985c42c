"""Which languages a model was made for, by its name."""

import pytest

from inference.model_languages import is_made_for, known_languages


@pytest.mark.parametrize(
    ("name", "languages"),
    [
        ("ms-marco-MiniLM-L12-v2", {"en"}),
        ("cross-encoder/mmarco-mMiniLMv2-L12-H384-v1", {"*"}),
        ("BAAI/bge-reranker-v2-m3", {"*"}),
        ("BAAI/bge-reranker-base", {"zh", "en"}),
        ("bge-small-en-v1.5", {"en"}),
        ("answerai-colbert-small-v1", {"en"}),
        ("our-own", set()),
    ],
)
def test_a_model_is_known_by_its_name(name: str, languages: set[str]) -> None:
    assert known_languages(name) == languages


def test_what_nobody_knows_is_no_reason_to_leave_a_text_out() -> None:
    assert not is_made_for(known_languages("ms-marco-MiniLM-L12-v2"), "de-CH")
    assert is_made_for(known_languages("our-own"), "de")
