"""The sentences that the site itself says in answers, by language. Pure."""

import re
from collections.abc import Mapping
from typing import Literal

Sentence = Literal["not_found", "quotes", "remembered", "greeting", "thanks", "farewell", "self"]

#: What is said in a language that has no sentences of its own here.
FALLBACK = "en"

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
    """The sentence in `language`, an ISO code such as `de` or `de-AT`, or its name in English; else
    in English."""
    name = language.lower()
    code = _CODES.get(name) or name[: 2 if re.fullmatch(r"\w\w([_-]\w+)?", name) else 0]
    return _SENTENCES.get(code, _SENTENCES[FALLBACK])[sentence]


def not_found_text(language: str = "") -> str:
    """The words with which an answer is refused, because the sources hold none."""
    return say("not_found", language)


def is_refusal(text: str) -> bool:
    """Whether an answer begins with one of these sentences, which models are told to use."""
    said = " ".join(text.split()).casefold()
    return any(
        said.startswith(sentences["not_found"].split(":")[0].casefold())
        for sentences in _SENTENCES.values()
    )
