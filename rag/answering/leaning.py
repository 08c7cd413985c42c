"""Words by which a question leans on what was said before it. Pure."""

import re
from collections.abc import Mapping

#: By language what stands for something said before. Small words that mostly mean something else
#: are left out, or come with what tells them apart: `that` with no clause behind it.
PRONOUNS: Mapping[str, str] = {
    "en": r"it(?! (?:is|was|possible|true|necessary|important|safe|mean|take)\b)|its|they|them"
    r"|their|theirs|he|she|him|her|his|hers|this|these|those(?! (?:who|that|which|of|with)\b)"
    r"|that(?=\W*$| (?:mean|work|happen|help|one)\w*)|then(?=\W*$)"
    r"|(?<!is )(?<!are )(?<!was )(?<!were )there(?=\W*$)"
    r"|(?:the )?(?:first|second|third|last|other) ones?",
    "de": r"er|ihn|ihm|ihnen|dies|diese[mnrs]?|dessen|deren|davon|dafür|dagegen|damit|dabei|dazu"
    r"|darüber|darin|daran|darauf|dort|sein|seine[mnrs]?|ihre[mnrs]?|sie|(?<!gibt )es(?! gibt)",
    "es": r"él|ella|ello|ellos|ellas|est[ao]s?|este|es[ao]s?(?=\W*$)|ese|aquello|sus?|allí|ahí",
    "fr": r"(?<!y a-t-)ils?(?! y a)|elles?|cela|ça|ce(?:lui|lle)-(?:ci|là)|ses|sa|leurs?|lui|ceci"
    r"|là-bas",
    "it": r"lui|lei|loro|quest[oaie]|quell[oaie](?! che)|su[oae]|suoi|lì",
    "pt": r"el[ea]s?|isto|isso|aquilo|seus?|suas?|del[ea]s?|lá|ali",
    "nl": r"hij|zij|ze|hem|haar|hun|hen|deze|dit|ervan|daarvan|daarover",
}

#: With these a question takes up the one before, and with those it may.
GOES_ON = re.compile(
    r"(?:(?:and |but |so )?(?:what about|how about)|(?:und )?(?:was ist mit|wie sieht es mit"
    r"|wie steht es um)|¿?(?:y )?qué hay de|(?:et )?qu'en est-il d[eu]|e quanto a|che dire di"
    r"|(?:en )?hoe zit het met)\b",
    re.IGNORECASE,
)
CONTINUES = re.compile(
    r"¿?(?:and|but|or|so|also|und|aber|oder|auch|y|pero|o|e|et|mais|ou|ma|mas|en|maar|of)\b",
    re.IGNORECASE,
)
#: These ask for more of the same, or for a reason, and name nothing.
_WISHES = (
    r"(?:please |can you |could you )?(?:tell me more|say more|more details?|more|go on|continue"
    r"|explain(?: (?:that|this|it))?(?: more| further| again)?|elaborate(?: on (?:that|this|it))?"
    r"|give me (?:more|an example)|for example|summari[sz]e(?: (?:that|this|it))?)"
    r"|mehr(?: dazu| davon)?|erkläre? das(?: genauer)?|zum beispiel|más|cuéntame más|por ejemplo"
    r"|plus|par exemple|di più|meer"
)
_ALONE = (
    r"why(?: not| is that| so)?|how(?: so| come| exactly)?|when|where|who|which(?: ones?)?"
    r"|since when|how (?:much|many|long|often|far|old|big|tall|high|deep)|such as|really"
    r"|(?:what|anything|who|where) else|are you sure"
    r"|warum(?: nicht)?|wieso|weshalb|wann|wo|wer|seit wann|welche[rs]?|was noch|und"
    r"|wie(?: viele?| lange| genau| oft| hoch| alt| groß)?"
    r"|por qué(?: no)?|cuándo|dónde|quién|cómo|cuánt[oa]s?|cuál"
    r"|pourquoi(?: pas)?|quand|où|qui|comment|combien|lequel|laquelle"
    r"|perché|quando|dove|chi|come|quant[oaie]|quale|por quê|onde|quem|quantos|mais"
    r"|waarom(?: niet)?|wanneer|waar|hoe(?:veel)?|welke"
)
ASKS_MORE = re.compile(rf"¿?(?:{_WISHES}|{_ALONE})", re.IGNORECASE)


#: Small words that questions are full of, to tell their language by.
_SMALL = {
    "de": "wer was wann wo wie warum wieso welche welcher welches wird wurde werden hat haben sind"
    " ist der die das den dem ein eine einen und mit von für nicht er sie es kann",
    "es": "qué quién cuándo dónde cómo por cuál cuánto cuántos los las el una fue es con para del"
    " se hay y",
    "fr": "qui que quoi quand où comment pourquoi quel quelle quels quelles est les des une du dans"
    " pour avec sont a-t-il et",
    "it": "chi cosa quando dove come perché quale quali il gli una del della dei è sono con e",
    "pt": "quem quando onde como porquê qual quais os uma do da dos das foi são com para e",
    "nl": "wie wat wanneer waar hoe waarom welke het een van de zijn is met voor en niet",
}
_SMALL_WORDS = {language: frozenset(words.split()) for language, words in _SMALL.items()}


def language_of(question: str) -> str:
    """The language that a question seems to be in; English where nothing speaks for another."""
    words = re.findall(r"\w+(?:-\w+)*", question.casefold())
    counted = {
        language: sum(word in small for word in words) for language, small in _SMALL_WORDS.items()
    }
    best = max(counted, key=lambda language: counted[language])
    return best if counted[best] * 3 >= len(words) > 0 else "en"


def pronouns_of(language: str) -> re.Pattern[str]:
    """What finds words that stand for something else, in `language` or else in English."""
    return _COMPILED.get(language[:2].lower(), _COMPILED["en"])


_COMPILED = {
    language: re.compile(rf"(?<![\w'’])(?:{words})(?![\w'’-])", re.IGNORECASE)
    for language, words in PRONOUNS.items()
}
