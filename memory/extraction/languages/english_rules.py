"""How people begin to say something of themselves, in English."""

from memory.extraction.languages.table import Rule

_I_AM = r"i(?:'?m| am)"
_I = r"(?:i|we)"
_ADVERBS = (
    r"(?:(?:really|just|recently|currently|now|actually|also|still|finally|absolutely|totally"
    r"|always|mostly|usually|generally|personally|honestly|only|truly|simply|do|particularly"
    r"|especially|definitely|even|both|kind of|very much) ){0,3}"
)
_HAVE = r"(?:have|own|'ve got|have got|got|adopted|'ve adopted|have adopted)"
_NUMBER = r"(?:an?|one|two|three|four|five|six|\d{1,2})"
_OVER = (
    r"(?=$|[,.;:)–—]| (?:and|but|or|so|at|for|in|by|from|who|with|here|now|since|because|too)\b)"
)
_PETS = r"dog|puppy|cat|kitten|hamster|rabbit|bunny|parrot|turtle|tortoise|horse|pony|guinea pig"
_ONE_OF = r"wife|husband|spouse|partner|fianc[eé]e?|girlfriend|boyfriend|mother|mom|mum|father|dad"
_SOME = (
    r"daughter|son|brother|sister|grandmother|grandma|grandfather|grandpa|aunt|uncle|niece|nephew"
    r"|cousin|granddaughter|grandson|stepson|stepdaughter|stepfather|stepmother"
)
_PROFESSIONS = (
    r"accountant|actor|actress|analyst|architect|artist|attorney|baker|barber|barista|biologist"
    r"|bookkeeper|bricklayer|carpenter|chef|chemist|consultant|counsel+or|dancer|dentist|designer"
    r"|developer|dietitian|doctor|economist|editor|electrician|engineer|farmer|filmmaker"
    r"|firefighter|fisherman|florist|gardener|geologist|hairdresser|historian|journalist|judge"
    r"|lawyer|lecturer|librarian|linguist|machinist|mathematician|mechanic|midwife|musician|nurse"
    r"|nutritionist|optician|painter|paramedic|pharmacist|philosopher|photographer|physician"
    r"|physicist|physiotherapist|pilot|plumber|police officer|policeman|policewoman|postman"
    r"|principal|professor|programmer|psychiatrist|psychologist|realtor|receptionist|researcher"
    r"|sailor|salesman|saleswoman|scientist|sculptor|secretary|social worker|soldier|statistician"
    r"|student|surgeon|tailor|teacher|therapist|translator|veterinarian|waiter|waitress|welder"
    r"|product manager|project manager|data engineer|writer"
)
_A_PROFESSION = (
    rf"{_I_AM} {_ADVERBS}an? (?P<value>(?!(?:good|bad|big|huge|great|terrible|former|ex|lousy"
    rf"|better|aspiring|natural|slow|fast|fellow|wannabe)\b)(?:[\w-]+ ){{0,2}}?(?:{_PROFESSIONS}))"
)
_NOT_FOR_GOOD = (
    r"\b(?:but|then|until|till|left|when i was|as a (?:kid|child|teen\w*|student)|before"
    r"|for (?:an?|one|two|three|four|a few|some|\d+) )\b"
)
_POINTLESS = (
    r"(?:part|parts|thing|things|memory|memories|moment|moments|one|ones|bit|time|times|way|piece"
    r"|scene|line|pic|photo|picture)\b"
)
_VERBS = {
    "like": "likes",
    "love": "loves",
    "enjoy": "enjoys",
    "adore": "adores",
    "hate": "hates",
    "dislike": "dislikes",
    "detest": "detests",
    "can't stand": "cannot stand",
    "cannot stand": "cannot stand",
    "don't like": "does not like",
    "do not like": "does not like",
}

