"""The fixed sentences the site itself says (refusals, greetings), by language, and small-talk
detection. Begin with `say` and `small_talk`. Without Django.
"""

import re
import unicodedata
from collections.abc import Mapping
from typing import Literal

Sentence = Literal["not_found", "quotes", "remembered", "greeting", "thanks", "farewell", "self"]

#: Used for languages without sentences of their own.
FALLBACK_LANGUAGE = "en"

_SENTENCES: Mapping[str, Mapping[Sentence, str]] = {
    "en": {
        "not_found": "The sources do not say: nothing that was found answers this question.",
        "quotes": "Quoted from the sources:",
        "remembered": "What I remember of you:",
        "greeting": "Hello! Ask me something, and I will look for the answer in your documents.",
        "thanks": "You are welcome. Is there anything else to look up?",
        "farewell": "Goodbye!",
        "self": "I look for answers in your documents and quote them, each with its source.",
    },
    "de": {
        "not_found": "Davon steht nichts in den Quellen: Nichts Gefundenes beantwortet die Frage.",
        "quotes": "Aus den Quellen zitiert:",
        "remembered": "Was ich von dir weiß:",
        "greeting": "Hallo! Stell mir eine Frage, und ich suche die Antwort in den Dokumenten.",
        "thanks": "Gern geschehen. Soll ich noch etwas nachschlagen?",
        "farewell": "Auf Wiedersehen!",
        "self": "Ich suche Antworten in den Dokumenten und zitiere sie mit ihrer Quelle.",
    },
    "es": {
        "not_found": "Las fuentes no lo dicen: nada de lo encontrado responde a la pregunta.",
        "quotes": "Citado de las fuentes:",
        "remembered": "Lo que recuerdo de ti:",
        "greeting": "¡Hola! Haz una pregunta y buscaré la respuesta en los documentos.",
        "thanks": "De nada. ¿Busco algo más?",
        "farewell": "¡Hasta luego!",
        "self": "Busco respuestas en los documentos y las cito con su fuente.",
    },
    "fr": {
        "not_found": "Les sources ne le disent pas : rien de trouvé ne répond à la question.",
        "quotes": "Cité des sources :",
        "remembered": "Ce que je retiens de vous :",
        "greeting": "Bonjour ! Posez une question, je chercherai la réponse dans les documents.",
        "thanks": "Avec plaisir. Faut-il chercher autre chose ?",
        "farewell": "Au revoir !",
        "self": "Je cherche des réponses dans les documents et je les cite avec leur source.",
    },
    "it": {
        "not_found": "Le fonti non lo dicono: nulla di quanto trovato risponde alla domanda.",
        "quotes": "Citato dalle fonti:",
        "remembered": "Quello che ricordo di te:",
        "greeting": "Ciao! Fai una domanda e cercherò la risposta nei documenti.",
        "thanks": "Prego. Devo cercare altro?",
        "farewell": "Arrivederci!",
        "self": "Cerco risposte nei documenti e le cito con la loro fonte.",
    },
    "pt": {
        "not_found": "As fontes não o dizem: nada do que foi encontrado responde à pergunta.",
        "quotes": "Citado das fontes:",
        "remembered": "O que me lembro de si:",
        "greeting": "Olá! Faça uma pergunta e procurarei a resposta nos documentos.",
        "thanks": "De nada. Procuro mais alguma coisa?",
        "farewell": "Até logo!",
        "self": "Procuro respostas nos documentos e cito-as com a sua fonte.",
    },
    "nl": {
        "not_found": "De bronnen zeggen het niet: niets wat is gevonden beantwoordt de vraag.",
        "quotes": "Geciteerd uit de bronnen:",
        "remembered": "Wat ik van je onthouden heb:",
        "greeting": "Hallo! Stel een vraag, dan zoek ik het antwoord in de documenten.",
        "thanks": "Graag gedaan. Zal ik nog iets opzoeken?",
        "farewell": "Tot ziens!",
        "self": "Ik zoek antwoorden in de documenten en citeer ze met hun bron.",
    },
}

LANGUAGES = tuple(_SENTENCES)
_CODES = {"german": "de", "spanish": "es", "french": "fr", "italian": "it"}
_CODES |= {"portuguese": "pt", "dutch": "nl"}


def say(sentence: Sentence, language: str = "") -> str:
    """The sentence in `language`, an ISO code such as `de` or `de-AT`; English if there is none."""
    name = language.lower()
    code = _CODES.get(name) or name[: 2 if re.fullmatch(r"\w\w([_-]\w+)?", name) else 0]
    return _SENTENCES.get(code, _SENTENCES[FALLBACK_LANGUAGE])[sentence]


def not_found_text(language: str = "") -> str:
    """The refusal: the sources do not contain an answer."""
    return say("not_found", language)


def is_refusal(text: str) -> bool:
    """Whether an answer begins with a refusal sentence, which models are told to use."""
    normalized = " ".join(text.split()).casefold()
    return any(
        normalized.startswith(sentences["not_found"].split(":")[0].casefold())
        for sentences in _SENTENCES.values()
    )


#: Longer messages are never small talk.
MAX_SMALL_TALK_CHARACTERS = 80

_SMALL_TALK: dict[Sentence, dict[str, str]] = {
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
_FILLER = (
    "there|all|everyone|everybody|team|friend|again|so much|a lot|very much|mate|bot|assistant"
    "|zusammen|leute|amigo|amigos|tous|tutti|and|und|y|et|e|en|you|today|dear|please|very|then|for"
    "|your|the|help|answer|information|info|that|this|it|is|was|really|so|thanks|ist|das"
)
#: One pattern per phrase, so that the longest match can be taken.
_PATTERNS = [
    (kind, language, re.compile(rf"(?:{words})(?=$|\s)"))
    for kind, by_language in _SMALL_TALK.items()
    for language, all_words in by_language.items()
    for words in re.split(r"\|(?![^(]*\))", all_words)
]
_FILLER_WORD = re.compile(rf"(?:{_FILLER})(?=$|\s)")
_PUNCTUATION = re.compile(r"[^\w\s'’-]+")


def small_talk(message: str, *, language: str = "") -> str | None:
    """The reply to a greeting, thanks or farewell, in the language of the message; None for any
    other message."""
    normalized = _PUNCTUATION.sub(" ", unicodedata.normalize("NFC", message).casefold()).replace(
        "’", "'"
    )
    normalized = " ".join(normalized.split())
    if not normalized or len(message) > MAX_SMALL_TALK_CHARACTERS:
        return None
    first: tuple[Sentence, str] | None = None
    rest = normalized
    while rest:
        found = [
            (match.end(), kind, spoken)
            for kind, spoken, pattern in _PATTERNS
            if (match := pattern.match(rest))
        ]
        if found:
            end, kind, spoken = max(found, key=lambda each: each[0])
            if first is None or (first[0] == "greeting" and kind == "self"):
                first = (kind, spoken)
        elif first and (filler := _FILLER_WORD.match(rest)):
            end = filler.end()
        else:
            return None
        rest = rest[end:].lstrip()
    return say(first[0], first[1] or language) if first else None
