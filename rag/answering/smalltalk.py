"""What is said to a person and asks nothing: greetings, thanks, farewells. Pure."""

import re
import unicodedata

from rag.answering.wording import Sentence, say

#: Nobody greets in more words than this.
MOST_CHARACTERS = 80

_KINDS: dict[Sentence, dict[str, str]] = {
    "greeting": {
        "en": "hi|hello|hey|hiya|howdy|greetings|good (?:morning|afternoon|evening|day)"
        "|how are you|how do you do|what'?s up|(?:hi|hello|hey) there",
        "de": "hallo|servus|moin|grüß (?:gott|dich)|guten (?:morgen|tag|abend)|guten morgen"
        "|wie geht(?:'s| es dir| es ihnen)?",
        "es": "hola|buenos días|buenas(?: tardes| noches)?|qué tal|cómo estás",
        "fr": "bonjour|bonsoir|salut|coucou|ça va|comment allez-vous",
        "it": "ciao|buongiorno|buonasera|salve|come stai|come va",
        "pt": "olá|oi|bom dia|boa tarde|boa noite|tudo bem",
        "nl": "hoi|goedemorgen|goedemiddag|goedenavond|goedendag|hoe gaat het",
    },
    "thanks": {
        "en": "thanks|thank you|thx|ty|cheers|much appreciated|great|perfect|awesome|nice|cool|ok"
        "|okay|got it|i see|understood|thanks a lot|many thanks|thank you (?:so|very) much"
        "|that helps?|well done",
        "de": "danke|dankeschön|danke (?:schön|sehr)|vielen dank|besten dank|super|prima"
        "|alles klar|verstanden",
        "es": "gracias|muchas gracias|perfecto|genial|vale|entendido",
        "fr": "merci|merci beaucoup|parfait|super|d'accord|compris",
        "it": "grazie|grazie mille|perfetto|va bene|capito",
        "pt": "obrigado|obrigada|muito obrigad[oa]|perfeito|entendi|valeu",
        "nl": "dank je|dank u|dankjewel|bedankt|begrepen",
    },
    "farewell": {
        "en": "bye|goodbye|good bye|bye bye|see you|see you later|good night|cya|farewell",
        "de": "tschüss|tschüß|auf wiedersehen|bis (?:bald|später|dann)|gute nacht",
        "es": "adiós|hasta luego|hasta mañana|chao|buenas noches",
        "fr": "au revoir|à bientôt|à plus|bonne nuit",
        "it": "arrivederci|a presto|buonanotte",
        "pt": "tchau|adeus|até logo|até amanhã",
        "nl": "tot ziens|doei|dag|welterusten",
    },
    "self": {
        "en": "who are you|what are you|what can you do|help|how can you help(?: me)?"
        "|what do you do|are you (?:a )?(?:bot|robot|human|ai)",
        "de": "wer bist du|was bist du|was kannst du|wer sind sie|was können sie|hilfe",
        "es": "quién eres|qué eres|qué puedes hacer|ayuda",
        "fr": "qui es-tu|qui êtes-vous|que peux-tu faire|que pouvez-vous faire|aide",
        "it": "chi sei|cosa sei|cosa sai fare|cosa puoi fare|aiuto",
        "pt": "quem é você|o que você pode fazer|o que você faz|ajuda",
        "nl": "wie ben je|wat ben je|wat kun je|hulp",
    },
}
_BESIDE = (
    "there|all|everyone|everybody|team|friend|again|so much|a lot|very much|mate|bot|assistant"
    "|zusammen|leute|amigo|amigos|tous|tutti|and|und|y|et|e|en|you|today|dear|please|very|then|for"
    "|your|the|help|answer|information|info|that|this|it|is|was|really|so|thanks|ist|das"
)
#: Each way to say it by itself, so that the longest can be taken.
_PATTERNS = [
    (kind, language, re.compile(rf"(?:{words})(?=$|\s)"))
    for kind, by_language in _KINDS.items()
    for language, all_words in by_language.items()
    for words in re.split(r"\|(?![^(]*\))", all_words)
]
_BESIDE_WORD = re.compile(rf"(?:{_BESIDE})(?=$|\s)")
_NO_WORD = re.compile(r"[^\w\s'’-]+")


def small_talk(message: str, *, language: str = "") -> str | None:
    """What to say to a message that asks for nothing in any document; None for all others.

    The answer is in the language of the message.
    """
    said = _NO_WORD.sub(" ", unicodedata.normalize("NFC", message).casefold()).replace("’", "'")
    said = " ".join(said.split())
    if not said or len(message) > MOST_CHARACTERS:
        return None
    first: tuple[Sentence, str] | None = None
    rest = said
    while rest:
        kind, spoken, end = _next(rest)
        if not end:
            return None
        if kind and (first is None or (first[0] == "greeting" and kind == "self")):
            first = (kind, spoken)
        elif not kind and first is None:
            return None
        rest = rest[end:].lstrip()
    return say(first[0], first[1] or language) if first else None


def _next(rest: str) -> tuple[Sentence | None, str, int]:
    """What the text begins with: its kind and language, and where it ends; 0 for something else."""
    found = [
        (match.end(), kind, language)
        for kind, language, pattern in _PATTERNS
        if (match := pattern.match(rest))
    ]
    if found:
        end, kind, language = max(found, key=lambda each: each[0])
        return kind, language, end
    beside = _BESIDE_WORD.match(rest)
    return None, "", beside.end() if beside else 0