RULES = (
    Rule(rf"my (?:full |real |actual )?name(?:'s| is) {_ADVERBS}", "name", "name"),
    Rule(r"my (?P<which>first|last|middle|sur) ?name(?:'s| is) ", "name", "{which} name"),
    Rule(rf"{_I_AM} called ", "name", "name"),
    Rule(
        r"(?:hi|hello|hey|good (?:morning|afternoon|evening))(?: there| all| everyone)?,? "
        r"(?:i'?m|i am|this is) (?=[^\s,.]+(?:[,.]|$| [^\s,.]+(?:[,.]|$)| and | from ))",
        "name",
        "name",
    ),
    Rule(
        r"(?:(?:please|just|but|you (?:can|may)|people|everyone|everybody|they|(?:my )?friends) )*"
        r"calls? me ",
        "name",
        "preferred name",
    ),
    Rule(r"i go by ", "name", "preferred name"),
    Rule(r"my pronouns are (?P<value>[a-z]+(?:/[a-z]+){1,3})", "rest", "pronouns"),
    Rule(rf"{_I} {_ADVERBS}live in ", "place", "location", unless=_NOT_FOR_GOOD),
    Rule(rf"{_I_AM} {_ADVERBS}(?:living|based) in ", "place", "location", unless=_NOT_FOR_GOOD),
    Rule(
        rf"{_I}(?:'ve| have)? {_ADVERBS}(?:moved|relocated)"
        r"(?: (?:back|over|out|down|up|house|here))?(?: from [^,.]{1,40}?)? to ",
        "place",
        "location",
        unless=_NOT_FOR_GOOD,
    ),
    Rule(rf"{_I_AM} {_ADVERBS}(?:originally )?from ", "place", "comes from"),
    Rule(r"i (?:originally )?come from ", "place", "comes from"),
    Rule(r"i grew up in ", "place", "grew up in"),
    Rule(r"i was born(?: and (?:raised|bred))? in ", "place", "birthplace"),
    Rule(r"i was born in (?P<value>(?:19|20)\d\d)\b", "rest", "birth year"),
    Rule(r"i was born on ", "date", "birthday"),
    Rule(r"my birthday(?:'s| is)(?: on| in)?(?: the)? ", "date", "birthday"),
    Rule(
        rf"(?:i {_ADVERBS}work|{_I_AM} {_ADVERBS}working|i(?:'ve| have) been working"
        rf"|i(?:'ve| have)? {_ADVERBS}started working) as (?:an? |the )?",
        "role",
        "occupation",
    ),
    Rule(_A_PROFESSION + _OVER, "phrase", "occupation"),
    Rule(
        rf"(?:i {_ADVERBS}work(?: as [^,;:]{{1,60}}?)?|{_I_AM} {_ADVERBS}(?:working|employed)"
        rf"(?: as [^,;:]{{1,60}}?)?|{_A_PROFESSION.replace('?P<value>', '?:')}) (?:at|for|by) ",
        "employer",
        "employer",
        unless=r"(?<= )an? (?:living|while|change|bit|(?:\w+ )?(?:hour|day|week|month|year)s?)\b",
    ),
    *(
        Rule(
            rf"i {_ADVERBS}{verb} (?P<to>to )?",
            "phrase",
            "opinion of {value}",
            f"{said} {{to}} {{value}}",
        )
        for verb, said in _VERBS.items()
    ),
    Rule(
        rf"i {_ADVERBS}prefer (?!to )(?P<value>[^,;:]{{1,60}}?) (?:over|rather than|instead of) "
        r"(?P<other>[^,;:]{1,60})$",
        "phrase",
        "preference {pair}",
    ),
    Rule(
        rf"i {_ADVERBS}prefer (?P<value>(?!to |\w+ing )[\w'-]+(?: [\w'-]+)?) to "
        r"(?P<other>[\w'-]+(?: [\w'-]+)?)$",
        "phrase",
        "preference {pair}",
    ),
    Rule(
        rf"i {_ADVERBS}prefer (?!.* (?:over|to|rather than|instead of) )",
        "phrase",
        "opinion of {value}",
        "prefers {value}",
    ),
    Rule(
        r"my (?:all-time |absolute |personal |very )?favou?rite "
        rf"(?P<what>(?!{_POINTLESS})[\w-]+(?: (?!{_POINTLESS})[\w-]+){{0,2}}?) "
        r"(?:is|are|has always been|will always be) (?:definitely |probably |still )?",
        "title",
        "favourite {what}",
    ),
    Rule(
        r"(?P<value>[^,;:]{1,60}?) (?:is|are) (?:still |definitely )?my (?:all-time |absolute )?"
        rf"favou?rite (?P<what>(?!{_POINTLESS})[\w-]+(?: (?!{_POINTLESS}|of\b)[\w-]+)?)"
        r"(?=$|[,.;:)–—]| (?:and|but|of all time|ever)\b)",
        "title",
        "favourite {what}",
    ),
    Rule(
        rf"{_I_AM} {_ADVERBS}(?:severely |highly |deathly |very |badly )?allergic to ",
        "list",
        "allergy to {value}",
        "allergic to {value}",
    ),
    Rule(
        r"i(?:'ve| have)(?: got)? an? (?:severe |bad |serious |mild |strong )?"
        r"(?P<value>[\w-]+(?: [\w-]+)?) allergy\b",
        "phrase",
        "allergy to {value}",
        "allergic to {value}",
    ),
    Rule(
        r"i(?:'ve| have)(?: got)? an? (?:severe |bad |serious |mild |strong )?allergy to ",
        "list",
        "allergy to {value}",
        "allergic to {value}",
    ),
    Rule(
        rf"{_I_AM} {_ADVERBS}(?P<value>lactose|gluten|fructose|histamine)[- ]intolerant",
        "phrase",
        "intolerance to {value}",
        "{value} intolerant",
    ),
    Rule(
        rf"(?:{_I_AM}|i(?:'ve| have) been|i (?:became|went|turned)) {_ADVERBS}(?:an? )?(?:strict )?"
        r"(?P<value>vegan|vegetarian|pescatarian|pescetarian|flexitarian|teetotal)" + _OVER,
        "phrase",
        "diet",
    ),
    Rule(
        rf"i {_ADVERBS}(?:only )?(?:eat|keep) (?:only )?(?P<value>vegan|vegetarian|kosher|halal)"
        + _OVER,
        "phrase",
        "diet",
    ),
    Rule(
        rf"\bmy (?P<who>{_PETS}|{_ONE_OF}|{_SOME})"
        r"(?:'s name(?:'s| is)|'s (?:called|named)| is (?:called|named)|,? (?:named|called)) ",
        "name",
        "{who} name",
        anywhere=True,
    ),
    Rule(
        rf"\b{_I} ?{_HAVE} {_NUMBER} (?:[\w-]+ ){{0,2}}(?P<who>{_PETS}|{_SOME})"
        r"(?: who is|,)? (?:named|called) ",
        "name",
        "{who} name",
        anywhere=True,
    ),
    Rule(rf"\bmy (?P<who>{_ONE_OF}) (?=[^\s,;:])", "name", "{who} name", anywhere=True),
    Rule(rf"\bmy (?P<who>{_ONE_OF}), (?P<value>[^\s,;:]+), ", "name", "{who} name", anywhere=True),
    Rule(rf"\bmy (?:\w+ )?(?P<who>{_SOME}|{_PETS}) ", "name", "{who} {value}", anywhere=True),
    Rule(
        rf"\bmy (?:\w+ )?(?P<who>{_SOME}|{_PETS}), (?P<value>[^\s,;:]+), ",
        "name",
        "{who} {value}",
        anywhere=True,
    ),
    Rule(
        rf"{_I} ?{_HAVE} (?P<value>{_NUMBER} (?:[\w-]+ ){{0,2}}?(?P<who>{_PETS})s?)"
        r"(?=$|[,.;:)–—]| (?:and|but|named|called|who|at home|so|too)\b)",
        "rest",
        "pet {who}",
    ),
    Rule(
        rf"{_I} ?{_HAVE} (?P<value>{_NUMBER} (?:[\w-]+ ){{0,2}}?"
        r"(?P<who>kids|children|daughters?|sons?|brothers?|sisters?|siblings|grandchildren))"
        r"(?=$|[,.;:)–—]| (?:and|but|named|called|who|so|too)\b)",
        "rest",
        "family {who}",
    ),
    Rule(
        rf"(?:i {_ADVERBS}speak|i can speak) (?:fluent |some |a little |a bit of )?",
        "languages",
        "language {alias}",
        "speaks {value}",
    ),
    Rule(
        rf"(?:{_I_AM} {_ADVERBS}(?:learning|studying)|i(?:'ve| have)? {_ADVERBS}(?:been|started)"
        r" (?:learning|studying)) ",
        "languages",
        "language {alias}",
        "learns {value}",
    ),
    Rule(
        r"my (?:native language|mother tongue|first language|native tongue)(?:'s| is) ",
        "languages",
        "native language",
    ),
)

#: What may be kept where the user asks for it.
EXPLICIT = (
    Rule(
        r"my (?P<what>[\w'-]+(?: [\w'-]+){0,3}?) (?:is|are) ",
        "rest",
        "{what}",
    ),
)
