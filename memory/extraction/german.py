"""German patterns for facts. Keys are the English ones: one user may use several languages."""

from memory.extraction.language import Language, Rule, pattern, words

_ADVERBS = (
    r"(?:(?:wirklich|jetzt|nun|aktuell|derzeit|momentan|zurzeit|auch|noch|immer|schon|eigentlich"
    r"|gerade|seit kurzem|inzwischen|mittlerweile|hauptsächlich|sehr|total|absolut|ja|nämlich"
    r"|übrigens|lieber|besonders|am liebsten|seit (?:\d{4}|gestern|heute|\w+ (?:jahren?|monaten?"
    r"|wochen?|jahr|monat|woche))) ){0,3}"
)
_NUMBER = r"(?:eine?n?|zwei|drei|vier|fünf|sechs|\d{1,2})"
_OVER = r"(?=$|[,.;:)–—]| (?:und|aber|oder|bei|für|in|von|aus|der|die|mit|hier|jetzt|seit|weil)\b)"
_MY = r"mein(?:e|en|em|er|es)?"
_PETS = r"hund|hündin|welpe|katze|kater|kätzchen|hamster|kaninchen|papagei|schildkröte|pferd|pony"
_ONE_OF = (
    r"(?:ehe)?frau|(?:ehe)?mann|partnerin|partner|verlobter?|freundin|freund|mutter|mama|vater|papa"
)
_SOME = (
    r"tochter|sohn|bruder|schwester|oma|großmutter|opa|großvater|tante|onkel|nichte|neffe"
    r"|cousine|cousin|enkelin|enkel|stiefsohn|stieftochter"
)
_PROFESSIONS = (
    r"(?:\w*(?:lehrer|ingenieur|entwickler|programmierer|pfleger|verkäufer|berater|techniker|forscher"
    r"|schreiner|tischler|maler|mechaniker|elektriker|bäcker|gärtner|übersetzer|künstler|musiker"
    r"|physiker|chemiker|mathematiker|informatiker|historiker|wissenschaftler|schauspieler"
    r"|buchhalter|erzieher|friseur|journalist|polizist|student|professor|pilot|landwirt"
    r"|fotograf|psycholog|biolog|philosoph|apotheker|tänzer|trainer|autor|richter)(?:in|e)?"
    r"|\w*(?:arzt|ärztin|anwalt|anwältin|koch|köchin|bauer|bäuerin|krankenschwester|hebamme"
    r"|kaufmann|kauffrau|feuerwehrmann|soldat|soldatin))"
)
_NOT_FOR_GOOD = r"\b(?:aber|dann|bis|danach|für (?:ein|eine|einen|zwei|drei|\d+)|als kind)\b"
_VERBS = {"mag": "likes", "liebe": "loves", "hasse": "hates", "verabscheue": "detests"}

