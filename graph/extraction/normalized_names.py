"""Name normalisation (`normalize_name`), candidate names of a question, and function
words of seven languages. Pure.
"""

import re
import unicodedata
from collections.abc import Iterator, Sequence
from typing import NamedTuple

_ENGLISH = """
a about above according across after afterwards again against ago all almost along already also
although always am among an and another any anyone anything are around as at away back be became
because become been before began behind being below beside besides between beyond both but by
called came can cannot could despite did do does doing done down due during each early eight
either eleven else even ever every everyone everything except far few first five following for
formerly four from further get give given go had has have having he hence her here hers herself
him himself his how however i if in include included including indeed inside instead into is it
its itself just known last late later least less like likewise located made main many may me
meanwhile might mine more moreover most mostly much must my myself named near nearly neither
never nevertheless next nine no nobody none nor not nothing now of off often on once one only
onto or other others otherwise our ours out outside over own per perhaps rather recent recently
said same second several she should since six so some someone something sometimes soon still
such ten than that the their theirs them themselves then there thereafter therefore these they
third this those though three through throughout thus to today together too toward towards
twelve two under unlike until up upon us use used using usually various very via was we well
were what whatever when whenever where whereas wherever whether which while who whoever whole
whom whose why will with within without would yes yet you your yours
"""
_GERMAN = """
aber alle allem allen aller alles als am an ander andere auch auf aus außer bei beim bin bis
bist da dabei dadurch dafür damit danach dann daran darauf darüber das dass dazu dein dem den
denn der deren des dessen die dies diese diesem diesen dieser dieses doch dort du durch ein eine
einem einen einer eines einige er es etwa etwas euch für gegen haben hat hatte hatten ich ihm
ihn ihnen ihr ihre ihrem ihren ihrer im in innerhalb ist ja jede jedem jeden jeder jedes jedoch
kann kein keine können man manche mehr mein mit muss nach nachdem neben nicht nichts noch nun
nur ob obwohl oder ohne schon sehr sein seine seinem seinen seiner seit sich sie sind so sobald
solche soll sondern sonst sowie um und uns unser unter viel viele vom von vor war waren warum
was wegen weil welche welchem welchen welcher welches wenn wer werden wie wieder will wir wird
wo wohin wurde wurden während zu zum zur zwar zwischen über
"""
#: French, Spanish, Italian, Portuguese, Dutch.
_OTHERS = """
aan agli ai al algo algunos alla alle allo alors als anche ante antes ao aos après aquel así até
au aucun aunque aussi autre aux avait avant avec avoir bij cada car ce ceci cela celle celui ces
cet cette chaque che chez chi ci com come comme comment como con contra contre cosa cual cuando
cui cuál cuándo cuánto da dal dalla dalle dan dans das dat de dei del della delle dello depuis
desde después deux deze di die dit do donc donde door dopo dos dove du durante dónde e ed een el
ela ele eles ella ellas elle elles ellos em en entonces entre er era esa ese eso essa esse est
esta estas este esto estos está et eu eux fait foi fue gli ha hacia had hasta hay heb heeft het
hier hij ho hoe há i ik il ils in io is isso isto je já la las le lei les leur leurs lo loro
lorsque los lui ma maar mais mas me mentre mes mesmo met mi mientras moins mon muito muy más
même na naar nas ne nel nella nelle ni niet no nog non nos notre nous num numa não o of ogni om
on onder ont ook op os otra otro ou over où par para parce pas pela pelo pendant per perché pero
però peu più plus poi por porque pour pourquoi prima pues puis qual quale quali quand quando
quanto que quel quella quelle quelles quello quels quem questa questo qui quien quién quoi qué
sa sans se según selon sem senza ser ses seu si sin sino sobre son sono sont sous su sua sue sui
sul sulla suo suoi sur sus são sí ta también também tan tandis tanto te tegen tem todo todos
toen tot tous tout toute toutes tra tras très tutti uit uma umas un una une uno unos uns van
veel vers você voici voor vos votre vous waar wanneer waren wat werd wie wordt y ya zal ze zich
zij zijn zonder à às è él était être
"""
_INSIDE_NAMES = """
against al and at aux bin da das de del della den der des di do dos du e el et for ibn in la le
les of on sur ten ter the to und upon van vom von y zu zum zur
"""

#: Articles, pronouns, prepositions, conjunctions, auxiliaries and what questions are asked with.
FUNCTION_WORDS = frozenset(f"{_ENGLISH} {_GERMAN} {_OTHERS}".split())

#: Small words within a capitalised name, as in `Lord of the Rings`.
INSIDE_NAMES = frozenset(_INSIDE_NAMES.split())


