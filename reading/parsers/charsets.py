"""Text of unknown encoding: which one decodes it best. Begin with `decode_by_evidence`."""

import codecs
import re
import unicodedata
from collections.abc import Iterable
from contextlib import suppress

_SAMPLE_BYTES = 16 * 1024
_BEYOND_ASCII = re.compile(rb"[\x80-\xff]")
_BETWEEN_WORDS = re.compile(rb"[\s,;:|\"<>]+")
_CANDIDATES = 4
#: What chardet must give another encoding to be believed more than charset-normalizer's choice.
_SECOND_OPINION = 0.1
#: A text in which more of the characters are odd is in no encoding that is known.
_MAX_ODD_SHARE = 0.12
_MAX_ODD_IN_WORDS = 0.05
_ODD_WEIGHT = 10.0

#: In which files are that little speaks for or against.
_PRIOR_OF_WINDOWS = 0.05
_FEW_WORDS = 8
_PRIOR_OF_FEW = 0.2

#: Encodings that say so themselves, by escapes or by sequences that occur in no other.
_SIGNATURES = (
    (re.compile(rb"\x1b\$\)C"), "iso2022_kr", 1),
    (re.compile(rb"\x1b\$(?:[@B]|\([DOPQ])|\x1b\([JI]"), "iso2022_jp_ext", 1),
    (re.compile(rb"~\{(?:[\x21-\x77][\x21-\x7e]){2,}~\}"), "hz", 1),
    (re.compile(rb"~\{(?:[\x21-\x77][\x21-\x7e])+~\}"), "hz", 3),
    (re.compile(rb"[\x81-\xfe][0-9][\x81-\xfe][0-9]"), "gb18030", 2),
    (re.compile(rb"\x8f[\xa1-\xfe]{2}"), "euc_jp", 2),
)


#: What browsers and mail programs read these labels as: mostly the vendor's larger set.
_LARGER_SETS = {
    "iso-8859-1": "cp1252",
    "iso-8859-8-i": "iso-8859-8",
    "iso-8859-8-e": "iso-8859-8",
    "iso-8859-9": "cp1254",
    "tis-620": "cp874",
    "windows-874": "cp874",
    "shift_jis": "cp932",
    "x-sjis": "cp932",
    "gb2312": "gb18030",
    "gbk": "gb18030",
    "x-gbk": "gb18030",
    "euc-kr": "cp949",
    "ks_c_5601-1987": "cp949",
    "big5": "big5hkscs",
    "x-mac-cyrillic": "mac-cyrillic",
    "unicode-1-1-utf-8": "utf-8",
}


def encoding_name(label: str) -> str:
    """Python's name of an encoding; LookupError for one that is unknown."""
    return codecs.lookup(_LARGER_SETS.get(label, label)).name


def decode_by_signature(data: bytes) -> str | None:
    """Text with the escapes of ISO-2022 or HZ, which is valid ASCII, or with long sequences of
    GB 18030 or EUC-JP; None for any other."""
    for pattern, encoding, least in _SIGNATURES:
        if sum(1 for _ in zip(range(least), pattern.finditer(data), strict=False)) == least:
            try:
                return data.decode(encoding)
            except UnicodeDecodeError:
                continue
    return None


def decode_mostly_utf8(data: bytes) -> str | None:
    """UTF-8 with a few bytes of Windows-1252 among it; None if it is not."""
    text = data.decode("utf-8", "surrogateescape")
    stray = len(re.findall("[\udc80-\udcff]", text))
    valid = sum(character > "\x7f" for character in text) - stray
    if not 0 < stray * 4 <= valid:
        return None
    return re.sub("[\udc80-\udcff]", lambda found: _windows(ord(found[0]) - 0xDC00), text)


