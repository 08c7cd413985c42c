"""English patterns for facts that people state about themselves."""

from memory.extraction.language import Language, Rule, pattern, words

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

#: Rules for what the user explicitly asks to remember.
EXPLICIT = (
    Rule(
        r"my (?P<what>[\w'-]+(?: [\w'-]+){0,3}?) (?:is|are) ",
        "rest",
        "{what}",
    ),
)


_MONTH = (
    r"(?:jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?"
    r"|sep(?:t(?:ember)?)?|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)"
)
_DAY = r"\d{1,2}(?:st|nd|rd|th)?"
_YEAR = r"(?:,? (?:19|20)\d\d)?"

ENGLISH = Language(
    code="en",
    tasks=pattern(
        r"(?:(?:please|(?:can|could|would|will) you|i want you to|let's|help me) )*"
        r"(?:translate|rewrite|rephrase|paraphrase|proofread|summari[sz]e|roleplay|role-play"
        r"|pretend|imagine|act as|continue|complete|correct (?:this|the|my)|fix (?:this|the|my)"
        r"|improve|repeat|say|sing|write|draft|compose|how (?:do|would) (?:you|i|we) say"
        r"|what does)\b"
    ),
    announces=pattern(
        r"(?:please )?(?:remember|note|reminder|fyi|btw|by the way|update|correction|ps|p\.s"
        r"|about me|fun fact|news|big news|hi|hello|hey|ok|okay|also|one more thing)"
    ),
    remember=pattern(
        r"(?:(?:and|also|ok|okay|oh|btw|by the way)[, ]+)?(?:please )?"
        r"(?:(?:can|could|will|would) you )?(?:please )?"
        r"(?:(?:remember|don't forget|do not forget|keep in mind|make a note|take note|note down"
        r"|bear in mind) (?:for me )?that |(?:please )note that |remember: |remember,? (?=my |i ))"
    ),
    fillers=pattern(
        r"(?:(?:hi|hello|hey|well|yes|yeah|yep|yup|no|nope|nah|actually|so|and|but|also|oh|ah|ok|okay"
        r"|btw|by the way|sorry|sure|thanks|thank you|fyi|for the record|correction|update|wait"
        r"|as i (?:said|told you|mentioned)|like i said|honestly|personally|right now|these days"
        r"|nowadays|currently|now|in fact|you know|you see|i mean|i meant|just so you know|wow|cool"
        r"|great|there|because|'?cause|since|plus|today|yesterday|last (?:week|month|year)"
        r"|this (?:week|month|year)|in (?:19|20)\d\d)\b[\s!,.:-]*){1,5}"
    ),
    joins=pattern(
        r"[,:()–—]+ *| -+ | (?:and|but|so|because|since|'?cause|plus|or) "
        r"(?=(?:i|i'm|i've|my|we|please|call|you can|also|actually|then)\b)"
    ),
    asks=pattern(
        r"(?:(?:and|but|so|or|then) )?(?:what|who|whom|whose|when|where|why|which|how|is|are|am|was"
        r"|were|do|does|did|can|could|should|shall|will|would|may|might|have|has|isn't|aren't"
        r"|don't|doesn't|didn't|any|guess|you)\b"
    ),
    tags=pattern(
        r"\s*(?:right|correct|ok|okay|or|or not|or what|no|yes|true|true or false|isn't it"
        r"|don't i|am i|aren't i|do i|huh|is that (?:right|true|correct).*|if i'm not mistaken)\s*$"
    ),
    reported=pattern(
        r"\b(?:says?|said|saying|tells|told|claims?|claimed|wrote|writes|sings?|sang|sung|lyrics?"
        r"|quot(?:e|es|ed|ing)|replied|replies|asked|asks|for example|e\.g"
        r"|example|fictional|character|dream(?:s|t|ed|ing)?|jok(?:e|es|ing)|kidding|sarcas\w+"
        r"|in (?:the|my|this) (?:story|game|novel|book|movie|film|song|dream|play)|lied|lying"
        r"|pretend(?:s|ed|ing)?|imagin(?:e|ed|ing)|april fools)\b"
    ),
    past=pattern(
        r"\b(?:no longer|any ?more|no more|used to|formerly|previously|back then|back when"
        r"|when i was|in the past|not true)\b"
    ),
    supposed=pattern(
        r"\b(?:if|unless|whether|suppose|supposing|assum(?:e|ing)|let's say|as if|as though|wish"
        r"|hypothetically|what if|in case|once i|until i|when i|whenever)\b"
    ),
    denied=pattern(
        r"\b(?:not|never|neither|nor|none|hardly|maybe|perhaps|possibly|probably|might|would|could"
        r"|cannot|allegedly|supposedly)\b|n't\b|\bnot$"
    ),
    first_person=pattern(r"\b(?:i|i'm|i've|my|mine|me|we|our|us)\b"),
    addressed=pattern(r"\b(?:you|you're|your|yours|please)\b"),
    lists=pattern(r",? (?:and|as well as|or|&|plus) (?:also )?|, "),
    date=pattern(
        rf"{_MONTH} (?:the )?{_DAY}\b{_YEAR}|{_DAY} (?:of )?{_MONTH}\b{_YEAR}|{_MONTH}(?= ?$|[,.)])"
        r"|\d{4}-\d{2}-\d{2}|\d{1,2}[./]\d{1,2}[./](?:\d{2}){1,2}\b|\d{1,2}/\d{1,2}\b"
    ),
    languages=words(
        "english german french spanish italian portuguese dutch danish swedish norwegian finnish"
        " icelandic polish czech slovak hungarian romanian bulgarian serbian croatian slovenian"
        " bosnian albanian greek turkish russian ukrainian belarusian lithuanian latvian estonian"
        " arabic hebrew persian farsi urdu hindi bengali punjabi tamil telugu marathi gujarati"
        " kannada malayalam nepali sinhala thai vietnamese indonesian malay tagalog filipino"
        " chinese mandarin cantonese japanese korean mongolian swahili amharic yoruba igbo hausa"
        " zulu afrikaans catalan basque galician irish welsh gaelic latin esperanto georgian"
        " armenian kurdish pashto kazakh uzbek"
    ),
    never_names=words(
        "a an the my your his her their our this that these those it not no what who when where why"
        " how in on at to for from with and or but if so as is are was were be been very too also"
        " really just only hard easy difficult unusual common secret private confidential unknown"
        " unimportant irrelevant spelled spelt pronounced written short taken back later now"
        " tomorrow today tonight soon again maybe crazy mad old old-fashioned silly stupid naive"
        " naïve paranoid cynical lazy sentimental selfish weird biased anytime asap please if"
        " after before out whatever anything something"
        " monday tuesday wednesday thursday friday saturday sunday january february march april"
        " june july august september october november december i he she they we you"
        " happy sad sorry glad sure fine good great excited new here back ready done"
        " american british english scottish irish welsh german french spanish italian dutch swiss"
        " austrian polish russian ukrainian turkish greek swedish danish norwegian finnish"
        " canadian mexican brazilian indian chinese japanese korean australian african european"
        " asian jewish muslim christian catholic hindu buddhist"
    ),
    never_places=words(
        "monday tuesday wednesday thursday friday saturday sunday january february march april may"
        " june july august september october november december it hr god fear peace hope hell"
        " poverty harmony denial town sin pain constant"
    ),
    particles=words("van von der den de del della di da do dos du la le el al bin ibn ben ter ten"),
    place_particles=words("of on upon the &"),
    vague=words(
        "it its it's this that these those you your yours you're him her hers his them their they"
        " they're he she he's she's one ones thing things stuff something everything anything"
        " nothing someone everyone anyone here there such me us that which who whom whose where"
    ),
    no_start=words(
        "how what when where why who whom which whether to being having seeing hearing feeling not"
        " no all each every some any more both just only so too as if i we my-self myself"
        " getting going doing making finding watching knowing"
    ),
    cuts=words(
        "but because since 'cause cause so when whenever while unless although though as i i'm i've"
        " i'll we is are was were am has have had than even please right until till after before"
        " during whether -"
    ),
    ands=words("and or"),
    resumes=words(
        "hate hates love loves like likes enjoy prefer want am is are do don't can can't cannot"
        " will would was have had work live lived moved think my then also never always it he she"
        " they you am usually often just dislike used get go need i i'm i've we this that"
    ),
    prepositions=words("at for in with from by on near and or who which that"),
    trailing=words(
        "too now a lot so much very really most best more also though again anyway here today"
        " lately right these days as well of course"
    ),
    articles=words("the a an"),
    definite=words("the"),
    aliases={
        "mom": "mother",
        "mum": "mother",
        "dad": "father",
        "grandma": "grandmother",
        "grandpa": "grandfather",
        "kids": "children",
        "color": "colour",
        "colors": "colours",
        "sur": "last",
        "puppy": "dog",
        "kitten": "cat",
        "bunny": "rabbit",
        "fiancée": "fiance",
        "fiancé": "fiance",
        "fiancee": "fiance",
    },
    rules=RULES,
    explicit=EXPLICIT,
)
