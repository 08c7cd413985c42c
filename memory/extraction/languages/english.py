"""English."""

from memory.extraction.languages.english_rules import EXPLICIT, RULES
from memory.extraction.languages.table import Language, pattern, words

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