RULES = (
    Rule(rf"mein (?:voller |richtiger )?name ist {_ADVERBS}", "name", "name"),
    Rule(r"mein (?P<which>vor|nach|familien)name ist ", "name", "{which} name"),
    Rule(rf"ich hei(?:ß|ss)e {_ADVERBS}", "name", "name"),
    Rule(
        r"(?:hi|hallo|hey|moin|servus|guten (?:morgen|tag|abend))(?: zusammen| alle)?,? "
        r"(?:ich bin|hier ist) (?:der |die )?"
        r"(?=[^\s,.]+(?:[,.]|$| [^\s,.]+(?:[,.]|$)| und | aus ))",
        "name",
        "name",
    ),
    Rule(
        r"(?:bitte |aber )*nenn(?:e|t|en sie)? mich (?:bitte |einfach |doch )*",
        "name",
        "preferred name",
    ),
    Rule(
        r"(?:alle|meine freunde|freunde|sie|die leute) nennen mich (?:nur |immer )?",
        "name",
        "preferred name",
    ),
    Rule(
        r"(?:du kannst|ihr könnt|sie können|du darfst) mich (?:gerne? |ruhig |auch |einfach )*"
        r"(?=\S+(?: \S+)? nennen\b)",
        "name",
        "preferred name",
    ),
    Rule(
        rf"(?:ich {_ADVERBS}(?:wohne|lebe)|{_ADVERBS}(?:wohne|lebe) ich) {_ADVERBS}in ",
        "place",
        "location",
        unless=_NOT_FOR_GOOD,
    ),
    Rule(
        rf"(?:ich bin|wir sind) {_ADVERBS}(?:letztes jahr |letzte woche |letzten monat |gestern )?"
        r"nach (?=[^,.;:]{1,60} (?:um)?gezogen\b)",
        "place",
        "location",
        unless=_NOT_FOR_GOOD,
    ),
    Rule(
        r"(?:letztes jahr|letzte woche|letzten monat|gestern|vor kurzem|kürzlich)"
        r" (?:bin ich|sind wir) nach (?=[^,.;:]{1,60} (?:um)?gezogen\b)",
        "place",
        "location",
        unless=_NOT_FOR_GOOD,
    ),
    Rule(rf"ich (?:komme|stamme) {_ADVERBS}(?:ursprünglich )?aus ", "place", "comes from"),
    Rule(rf"ich bin {_ADVERBS}(?:ursprünglich )?aus ", "place", "comes from"),
    Rule(r"ich bin in (?=[^,.;:]{1,60} aufgewachsen\b)", "place", "grew up in"),
    Rule(r"ich (?:bin|wurde) in (?=[^,.;:]{1,60} geboren\b)", "place", "birthplace"),
    Rule(r"ich (?:bin|wurde) (?:im jahr )?(?P<value>(?:19|20)\d\d) geboren", "rest", "birth year"),
    Rule(r"ich (?:bin|wurde) am (?=[^,;:]{1,40} geboren\b)", "date", "birthday"),
    Rule(r"ich habe (?:am|im) (?=[^,;:]{1,40} geburtstag\b)", "date", "birthday"),
    Rule(r"mein geburtstag ist (?:am |im |der )?", "date", "birthday"),
    Rule(rf"ich arbeite {_ADVERBS}als (?:eine? )?", "role", "occupation"),
    Rule(
        rf"ich bin {_ADVERBS}(?:eine? |von beruf )?(?P<value>(?:[\w-]+ )?{_PROFESSIONS})"
        r"(?: von beruf)?" + _OVER,
        "phrase",
        "occupation",
    ),
    Rule(
        rf"ich arbeite {_ADVERBS}(?:als [^,;:]{{1,60}}? )?(?:bei|für|an) (?:der |dem |den )?",
        "employer",
        "employer",
    ),
    *(
        Rule(rf"ich {verb} {_ADVERBS}", "phrase", "opinion of {value}", f"{said} {{value}}")
        for verb, said in _VERBS.items()
    ),
    Rule(
        r"ich (?P<how>esse|trinke|höre|lese|spiele) (?:sehr |besonders |total )?gerne? ",
        "phrase",
        "opinion of {value}",
        "likes {value}",
    ),
    Rule(
        rf"ich (?:bevorzuge {_ADVERBS}|ziehe (?=[^,;:]{{1,60}} vor$))(?!.* (?:vor|statt) )",
        "phrase",
        "opinion of {value}",
        "prefers {value}",
    ),
    Rule(
        r"ich (?:trinke|esse|nehme|mag|lese|höre|spiele|fahre) lieber "
        r"(?P<value>[\w'-]+(?: [\w'-]+)?) als (?P<other>[\w'-]+(?: [\w'-]+)?)$",
        "phrase",
        "preference {pair}",
    ),
    Rule(
        rf"{_MY} (?:absolut(?:er|es|e) )?lieblings-?(?P<what>[\w-]+) (?:ist|sind|war schon immer)"
        r" (?:immer noch |eindeutig |definitiv )?",
        "title",
        "favourite {what}",
    ),
    Rule(
        rf"(?P<value>[^,;:]{{1,60}}?) (?:ist|sind) {_MY} lieblings-?(?P<what>[\w-]+)"
        r"(?=$|[,.;:)–—]| (?:und|aber)\b)",
        "title",
        "favourite {what}",
    ),
    Rule(
        rf"ich bin {_ADVERBS}(?:stark |hoch |schwer )?allergisch (?:gegen|auf) ",
        "list",
        "allergy to {value}",
        "allergic to {value}",
    ),
    Rule(
        r"ich habe (?:eine )?(?:starke |schwere )?allergie gegen ",
        "list",
        "allergy to {value}",
        "allergic to {value}",
    ),
    Rule(
        r"ich habe (?:eine )?(?:starke |schwere )?(?P<value>\w{3,30}?)-?allergie\b",
        "phrase",
        "allergy to {value}",
        "allergic to {value}",
    ),
    Rule(
        rf"ich (?:bin|lebe|esse|ernähre mich) {_ADVERBS}(?:ein |eine )?(?:streng )?"
        r"(?P<value>vegan|vegetarisch|veganerin|veganer|vegetarierin|vegetarier|pescetarierin"
        r"|pescetarier|koscher|halal)" + _OVER,
        "rest",
        "diet",
        "{alias}",
    ),
    Rule(
        rf"\b{_MY} (?P<who>{_PETS}|{_ONE_OF}|{_SOME}) hei(?:ß|ss)t ",
        "name",
        "{who} name",
        anywhere=True,
    ),
    Rule(
        rf"der name {_MY} (?P<who>{_ONE_OF}|{_SOME}|{_PETS})s? ist ",
        "name",
        "{who} name",
    ),
    Rule(
        rf"\bich habe {_NUMBER} (?:[\w-]+ ){{0,2}}?(?P<who>{_PETS}|{_SOME})"
        r"(?:,? (?:die|der|das)? ?(?:namens|mit namen|mit dem namen)) ",
        "name",
        "{who} name",
        anywhere=True,
    ),
    Rule(
        rf"\bich habe {_NUMBER} (?:[\w-]+ ){{0,2}}?(?P<who>{_PETS}|{_SOME}),? (?:die|der|das) "
        r"(?=\S+ heißt)",
        "name",
        "{who} name",
        anywhere=True,
    ),
    Rule(rf"\b{_MY} (?P<who>{_ONE_OF}) (?=[^\s,;:])", "name", "{who} name", anywhere=True),
    Rule(
        rf"\b{_MY} (?P<who>{_ONE_OF}), (?P<value>[^\s,;:]+), ", "name", "{who} name", anywhere=True
    ),
    Rule(rf"\b{_MY} (?:\w+ )?(?P<who>{_SOME}|{_PETS}) ", "name", "{who} {value}", anywhere=True),
    Rule(
        rf"ich habe (?P<value>{_NUMBER} (?:[\w-]+ ){{0,2}}?(?P<who>{_PETS})(?:e|en|n|s)?)"
        r"(?=$|[,.;:)–—]| (?:und|aber|namens|der|die|das|zu hause)\b)",
        "rest",
        "pet {who}",
    ),
    Rule(
        rf"(?:ich habe|wir haben) (?P<value>{_NUMBER} (?:[\w-]+ ){{0,2}}?"
        r"(?P<who>kinder|kind|töchter|tochter|söhne|sohn|brüder|bruder|schwestern|schwester"
        r"|geschwister|enkel))(?=$|[,.;:)–—]| (?:und|aber|namens|der|die|das)\b)",
        "rest",
        "family {who}",
    ),
    Rule(
        rf"ich (?:spreche|kann) {_ADVERBS}(?:fließend |gut |etwas |ein bisschen |ein wenig )?",
        "languages",
        "language {alias}",
        "speaks {value}",
    ),
    Rule(rf"ich lerne {_ADVERBS}", "languages", "language {alias}", "learns {value}"),
    Rule(r"meine muttersprache ist ", "languages", "native language"),
)

#: Rules for what the user explicitly asks to remember.
EXPLICIT = (
    Rule(rf"{_MY} (?P<what>[\w'-]+(?: [\w'-]+){{0,3}}?) (?:ist|sind|lautet) ", "rest", "{what}"),
)


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
