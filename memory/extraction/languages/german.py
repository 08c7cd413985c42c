"""German. Keys of what English has a word for are the English ones: one user, several languages."""

from memory.extraction.languages.german_rules import EXPLICIT, RULES
from memory.extraction.languages.table import Language, pattern, words

_MONTH = (
    r"(?:jan(?:uar)?|jänner|feb(?:ruar)?|märz|apr(?:il)?|mai|juni?|juli?|aug(?:ust)?"
    r"|sep(?:t(?:ember)?)?|okt(?:ober)?|nov(?:ember)?|dez(?:ember)?)\b"
)

GERMAN = Language(
    code="de",
    tasks=pattern(
        r"(?:(?:bitte|kannst du|könntest du|können sie|könnten sie) )*(?:übersetze?n?|korrigiere?n?"
        r"|fasse?n?|formuliere?n?|umformulieren|schreibe?n?|schreib|verfasse?n?|entwirf|verbessere?n?"
        r"|stell dir vor|tu so|wiederhole?|sag|sage|was heißt|wie sagt man|ergänze?)\b"
    ),
    announces=pattern(
        r"(?:bitte )?(?:merke?(?: dir)?|hinweis|notiz|übrigens|info|zur info|korrektur|nachtrag|ps"
        r"|über mich|neuigkeiten|hallo|hi|hey|also|noch etwas|und)"
    ),
    remember=pattern(
        r"(?:(?:und|ach|also|übrigens|hallo|hey)[, ]+)?(?:bitte )?"
        r"(?:(?:kannst|könntest) du dir (?:bitte )?merken|merke? dir(?: bitte)?|denke? daran"
        r"|vergiss(?: bitte)? nicht|behalte? im kopf|notiere? dir),? ?dass "
    ),
    fillers=pattern(
        r"(?:(?:hi|hallo|hey|moin|servus|ja|nein|ne|nee|doch|also|und|aber|ach|oh|ok|okay|übrigens"
        r"|sorry|entschuldigung|danke|korrektur|wie gesagt|ehrlich gesagt|genau|klar|nun|na ja|naja"
        r"|gut|denn|außerdem|eigentlich|ich meine|zur info|guten (?:morgen|tag|abend))\b"
        r"[\s!,.:-]*){1,5}"
    ),
    joins=pattern(
        r"[,:()–—]+ *| -+ | (?:und|aber|oder|denn|doch) "
        r"(?=(?:ich|mein|meine|wir|bitte|nenn|nenne|du kannst|wohne|lebe|arbeite)\b)"
    ),
    asks=pattern(
        r"(?:(?:und|aber|oder|also) )?(?:was|wer|wen|wem|wessen|wann|wo|woher|wohin|warum|wieso"
        r"|weshalb|welche[rsmn]?|wie|ob|ist|sind|bin|war|habe|hast|hat|haben|kann|kannst|könntest"
        r"|könnte|soll|sollte|darf|magst|weißt|glaubst|denkst|wohne|lebe|heiße|du|ihr)\b"
    ),
    tags=pattern(
        r"\s*(?:oder|oder nicht|nicht wahr|stimmt's|stimmt das|richtig|korrekt|ja|nein|ne|gell|ok"
        r"|okay|wirklich|oder doch nicht)\s*$"
    ),
    reported=pattern(
        r"\b(?:sagt|sagte|sagten|sagen|gesagt|behauptet|behauptete|meint|meinte|erzählt|erzählte"
        r"|schrieb|schreibt|geschrieben|singt|gesungen|zitat|zitiert|fragt|fragte|antwortet"
        r"|antwortete|zum beispiel|z\.\s?b|beispiel|fiktiv|traum|träum\w*|geträumt|scherz|witz"
        r"|gelogen|liedtext|in (?:der|meiner) geschichte|im (?:spiel|film|roman|buch|lied|traum))\b"
    ),
    past=pattern(
        r"\b(?:nicht mehr|früher|damals|ehemals|einst|als kind|als ich|keinen? \w+ mehr"
        r"|stimmt nicht)\b"
    ),
    supposed=pattern(
        r"\b(?:wenn|falls|sofern|angenommen|ob|würden?|würdest|wäre|wären|hätte|hätten|könnten?"
        r"|möchte|sollte|wünschte|sobald|als ob)\b"
    ),
    denied=pattern(
        r"\b(?:nicht|nie|niemals|kein|keine|keinen|keinem|keiner|keines|weder|kaum|vielleicht"
        r"|eventuell|womöglich|vermutlich|wahrscheinlich|angeblich)\b"
    ),
    first_person=pattern(r"\b(?:ich|mir|mich|mein(?:e|en|em|er|es)?|wir|uns|unser\w*)\b"),
    addressed=pattern(r"\b(?:du|dir|dich|dein(?:e|en|em|er|es)?|bitte)\b"),
    lists=pattern(r",? (?:und|sowie|oder|&) (?:auch )?|, "),
    date=pattern(
        rf"\d{{1,2}}\. ?{_MONTH}(?: (?:19|20)\d\d)?|\d{{1,2}}\.\d{{1,2}}\.(?:(?:\d{{2}}){{1,2}}\b)?"
        rf"|\d{{4}}-\d{{2}}-\d{{2}}|{_MONTH}(?= ?$|[,.)]| geburtstag)"
    ),
    languages=words(
        "deutsch englisch französisch spanisch italienisch portugiesisch niederländisch"
        " holländisch dänisch schwedisch norwegisch finnisch isländisch polnisch tschechisch"
        " slowakisch ungarisch rumänisch bulgarisch serbisch kroatisch slowenisch bosnisch"
        " albanisch griechisch türkisch russisch ukrainisch litauisch lettisch estnisch"
        " arabisch hebräisch persisch farsi urdu hindi bengali tamil thailändisch thai"
        " vietnamesisch indonesisch chinesisch mandarin kantonesisch japanisch koreanisch"
        " suaheli katalanisch baskisch irisch latein esperanto georgisch armenisch kurdisch"
    ),
    never_names=words(
        "der die das ein eine einen mein meine dein deine sein ihr unser nicht kein keine was"
        " wer wo wie warum in an zu für von mit und oder aber wenn so als ist sind war auch nur"
        " geheim unwichtig egal bekannt schwer leicht kurz lang hier da dann jetzt später"
        " morgen heute bald wieder gern gerne bitte verrückt dumm faul montag dienstag mittwoch"
        " donnerstag freitag samstag sonntag januar februar märz april mai juni juli august"
        " september oktober november dezember ich du er sie es wir neu müde froh traurig fertig"
        " deutscher deutsche österreicher österreicherin schweizer schweizerin student"
        " studentin lehrer lehrerin"
    ),
    never_places=words(
        "montag dienstag mittwoch donnerstag freitag samstag sonntag januar februar märz april"
        " mai juni juli august september oktober november dezember angst sorge sorgen frieden"
        " armut wohnung haus hause miete trennung scheidung ehe gemeinschaft versehen erfahrung"
        " zucker holz stress rente ruhe sicherheit partnerschaft wohngemeinschaft"
    ),
    particles=words("van von vom zu zum zur der den de del di da la le el al bin ibn ben"),
    place_particles=words("am an der im ob auf &"),
    vague=words(
        "es das dies dieser diese dieses diesen diesem jener jene jenes dich dir du dein deine"
        " deinen euch euer eure ihn ihm ihr sie er ihnen sowas so hier da dort etwas nichts"
        " alles alle jeden sich man eins welche uns mir mich"
    ),
    no_start=words(
        "wie was wann wo warum wer welche zu nicht kein keine keinen jede jeder nur gar eher"
        " lieber dass ob wenn als"
    ),
    cuts=words(
        "aber weil denn da wenn falls obwohl während des als ich wir ist sind war bin habe hat bis"
        " vor seit bitte um dass sondern -"
    ),
    ands=words("und oder"),
    resumes=words(
        "hasse liebe mag esse trinke bin ist sind habe hat wohne lebe arbeite komme spreche lerne"
        " kann will möchte war mein meine ich wir dann auch nie immer es er sie du finde gehe"
    ),
    prepositions=words("bei für in im am an mit aus von auf und oder der die das"),
    trailing=words("auch jetzt sehr so gern gerne am meisten wirklich total halt eben ja"),
    articles=words("der die das den dem ein eine einen einem einer"),
    definite=words("der die das den dem"),
    aliases={
        "frau": "wife",
        "ehefrau": "wife",
        "mann": "husband",
        "ehemann": "husband",
        "partnerin": "partner",
        "verlobte": "fiance",
        "verlobter": "fiance",
        "freundin": "girlfriend",
        "freund": "boyfriend",
        "mutter": "mother",
        "mama": "mother",
        "vater": "father",
        "papa": "father",
        "tochter": "daughter",
        "töchter": "daughters",
        "sohn": "son",
        "söhne": "sons",
        "bruder": "brother",
        "brüder": "brothers",
        "schwester": "sister",
        "schwestern": "sisters",
        "geschwister": "siblings",
        "kinder": "children",
        "kind": "child",
        "oma": "grandmother",
        "großmutter": "grandmother",
        "opa": "grandfather",
        "großvater": "grandfather",
        "tante": "aunt",
        "onkel": "uncle",
        "nichte": "niece",
        "neffe": "nephew",
        "hund": "dog",
        "hündin": "dog",
        "welpe": "dog",
        "katze": "cat",
        "kater": "cat",
        "kätzchen": "cat",
        "kaninchen": "rabbit",
        "papagei": "parrot",
        "schildkröte": "turtle",
        "pferd": "horse",
        "vor": "first",
        "nach": "last",
        "familien": "last",
        "farbe": "colour",
        "essen": "food",
        "gericht": "dish",
        "film": "film",
        "buch": "book",
        "musik": "music",
        "tier": "animal",
        "stadt": "city",
        "getränk": "drink",
        "lied": "song",
        "sport": "sport",
        "fach": "subject",
        "veganer": "vegan",
        "veganerin": "vegan",
        "vegetarisch": "vegetarian",
        "vegetarier": "vegetarian",
        "vegetarierin": "vegetarian",
        "pescetarier": "pescatarian",
        "pescetarierin": "pescatarian",
        "koscher": "kosher",
        "deutsch": "german",
        "englisch": "english",
        "französisch": "french",
        "spanisch": "spanish",
        "italienisch": "italian",
        "portugiesisch": "portuguese",
        "niederländisch": "dutch",
        "holländisch": "dutch",
        "dänisch": "danish",
        "schwedisch": "swedish",
        "norwegisch": "norwegian",
        "finnisch": "finnish",
        "polnisch": "polish",
        "tschechisch": "czech",
        "ungarisch": "hungarian",
        "rumänisch": "romanian",
        "griechisch": "greek",
        "türkisch": "turkish",
        "russisch": "russian",
        "ukrainisch": "ukrainian",
        "arabisch": "arabic",
        "hebräisch": "hebrew",
        "persisch": "persian",
        "chinesisch": "chinese",
        "japanisch": "japanese",
        "koreanisch": "korean",
        "latein": "latin",
    },
    rules=RULES,
    explicit=EXPLICIT,
)