#: Longer names are not looked up in questions.
MAX_CANDIDATE_WORDS = 8
#: Words of a pasted question beyond these are not looked at.
MAX_QUESTION_WORDS = 100
#: A form is a key in an index.
MAX_FORM_CHARACTERS = 200

_ARTICLES = frozenset(("the", "a", "an"))
_APOSTROPHES = str.maketrans("’‘ʼ＇`´", "'" * 6)
_POSSESSIVE = re.compile(r"(?<=\w)'s\b")
_INSIDE_WORD = re.compile(r"(?<=\w)'(?=\w)|\u00ad")
_ACCENTS = re.compile(r"(?<=[A-Za-z])[\u0300-\u036f]+")
#: A letter or digit of any script; `+` and `#` behind one are part of it (C++, C#).
_WORD = re.compile(r"[^\W_]+[+#]{0,2}")
#: Vowel signs and the like of scripts that cannot do without; `\w` leaves them out.
_MARKS = (
    "\u0300-\u036f\u0483-\u0487\u0591-\u05c7\u0610-\u061a\u064b-\u065f\u0900-\u0903\u093a-\u094f"
    "\u0980-\u0983\u09bc-\u09d7\u0a01-\u0a51\u0a81-\u0acd\u0b01-\u0b57\u0b82-\u0bd7\u0c00-\u0c56"
    "\u0c81-\u0cd6\u0d00-\u0d57\u0e31-\u0e4e\u0eb1-\u0ecd\u102b-\u109d\u17b4-\u17d3\u200c\u200d"
)
_WORD_WITH_MARKS = re.compile(rf"[^\W_](?:[^\W_]|[{_MARKS}])*[+#]{{0,2}}")


class CandidateName(NamedTuple):
    """Consecutive words of a question that may be a name: words `start` to `end` (exclusive).

    `is_capital`: its content words are all capitalised, and not only as the first word of the
    question.
    """

    form: str
    start: int
    end: int
    is_capital: bool


def normalize_name(text: str) -> str:
    """`The Beyoncé's` → `beyonce`; empty if no letter or digit is left.

    Ignores case, width, punctuation, possessives, a leading English article and Latin accents;
    joins initials (`J. R. R.` is `JRR`). Marks of other scripts are kept.
    """
    return _join_words([word for word, _ in _words(text)])


def candidate_names(text: str, *, longest: int = MAX_CANDIDATE_WORDS) -> list[CandidateName]:
    """All runs of up to `longest` words of a question that may be names, by position.

    Runs of function words count only if written as a name (`The Who`); single words after the
    first too, unless the question has no capitals.
    """
    words = list(_words(text))[:MAX_QUESTION_WORDS]
    has_capitals = any(capital for _, capital in words[1:])
    return [
        CandidateName(_join_words([word for word, _ in words[start:end]]), start, end, is_capital)
        for start in range(len(words))
        for end in range(start + 1, min(start + longest, len(words)) + 1)
        for is_capital in [_is_capital(words[start:end], is_first=start == 0)]
        if is_capital
        # not capitalised, and yet looked up
        or (
            any(word not in FUNCTION_WORDS for word, _ in words[start:end])
            and (end - start > 1 or start == 0 or not has_capitals)
        )
    ]


def _is_capital(run: Sequence[tuple[str, bool]], *, is_first: bool) -> bool:
    """Whether its content words (all words if none) are capitalised, other than by
    starting the question.
    """
    telling = [capital for word, capital in run if word not in FUNCTION_WORDS]
    return all(telling or [capital for _, capital in run]) and not (
        is_first and (len(run) == 1 or not telling)
    )


def _join_words(words: Sequence[str]) -> str:
    # `j r r tolkien` → `jrr tolkien`; a single letter is kept.
    joined: list[str] = []
    is_open = False
    for word in words:
        is_initial = len(word) == 1 and "a" <= word <= "z"
        if is_initial and is_open:
            joined[-1] += word
        else:
            joined.append(word)
        is_open = is_initial
    words = joined
    while len(words) > 1 and words[0] in _ARTICLES:
        words = words[1:]
    return " ".join(words)[:MAX_FORM_CHARACTERS].rstrip()


def _words(text: str) -> Iterator[tuple[str, bool]]:
    """Each word in normal form, and whether it is capitalised."""
    text = unicodedata.normalize("NFKC", text).translate(_APOSTROPHES).replace("&", " and ")
    text = _INSIDE_WORD.sub("", _POSSESSIVE.sub("", text))
    pattern = _WORD
    if not text.isascii():
        # Without accents: `Beyoncé` → `Beyonce`.
        text = unicodedata.normalize("NFC", _ACCENTS.sub("", unicodedata.normalize("NFD", text)))
        pattern = _WORD_WITH_MARKS
    for found in pattern.finditer(text):
        yield found[0].casefold(), found[0][0] != found[0][0].lower()
