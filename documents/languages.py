"""Languages: ISO codes, PostgreSQL's text search configurations, and telling one from the text."""

from functools import cache, lru_cache
from typing import Any

from django.db import connection

#: ISO 639-1 code → the snowball configuration of PostgreSQL 18 (`\\dF`); others use `simple`.
CONFIGURATIONS = {
    "ar": "arabic",
    "hy": "armenian",
    "eu": "basque",
    "ca": "catalan",
    "da": "danish",
    "nl": "dutch",
    "en": "english",
    "et": "estonian",
    "fi": "finnish",
    "fr": "french",
    "de": "german",
    "el": "greek",
    "hi": "hindi",
    "hu": "hungarian",
    "id": "indonesian",
    "ga": "irish",
    "it": "italian",
    "lt": "lithuanian",
    "ne": "nepali",
    "no": "norwegian",
    "nb": "norwegian",
    "nn": "norwegian",
    "pt": "portuguese",
    "ro": "romanian",
    "ru": "russian",
    "sr": "serbian",
    "es": "spanish",
    "sv": "swedish",
    "ta": "tamil",
    "tr": "turkish",
    "yi": "yiddish",
}
#: Told apart from the languages above, so that their texts are not taken for one of those.
OTHERS = ("zh", "ja", "ko", "th", "pl", "cs", "uk", "bg", "he", "fa", "vi", "hr", "sk", "sl")
FALLBACK = "simple"

#: Shorter texts say too little: chat turns and titles were told wrong one time in five.
MINIMUM_CHARACTERS = 60
MINIMUM_PROBABILITY = 0.95
SAMPLE_CHARACTERS = 4000


@cache
def configuration_oids() -> dict[str, int]:
    """The server's text search configurations by name, with the oids that binary COPY writes."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT cfgname, oid::int FROM pg_ts_config WHERE pg_ts_config_is_visible(oid)"
        )
        return dict(cursor.fetchall())


def configuration(code: str) -> str:
    """The text search configuration for an ISO code such as `de` or `de-CH`; unknown → `simple`.

    An older server that lacks one gets `simple` too.
    """
    name = CONFIGURATIONS.get(code.lower().replace("_", "-").split("-")[0], FALLBACK)
    return name if name in configuration_oids() else FALLBACK


@lru_cache(maxsize=1)
def _identifier() -> Any:
    from py3langid.langid import MODEL_DIR, MODEL_FILE, LanguageIdentifier  # noqa: PLC0415 (0.5 s)

    identifier = LanguageIdentifier.from_modelpath(MODEL_DIR / MODEL_FILE, norm_probs=True)
    known = set(identifier.labels)
    identifier.set_languages(sorted(known & {*CONFIGURATIONS, *OTHERS}))
    return identifier


def detect_language(text: str, *, default: str = "") -> str:
    """ISO code of the language that `text` is in, or `default` where that is not sure.

    Judged by the first 4,000 characters. Source: langid's naive Bayes over byte n-grams
    (Lui and Baldwin, 2012), as retrained by py3langid.
    """
    sample = text[:SAMPLE_CHARACTERS]
    if sum(map(str.isalpha, sample)) < MINIMUM_CHARACTERS:
        return default
    code, probability = _identifier().classify(sample)
    return str(code) if probability >= MINIMUM_PROBABILITY else default
