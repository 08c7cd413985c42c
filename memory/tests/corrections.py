"""Conversations in which users correct themselves: what is known at the end, and which facts were
ended without another value.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Conversation:
    """Messages of a user, the facts that hold after them, and keys of those that ended."""

    said: Sequence[str]
    known: Mapping[str, str] = field(default_factory=dict)
    ended: frozenset[str] = frozenset()


def conversation(*said: str, ended: str = "", **known: str) -> Conversation:
    return Conversation(said, known, frozenset(ended.split()))


#: Those of a bug report: five of the eight ended wrong.
REPORTED = [
    conversation(
        *("I love Chinese food.", "I hate Chinese food."),
        opinion_of_chinese_food="hates Chinese food",
    ),
    conversation("My name is Ann.", "Correction: my name is Anna.", name="Anna"),
    conversation(
        *("I live in Kiel.", "I no longer live in Kiel.", "What do you know about where I live?"),
        ended="location",
    ),
    conversation(
        *("I'm allergic to nuts.", "I was wrong, I am not allergic to nuts."),
        ended="allergy_to_nuts",
    ),
    conversation("I have a dog called Rex.", "Rex died last week.", ended="dog_name pet_dog"),
    conversation(
        *("I work at Orbion.", "I quit Orbion and now work at Larkfield."), employer="Larkfield"
    ),
    conversation("I'm vegetarian.", "Forget that I'm vegetarian.", ended="diet"),
    conversation("Ich wohne in Kiel.", "Ich bin nach Lübeck gezogen.", location="Lübeck"),
]

ENGLISH = [
    conversation("I live in Porto.", "I don't live in Porto anymore.", ended="location"),
    conversation(
        *("I work as a nurse at Meridian Clinic.", "I was laid off last month."),
        ended="employer occupation",
    ),
    conversation(
        *("My girlfriend's name is Maja.", "Maja and I broke up in spring."),
        ended="girlfriend_name",
    ),
    conversation("I'm vegan.", "I used to be vegan, but now I eat fish.", ended="diet"),
    conversation(
        *("I have a cat called Tom and a dog named Bruno.", "We had to put Bruno down."),
        cat_name="Tom",
        pet_cat="a cat",
        ended="dog_name pet_dog",
    ),
    conversation(
        *("My favourite colour is green.", "Scratch that, my favourite colour is teal."),
        favourite_colour="teal",
    ),
    conversation("I'm learning Spanish.", "I stopped learning Spanish.", ended="language_spanish"),
    conversation("I live in Graz.", "Scratch that.", ended="location"),
    conversation("My name is Jon.", "It's John, not Jon.", name="John"),
    conversation(
        *("I have a peanut allergy.", "It turned out that I'm not allergic to peanuts."),
        ended="allergy_to_peanut",
    ),
    conversation(
        *("I work for Brightwater.", "I left Brightwater for Nordlicht."), employer="Nordlicht"
    ),
    conversation(
        *(
            "I live in Leeds and my sister Clara lives in Hull.",
            "It's not true that I live in Leeds.",
        ),
        sister_clara="Clara",
        ended="location",
    ),
    conversation(
        "I really like sushi.", "I don't like sushi.", opinion_of_sushi="does not like sushi"
    ),
    conversation(
        *("My name is Rosa and I work at Tidewater.", "You can forget what I said about my job."),
        name="Rosa",
        ended="employer",
    ),
    # no corrections of what is known
    conversation("I live in Kiel.", "My brother no longer lives in Kiel.", location="Kiel"),
    conversation("I live in Kiel.", "I no longer live with my parents.", location="Kiel"),
    conversation(
        *("I'm vegetarian.", "It is not that I am vegetarian, the food was simply bad."),
        diet="vegetarian",
    ),
    conversation(
        *(
            "I work at Orbion.",
            "If I quit Orbion, could I keep my laptop?",
            "I might leave Orbion.",
        ),
        employer="Orbion",
    ),
    conversation(
        *("I have a dog named Rex.", "My neighbour said: “Rex died last week.”", "Did Rex die?"),
        dog_name="Rex",
        pet_dog="a dog",
    ),
    conversation(
        *(
            "I'm allergic to milk.",
            "Don't forget that I'm allergic to milk.",
            "Never mind, thanks.",
        ),
        allergy_to_milk="allergic to milk",
    ),
]

GERMAN = [
    conversation("Ich wohne in Jena.", "Ich wohne nicht mehr in Jena.", ended="location"),
    conversation(
        *("Ich wohne in Jena.", "Ich wohne nicht mehr in Jena, sondern in Erfurt."),
        location="Erfurt",
    ),
    conversation("Ich bin Vegetarierin.", "Vergiss, dass ich Vegetarierin bin.", ended="diet"),
    conversation(
        *(
            "Ich arbeite bei Orbion.",
            "Ich habe bei Orbion gekündigt und arbeite jetzt bei Larkfield.",
        ),
        employer="Larkfield",
    ),
    conversation("Mein Hund heißt Waldi.", "Waldi ist letzte Woche gestorben.", ended="dog_name"),
    conversation(
        *(
            "Ich bin allergisch gegen Nüsse.",
            "Das war falsch, ich bin doch nicht allergisch gegen Nüsse.",
        ),
        ended="allergy_to_nüsse",
    ),
    conversation(
        *("Ich habe ein Pferd namens Sina.", "Wir haben Sina im Herbst verkauft."),
        ended="horse_name pet_horse",
    ),
    conversation(
        *("Meine Freundin heißt Lena.", "Lena und ich haben uns getrennt."), ended="girlfriend_name"
    ),
    conversation(
        "Ich lerne Polnisch.", "Ich habe aufgehört, Polnisch zu lernen.", ended="language_polish"
    ),
    conversation("Ich heiße Anne.", "Ich heiße nicht Anne, sondern Hanne.", name="Hanne"),
    conversation("Ich lebe in Bern.", "Das stimmt nicht mehr.", ended="location"),
    conversation(
        *("Ich arbeite als Koch im Ratskeller.", "Ich bin jetzt in Rente."),
        ended="occupation",
    ),
    conversation("Ich habe einen Hund.", "Ich habe keinen Hund mehr.", ended="pet_dog"),
    conversation(
        *(
            "Ich heiße Tom, wohne in Kassel und arbeite bei Rheingold.",
            "Aus Kassel bin ich weggezogen.",
        ),
        name="Tom",
        employer="Rheingold",
        ended="location",
    ),
    # no corrections of what is known
    conversation("Ich wohne in Kiel.", "Mein Bruder wohnt nicht mehr in Kiel.", location="Kiel"),
    conversation("Ich wohne in Kiel.", "Ich wohne nicht mehr bei meinen Eltern.", location="Kiel"),
    conversation(
        *("Ich bin vegan.", "Es ist nicht so, dass ich vegan bin, weil es Mode ist."), diet="vegan"
    ),
    conversation(
        *(
            "Ich arbeite bei Orbion.",
            "Wenn ich bei Orbion kündige, was bekomme ich dann?",
            "Ich will Orbion verlassen.",
        ),
        employer="Orbion",
    ),
    conversation(
        *(
            "Mein Kater heißt Mio.",
            "In dem Buch heißt es: „Mio ist gestorben.“",
            "Ist Mio gestorben?",
        ),
        cat_name="Mio",
    ),
    conversation(
        *("Ich mag Jazz.", "Meine Freundin sagt, ich mag Jazz nicht mehr."),
        opinion_of_jazz="likes Jazz",
    ),
]
