"""What a mail says itself: `fold_quotes` leaves out the mails that it answers and shortens
signatures."""

import re

#: Lines that are kept of a signature, which is none if it has more than 25.
SIGNATURE_LINES = 4
MAX_SIGNATURE_LINES = 25
#: Characters that are kept of a quoted passage with an answer below.
QUOTE_CHARACTERS = 120
_MAX_LINE = 500
_QUOTED = re.compile(r" {0,3}>")
_QUOTE_MARKS = re.compile(r"[\s>]+")
_WROTE = re.compile(
    r"(?:wrote|writes|schrieb(?:en)?|escribió|a écrit|ha scritto|schreef|escreveu|skrev|napisał)"
    r"\b[^:]{0,120}:\W*$",
    re.I,
)
_ORIGINAL = re.compile(
    r"\W*-{2,} ?(?:original message|original appointment|urspr\w+ nachricht|original-nachricht"
    r"|mensaje original|message d.origine|messaggio originale|oorspronkelijk bericht) ?-{2,}\W*$",
    re.I,
)
_FROM_LINE = re.compile(r"\W{0,4}(?:from|von|de|da|van|från)\W{0,4}:", re.I)
_SENT_LINE = re.compile(
    r"\W{0,4}(?:sent|date|gesendet|datum|enviado(?: el)?|fecha|envoyé|inviato|data"
    r"|verzonden|skickat)\W{0,4}:",
    re.I,
)


def fold_quotes(text: str) -> str:
    """The text without the mails quoted at its end; of one quoted above an answer, or by
    nobody, the first words stay. A text that has nothing else is returned as it is."""
    lines = text.split("\n")
    end = next((at for at in range(len(lines)) if _begins_original(lines, at)), len(lines))
    if end < len(lines) and "".join(lines[:end]).strip():
        lines = lines[:end]
    kept: list[str] = []
    at = 0
    while at < len(lines):
        if not _QUOTED.match(lines[at]):
            kept.append(lines[at])
            at += 1
            continue
        start = at
        while at < len(lines):
            following = lines[at + 1] if at + 1 < len(lines) else ""
            is_gap = not lines[at].strip() and _QUOTED.match(following)
            if not _QUOTED.match(lines[at]) and not is_gap:
                break
            at += 1
        below = next((line.strip() for line in lines[at:] if line.strip()), "--")
        is_answered = below not in {"--", "\\--"}  # by more than a signature
        if is_answered or not _drop_attribution(kept):
            words = _QUOTE_MARKS.sub(" ", " ".join(lines[start : min(at, start + 5)])).strip()
            short = words[:QUOTE_CHARACTERS].rstrip()
            kept += [f"> {short}{' …' if len(short) < len(words) or at > start + 5 else ''}", ""]
    folded = "\n".join(_shorten_signature(kept)).strip()
    return folded or text


def _begins_original(lines: list[str], at: int) -> bool:
    """Whether the mail that is answered begins here, with a line or the head that Outlook gives."""
    line = lines[at][:_MAX_LINE]
    if _ORIGINAL.match(line):
        return True
    below = [each[:_MAX_LINE] for each in lines[at + 1 : at + 5] if each.strip()]
    return bool(_FROM_LINE.match(line)) and any(_SENT_LINE.match(each) for each in below[:3])


def _drop_attribution(lines: list[str]) -> bool:
    """Remove the line, or two, that says who wrote what is quoted; False if there is none."""
    while lines and not lines[-1].strip():
        lines.pop()
    for count in range(1, min(len(lines), 3) + 1):
        begins = count in (3, len(lines)) or not lines[-count - 1].strip()
        if begins and _WROTE.search(" ".join(lines[-count:])[:_MAX_LINE]):
            del lines[-count:]
            return True
    return False


def _shorten_signature(lines: list[str]) -> list[str]:
    for at, line in enumerate(lines):
        if line.strip() in {"--", "\\--"} and len(lines) - at > SIGNATURE_LINES:
            signature = [each for each in lines[at + 1 :] if each.strip()]
            if len(signature) > MAX_SIGNATURE_LINES:
                continue  # it only divides the text
            return [*lines[:at], *signature[:SIGNATURE_LINES]]
    return lines
