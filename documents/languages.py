"""Languages: ISO codes, PostgreSQL's text search configurations, and language detection."""

from functools import cache
from typing import Any

from django.conf.locale import LANG_INFO
from django.db import connection
from django.utils.translation import get_language_info
from django.utils.translation import gettext as _

from common.text import BURMESE, HAN, HANGUL, KANA, KHMER, LAO, THAI, cached_pattern
from inference.local.model_folder import LazyModel

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
#: Detected only so that their texts are not taken for one of the languages above.
DETECTED_ONLY = ("zh", "ja", "ko", "th", "pl", "cs", "uk", "bg", "he", "fa", "vi", "hr", "sk", "sl")
FALLBACK = "simple"

#: Shorter texts are not detected: chat turns and titles were wrong one time in five.
MIN_DETECTION_CHARACTERS = 60
MIN_DETECTION_PROBABILITY = 0.95
#: Letters of one script needed to decide by the script alone: a sentence, most of its letters.
MIN_SCRIPT_CHARACTERS = 20
#: More than a name in kana: Japanese, which without any is no more than a heading.
MIN_KANA_SHARE = 0.15
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
    """The server's text search configurations by name, with the oids that binary COPY needs."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT cfgname, oid::int FROM pg_ts_config WHERE pg_ts_config_is_visible(oid)"
        )
        return dict(cursor.fetchall())


def configuration(code: str) -> str:
    """The text search configuration for an ISO code such as `de` or `de-CH`; `simple` for unknown
    codes and for those that an older server lacks."""
    name = CONFIGURATIONS.get(code.lower().replace("_", "-").split("-")[0], FALLBACK)
    return name if name in configuration_oids() else FALLBACK


def language_name(code: str) -> str:
    """“German” for `de`, in the language of the page; the code itself where it has no name here."""
    if code == "zh":  # which Django knows by its scripts only
        return _("Chinese")
    return str(get_language_info(code)["name_translated"]) if code in LANG_INFO else code


#: Length in bytes of langid's longest n-gram.
LONGEST_NGRAM = 6


def _load_identifier() -> Any:
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
                return np.zeros(len(self.nb_classes), dtype=np.float32)
            features.sort()  # and counted: np.unique does the same, in three times as long
            ends = np.flatnonzero(np.append(features[1:] != features[:-1], True))
            counts = np.diff(ends, prepend=-1).astype(np.float32)
            return np.log1p(counts) @ weights[features[ends]] + self.nb_pc

    identifier = Identifier.from_modelpath(MODEL_DIR / MODEL_FILE, norm_probs=True)
    known = set(identifier.labels)
    identifier.set_languages(sorted(known & {*CONFIGURATIONS, *DETECTED_ONLY}))
    moves = np.asarray(identifier.tk_nextmove)
    rows = np.asarray(identifier.tk_row, dtype=np.intp) << 8
    found = np.asarray(identifier.tk_output, dtype=np.int32)
    weights = np.ascontiguousarray(identifier.nb_ptc)
    # What only the library's own walk and its further languages need: 50 MB.
    identifier.nb_ptc, identifier._full_model = weights, ()
    identifier._rowbase = identifier.tk_output = identifier.tk_row = ()
    return identifier


#: 47 MB, loaded with the first text.
_identifier = LazyModel(_load_identifier)


def release_idle(seconds: float) -> bool:
    """Whether the detector was loaded, not used for so long, and is forgotten until the next
    text."""
    return _identifier.release_idle(seconds)


def detect_language(text: str, *, default: str = "") -> str:
    """ISO code of the language of `text`, or `default` if detection is not certain.

    Uses the first 4,000 characters. A script that only one language uses decides alone; else
    langid's naive Bayes over byte n-grams (Lui and Baldwin, 2012), as retrained by py3langid.
    """
    sample = text[:SAMPLE_CHARACTERS]
    letters = sum(map(str.isalpha, sample))
    if not sample.isascii() and (code := _language_of_script(sample, letters)):
        return code
    if letters < MIN_DETECTION_CHARACTERS:
        return default
    code, probability = _identifier().classify(sample)
    return str(code) if probability >= MIN_DETECTION_PROBABILITY else default


def _language_of_script(sample: str, letter_count: int) -> str:
    """The language whose script most of the letters belong to, or empty."""
    enough = max(MIN_SCRIPT_CHARACTERS, letter_count // 2 + 1)
    kana = len(cached_pattern(_KANA).findall(sample))
    both = kana + len(cached_pattern(_HAN).findall(sample))
    if both >= enough:
        return "ja" if kana > MIN_KANA_SHARE * both else "zh"
    for code, script in SCRIPTS.items():
        if len(cached_pattern(script).findall(sample)) >= enough:
            return code
    return ""