def decode_by_evidence(data: bytes) -> str | None:
    """Text in the encoding that two detectors propose and whose text looks most like one; None if
    none does."""
    first = _BEYOND_ASCII.search(data)
    if first is None:
        return None
    start = data.rfind(b"\n", 0, first.start()) + 1
    sample = data[start : start + _SAMPLE_BYTES]
    if len(data) > start + len(sample):  # no character is cut at a line's end
        sample = sample[: sample.rfind(b"\n") + 1] or sample
    # A table may have few words with letters beyond ASCII.
    words = b" ".join(_evident_words(sample)) or first[0]
    for evidence in (sample, words):
        ranked = []
        for encoding, confidence in _proposals(evidence):
            text = evidence.decode(encoding, "replace")
            share = odd_characters(text) / max(len(text), 1)
            odd = odd_characters(words.decode(encoding, "replace")) / len(words)
            if share <= _MAX_ODD_SHARE and odd <= _MAX_ODD_IN_WORDS:
                ranked.append((_ODD_WEIGHT * share - confidence, encoding))
        for _, encoding in sorted(ranked):
            with suppress(UnicodeDecodeError):
                return data.decode(encoding)
    return None


def _evident_words(sample: bytes) -> list[bytes]:
    return [word for word in _BETWEEN_WORDS.split(sample) if not word.isascii()]


def _proposals(sample: bytes) -> Iterable[tuple[str, float]]:
    """Encodings and how sure the detectors are of them."""
    import chardet  # noqa: PLC0415 (0.1 s both, and most texts are UTF-8)
    import charset_normalizer  # noqa: PLC0415

    eras = chardet.EncodingEra.ALL & ~chardet.EncodingEra.MAINFRAME
    found = chardet.detect_all(sample, encoding_era=eras)[:_CANDIDATES]
    names = {
        encoding_name(each["encoding"].lower()): each["confidence"]
        for each in reversed(found)
        if each["encoding"]
    }
    best = charset_normalizer.from_bytes(sample).best()
    if best is not None:
        names.setdefault(best.encoding, _SECOND_OPINION)
    few = max(0.0, 1 - len(set(_evident_words(sample))) / _FEW_WORDS)
    names["cp1252"] = names.get("cp1252", 0.0) + _PRIOR_OF_WINDOWS + few * _PRIOR_OF_FEW
    return names.items()


def _windows(byte: int) -> str:
    return bytes([byte]).decode("cp1252", "replace")


_SCRIPTS = re.compile(
    "(?P<L>[A-Za-z\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u017e\u01a0\u01a1\u01af\u01b0\u0218-\u021b\u1e00-\u1eff])"
    "|(?P<G>[\u0370-\u03ff])|(?P<C>[\u0400-\u052f])|(?P<H>[\u0590-\u05ff])|(?P<A>[\u0600-\u06ff])"
    "|(?P<T>[\u0e00-\u0e7f])|(?P<K>[\uac00-\ud7a3])|(?P<J>[\u3040-\u30ff\u3400-\u9fff])"
)
_USUAL = frozenset(
    "–—€£§°©®™„“”‘’«»‹›…•·№、。，；：！？「」『』（）％¿¡・´\u00a0\u200c\u200e\u200f\u3000\u2028"
)


#: After a letter and before one.
_SIGN_IN_WORD = re.compile(r"(?<=[^\W\d_])[«»‹›„“”¿¡…•·§®©™°£€\u00a0](?=[^\W\d_])")


def odd_characters(text: str) -> float:
    """How many characters a writer would not have put there: letters of two scripts or capitals
    within a word, symbols, halves of kana."""
    odd = 2.0 * len(_SIGN_IN_WORD.findall(text))
    before, script_before = "", ""
    for character in text:
        script = ""
        if found := _SCRIPTS.match(character):
            script = found.lastgroup or ""
            is_mixed = script_before and script != script_before
            if is_mixed or (before.islower() and character.isupper()):
                odd += 1
        elif character.isalpha():
            odd += 2.5 if "\uff61" <= character <= "\uff9f" else 2
        elif not character.isascii() and character not in _USUAL:
            odd += 0 if unicodedata.category(character) in {"Mn", "Mc"} else 2
        elif character.isascii() and not character.isprintable() and not character.isspace():
            odd += 2
        before, script_before = character, script
    return odd
