"""Languages: ISO codes, PostgreSQL's text search configurations, and telling one from the text."""

from functools import cache, lru_cache
from typing import Any

from django.db import connection

from common.spaceless import BURMESE, HAN, HANGUL, KANA, KHMER, LAO, THAI, compiled

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
#: Where the script alone tells: a sentence, and most of the letters.
MINIMUM_OF_SCRIPT = 20
#: More than a name in kana: Japanese, which without any is no more than a heading.
SHARE_OF_KANA = 0.15
SCRIPTS = {
    code: f"[{letters}]"
    for code, letters in {
        "ko": HANGUL,
        "th": THAI,
        "lo": LAO,
        "km": KHMER,
        "my": BURMESE,
        "el": r"\u0370-\u03ff\u1f00-\u1fff",
        "hy": r"\u0531-\u0587",
        "ka": r"\u10a0-\u10ff\u1c90-\u1cbf",
        "ta": r"\u0b82-\u0bcd",
    }.items()
}
_HAN = f"[{HAN}]"
_KANA = f"[{KANA}]"
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


#: So many bytes back reach the longest of langid's n-grams.
LONGEST_NGRAM = 6


@lru_cache(maxsize=1)
def _identifier() -> Any:
    import numpy as np  # noqa: PLC0415 (0.1 s)
    from py3langid.langid import MODEL_DIR, MODEL_FILE, LanguageIdentifier  # noqa: PLC0415 (0.5 s)

    class Identifier(LanguageIdentifier):
        """Walks its automaton from all places of a text at once: ten times as fast as byte by
        byte. The state behind a byte depends on no more than the longest n-gram before it."""

        def _raw_score(self, text: bytes) -> Any:
            letters = np.frombuffer(text, dtype=np.uint8)
            states = np.zeros(len(letters), dtype=np.intp)
            for back in range(min(LONGEST_NGRAM, len(letters)) - 1, -1, -1):
                places = rows[states[back:]]
                places += letters[: len(letters) - back]
                states[back:] = moves[places]
            features = found[states]
            features = features[features >= 0]
            if not len(features):
                return super()._raw_score(text)
            features.sort()  # and counted: np.unique does the same, in three times as long
            ends = np.flatnonzero(np.append(features[1:] != features[:-1], True))
            counts = np.diff(ends, prepend=-1).astype(np.float32)
            return np.log1p(counts) @ weights[features[ends]] + self.nb_pc

    identifier = Identifier.from_modelpath(MODEL_DIR / MODEL_FILE, norm_probs=True)
    known = set(identifier.labels)
    identifier.set_languages(sorted(known & {*CONFIGURATIONS, *OTHERS}))
    moves = np.asarray(identifier.tk_nextmove)
    rows = np.asarray(identifier.tk_row, dtype=np.intp) << 8
    found = np.asarray(identifier.tk_output, dtype=np.intp)
    weights = np.ascontiguousarray(identifier.nb_ptc)
    return identifier


def detect_language(text: str, *, default: str = "") -> str:
    """ISO code of the language that `text` is in, or `default` where that is not sure.

    Judged by the first 4,000 characters. A script that one language has tells it alone; else
    langid's naive Bayes over byte n-grams (Lui and Baldwin, 2012), as retrained by py3langid.
    """
    sample = text[:SAMPLE_CHARACTERS]
    letters = sum(map(str.isalpha, sample))
    if not sample.isascii() and (code := _told_by_script(sample, letters)):
        return code
    if letters < MINIMUM_CHARACTERS:
        return default
    code, probability = _identifier().classify(sample)
    return str(code) if probability >= MINIMUM_PROBABILITY else default


def _told_by_script(sample: str, letters: int) -> str:
    """The language whose script most of the letters are of, or nothing."""
    enough = max(MINIMUM_OF_SCRIPT, letters // 2 + 1)
    kana = len(compiled(_KANA).findall(sample))
    both = kana + len(compiled(_HAN).findall(sample))
    if both >= enough:
        return "ja" if kana > SHARE_OF_KANA * both else "zh"
    for code, script in SCRIPTS.items():
        if len(compiled(script).findall(sample)) >= enough:
            return code
    return ""
