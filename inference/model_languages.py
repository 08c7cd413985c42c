"""Which languages a model was made for: as its entry of INFERENCE says in LANGUAGES, or known by
its name. Begin with `is_made_for`. `supersedes` knows the bundled models of old releases.
"""

import re
from typing import Any

from django.conf import settings

#: In LANGUAGES: made for many languages, so for any text.
EVERY = "*"
_EVERY = frozenset({EVERY})
_ENGLISH = frozenset({"en"})

#: Patterns of names, without their maker, and what their cards say. The first that fits counts.
_KNOWN: tuple[tuple[str, frozenset[str]], ...] = (
    (r".*multilingual.*", _EVERY),
    (r"bge-m3|labse|qwen3-embedding.*|embeddinggemma.*|distiluse-base-multilingual.*", _EVERY),
    (r"text-embedding-(?:3-.*|ada-002)|gemini-embedding.*|voyage-(?!code|law).*", _EVERY),
    (r"nomic-embed-text-v2.*|snowflake-arctic-embed(?:-[ml])?[-.]?(?:v2|2).*", _EVERY),
    (r"jina-embeddings-v[3-9].*|cohere-embed.*|granite-embedding.*-multi.*", _EVERY),
    (r"jina-embeddings-v2-.*-de|gte-de.*", frozenset({"de", "en"})),
    (r"jina-embeddings-v2-.*-es", frozenset({"es", "en"})),
    (r"jina-embeddings-v2-.*-zh", frozenset({"zh", "en"})),
    (r"bge-(?:small|base|large)-zh.*", frozenset({"zh"})),
    (r"all-(?:minilm|mpnet|distilroberta|roberta).*|multi-qa-.*|paraphrase-(?:minilm|mpnet).*",
     _ENGLISH),
    (r"(?:bge|e5|gte)-(?:small|base|large)(?:-en)?(?:-?v?[\d.]+)?|gte-modernbert.*", _ENGLISH),
    (r"nomic-embed-text.*|mxbai-embed.*|snowflake-arctic-embed.*", _ENGLISH),
    (r"jina-embeddings-v[12].*|granite-embedding.*|static-retrieval-mrl-en.*", _ENGLISH),
    (r"answerai-colbert-small.*", _ENGLISH),
    # Rerankers.
    (r"mmarco.*|bge-reranker-v2-.*|jina-reranker-(?:v[2-9]|m0).*|qwen3-reranker.*", _EVERY),
    (r"rerank-v(?:3\.5|[4-9]).*", _EVERY),
    (r"bge-reranker-(?:base|large)", frozenset({"zh", "en"})),
    (r"(?:ms-marco|mxbai-rerank|jina-reranker-v1|gte-reranker|rerank-english)-.*", _ENGLISH),
)  # fmt: skip
#: Bundled models of earlier releases, and the one that finds more in the same languages
#: (docs/decisions/0079).
_SUPERSEDED_BY = {"all-minilm-l6-v2": "bge-small-en-v1.5"}
_PATTERNS = tuple((re.compile(pattern), languages) for pattern, languages in _KNOWN)


def known_languages(model_name: str) -> frozenset[str]:
    """ISO codes by the name of a model, `EVERY` for many; empty for an unknown model."""
    name = _short_name(model_name)
    return next((found for pattern, found in _PATTERNS if pattern.fullmatch(name)), frozenset())


def supersedes(new: str, old: str) -> bool:
    """Whether the bundled model `new` finds more than `old`, which an earlier release came with."""
    return _SUPERSEDED_BY.get(_short_name(old)) == _short_name(new)


def _short_name(model_name: str) -> str:
    """Without its maker and its tag."""
    return model_name.rpartition("/")[2].partition(":")[0].lower()


def given_languages(kind: str, alias: str) -> frozenset[str]:
    """ISO codes that a model's entry of INFERENCE has in LANGUAGES; empty without."""
    given = settings.INFERENCE.get(kind, {}).get(alias, {}).get("LANGUAGES", ())
    return frozenset(code.strip().lower() for code in given)


def model_languages(alias: str, model_name: str) -> frozenset[str]:
    """ISO codes of the languages that an embedder was made for; empty where nobody says."""
    return given_languages("embedder", alias) or known_languages(model_name)


def is_made_for(languages: frozenset[str], language: str) -> bool:
    """Whether a model of these languages was made for an ISO code such as `de` or `de-CH`. True
    where either is unknown, so that no warning appears."""
    code = language.lower().replace("_", "-").partition("-")[0]
    return not languages or not code or EVERY in languages or code in languages


def is_list_of_codes(value: Any) -> bool:
    """Whether it can be LANGUAGES: a list of ISO codes, or of `EVERY` alone."""
    return isinstance(value, list) and all(
        isinstance(code, str) and re.fullmatch(r"\*|[A-Za-z]{2,3}", code) for code in value
    )
