"""How people begin to say something of themselves, in German."""

from memory.extraction.languages.table import Rule

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

#: What may be kept where the user asks for it.
EXPLICIT = (
    Rule(rf"{_MY} (?P<what>[\w'-]+(?: [\w'-]+){{0,3}}?) (?:ist|sind|lautet) ", "rest", "{what}"),
)
