"""Questions about a whole document, such as “What is handbook.docx about?”, “Fasse das Protokoll
zusammen” or “¿De qué trata el contrato?”. Begin with `whole_document_question`. Without Django."""

import re
from typing import Literal

WholeKind = Literal["about", "summary"]

#: Longer messages ask for more than that.
MAX_CHARACTERS = 200

_NAME = r"(?P<name>.+?)"
_POLITE = r"(?:(?:please|bitte|por favor|can you|could you|kannst du|können sie|puedes)[\s,]+)*"
_PATTERNS: tuple[tuple[WholeKind, str], ...] = (
    ("about", rf"(?:tell me )?what(?:['’]s| is| are) {_NAME} (?:all )?about"),
    ("about", rf"what does {_NAME} (?:deal with|cover)"),
    ("about", rf"(?:worum|um was) (?:geht|dreht) es (?:sich )?(?:in|im|bei|beim) {_NAME}"),
    ("about", rf"(?:wovon|von was) handelt {_NAME}"),
    ("about", rf"(?:de|sobre) qu[eé] (?:trata|tratan|va|van|habla|hablan) {_NAME}"),
    ("summary", rf"(?:summari[sz]e|sum up|tl;?dr(?: of| for|:)?) {_NAME}"),
    ("summary", rf"(?:(?:give|write) me )?(?:an? |the )?(?:short )?summary of {_NAME}"),
    (
        "summary",
        rf"fass(?:e|t|en sie)?(?: mir)? {_NAME}(?: bitte)?(?: (?:kurz|knapp))? zusammen",
    ),
    (
        "summary",
        r"(?:gib mir )?(?:eine |die )?(?:kurze )?zusammenfassung"
        rf" (?:von|vom|des|der|zu|zum) {_NAME}",
    ),
    ("summary", rf"(?:resume|resúmeme|resuma|resumir) {_NAME}"),
    ("summary", rf"(?:haz(?:me)? |dame )?(?:un |el )?resumen (?:de|del) {_NAME}"),
)
_QUESTIONS = [
    (kind, re.compile(rf"{_POLITE}{pattern}(?: (?:please|bitte|por favor))?", re.IGNORECASE))
    for kind, pattern in _PATTERNS
]
_BEFORE_NAME = re.compile(
    r"(?:(?:the|this|that|my|our|der|die|das|den|dem|diese[smnr]?|mein\w{0,2}|unser\w{0,2}|el|la|los"
    r"|las|este|esta|mi|nuestr[oa]|document|file|paper|dokument|datei|documento|archivo|fichero)"
    r"\s+)+",
    re.IGNORECASE,
)
_AFTER_NAME = re.compile(
    r"\s+(?:document|file|dokument|datei|documento|archivo|fichero)$", re.IGNORECASE
)
_QUOTES = "\"'“”„«»‘’` "


def whole_document_question(message: str) -> tuple[WholeKind, str] | None:
    """What is asked of a whole document, and the name by which it is called; None for any other
    question."""
    if len(message) > MAX_CHARACTERS:
        return None
    asked = " ".join(message.split()).strip("¿?¡!. ")
    for kind, pattern in _QUESTIONS:
        if match := pattern.fullmatch(asked):
            name = _BEFORE_NAME.sub("", match["name"], count=1) if match["name"] else ""
            name = _AFTER_NAME.sub("", name.strip(_QUOTES)).strip(_QUOTES)
            return (kind, name) if len(name) > 1 else None
    return None
