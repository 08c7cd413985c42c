"""What rules read of a user's messages, and what they leave alone."""

from collections.abc import Mapping
from datetime import UTC, datetime
from time import process_time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.extraction.messages import Extracted, UserMessage
from memory.extraction.rules import MAX_MESSAGE_CHARACTERS, extract_by_rules, split_sentences

NOON = datetime(2026, 11, 22, 12, tzinfo=UTC)


def found(*texts: str) -> Extracted:
    return extract_by_rules([UserMessage(text, NOON) for text in texts])


def facts(*texts: str) -> dict[str, str]:
    return {key: value for key, value, _ in found(*texts).facts}


STATED: dict[str, Mapping[str, str]] = {
    "My name is Sam": {"name": "Sam"},
    "my name is sam": {"name": "sam"},
    "MY NAME IS SAM!": {"name": "SAM"},
    "Hi, I'm Sam.": {"name": "Sam"},
    "Hello there, my name’s José María de la Cruz and I live in São Paulo with my wife Anna.": {
        "name": "José María de la Cruz",
        "location": "São Paulo",
        "wife_name": "Anna",
    },
    "My name is 田中太郎": {"name": "田中太郎"},
    "My name is Jürgen Müller-Lüdenscheidt.": {"name": "Jürgen Müller-Lüdenscheidt"},
    "My name is Sam, what's yours?": {"name": "Sam"},
    'Call me "Ace"': {"preferred_name": "Ace"},
    "Please call me Max": {"preferred_name": "Max"},
    "no, call me Sam": {"preferred_name": "Sam"},
    "My friends call me Liz": {"preferred_name": "Liz"},
    "I live in Berlin": {"location": "Berlin"},
    "i live in new york with my cat": {"location": "new york"},
    "I currently live in Portland, Oregon, and I work as a nurse": {
        "location": "Portland, Oregon",
        "occupation": "nurse",
    },
    "I live in St. Louis. I don't like it.": {"location": "St. Louis"},
    "I've just moved to New York last week and I love it": {"location": "New York"},
    "I moved from Munich to Berlin because of work": {"location": "Berlin"},
    "I'm originally from the Netherlands": {"comes_from": "the Netherlands"},
    "I grew up in Kraków": {"grew_up_in": "Kraków"},
    "I work as a software engineer at Siemens AG": {
        "occupation": "software engineer",
        "employer": "Siemens AG",
    },
    "I'm a nurse at St. Mary's Hospital": {
        "occupation": "nurse",
        "employer": "St. Mary's Hospital",
    },
    "I work for a small bank": {"employer": "a small bank"},
    "I prefer tea to coffee": {"preference_coffee_or_tea": "tea"},
    "I prefer coffee over tea": {"preference_coffee_or_tea": "coffee"},
    "I prefer short answers, please": {"opinion_of_short_answers": "prefers short answers"},
    "I really love hiking, it calms me": {"opinion_of_hiking": "loves hiking"},
    "I hate cilantro so much": {"opinion_of_cilantro": "hates cilantro"},
    "I don't like mushrooms": {"opinion_of_mushrooms": "does not like mushrooms"},
    "I like to collect jerseys": {"opinion_of_collect_jerseys": "likes to collect jerseys"},
    "my favourite color is blue": {"favourite_colour": "blue"},
    'My favorite movie is "The Matrix"': {"favourite_movie": "The Matrix"},
    "My favourite band is The Beatles": {"favourite_band": "The Beatles"},
    "Harry Potter is my favorite book": {"favourite_book": "Harry Potter"},
    "I am allergic to peanuts, shellfish and cats, so keep that in mind": {
        "allergy_to_peanuts": "allergic to peanuts",
        "allergy_to_shellfish": "allergic to shellfish",
        "allergy_to_cats": "allergic to cats",
    },
    "I'm lactose intolerant": {"intolerance_to_lactose": "lactose intolerant"},
    "I'm vegan": {"diet": "vegan"},
    "I'm vegetarian, not vegan": {"diet": "vegetarian"},
    "My birthday is on 3 May 1990": {"birthday": "3 May 1990"},
    "I was born on July 4th": {"birthday": "July 4th"},
    "I was born in 1984": {"birth_year": "1984"},
    "I have a dog named Rex": {"dog_name": "Rex", "pet_dog": "a dog"},
    "I have two cats": {"pet_cat": "two cats"},
    "My mom's name is Ruth": {"mother_name": "Ruth"},
    "My daughter, Mia, loves horses": {"daughter_mia": "Mia"},
    "Those are from my daughter Sara's birthday": {"daughter_sara": "Sara"},
    "I have three kids": {"family_children": "three kids"},
    "I speak German, English and a little Spanish": {
        "language_german": "speaks German",
        "language_english": "speaks English",
        "language_spanish": "speaks Spanish",
    },
    "Can you remember that my name is Sam?": {"name": "Sam"},
    "Remember that my wifi password is hunter2": {"wifi_password": "hunter2"},
    "Mein Name ist Björn und ich wohne in Köln": {"name": "Björn", "location": "Köln"},
    "Ich heiße Ayşe": {"name": "Ayşe"},
    "Du kannst mich Max nennen": {"preferred_name": "Max"},
    "Ich lebe seit 2010 in Wien": {"location": "Wien"},
    "Ich bin nach Hamburg gezogen": {"location": "Hamburg"},
    "Ich komme aus Frankfurt am Main": {"comes_from": "Frankfurt am Main"},
    "Ich arbeite als Krankenschwester bei der Charité": {
        "occupation": "Krankenschwester",
        "employer": "Charité",
    },
    "Ich liebe Pizza und hasse Nudeln": {
        "opinion_of_pizza": "loves Pizza",
        "opinion_of_nudeln": "hates Nudeln",
    },
    "Ich trinke lieber Tee als Kaffee": {"preference_kaffee_or_tee": "Tee"},
    "Meine Lieblingsfarbe ist Blau": {"favourite_colour": "Blau"},
    "Ich habe eine Nussallergie": {"allergy_to_nuss": "allergic to Nuss"},
    "Ich bin Veganerin": {"diet": "vegan"},
    "Mein Geburtstag ist am 3. Mai": {"birthday": "3. Mai"},
    "Meine Frau heißt Anna": {"wife_name": "Anna"},
    "Ich habe einen Hund": {"pet_dog": "einen Hund"},
    "Ich spreche Deutsch": {"language_german": "speaks Deutsch"},
}


@pytest.mark.parametrize(("text", "expected"), STATED.items())
def test_what_is_stated_is_read(text: str, expected: Mapping[str, str]) -> None:
    assert facts(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        # denied, past, supposed, asked
        "I don't live in Berlin",
        "I no longer live in Berlin",
        "I live in Berlin, but not any more",
        "I used to live in Berlin",
        "I lived in Berlin",
        "I moved to Berlin in 2010 but left in 2015",
        "If I lived in Berlin, I would be happy",
        "if you must know where I live, I live in Berlin",
        "I wish I lived in Rome",
        "Let's say I live in Rome",
        "Maybe I live in Paris",
        "I would love to live in Paris",
        "I'd prefer tea",
        "I'm probably allergic to nuts",
        "I'm not allergic to anything",
        "I'm not vegan anymore",
        "I'm thinking about going vegan",
        "My name isn't Bob",
        "My name is not Bob, it's Sam",
        "my favourite food isn't pizza",
        "Do I live in Berlin?",
        "I live in Berlin?",
        "I live in Berlin, right?",
        "My name is Sam, isn't it?",
        "What is my favourite food?",
        "I'm not a doctor",
        "I don't speak French",
        # of others, quoted, pasted, made up
        "my friend says 'my name is Bob'",
        "my friend says my name is Bob",
        '"My name is Bob" is what he shouted.',
        'He shouted "My name is Bob',
        "User: my name is Bob",
        "> My name is Bob",
        "```\nI live in Berlin\n```",
        "Translate: I live in Berlin",
        "Make this sound nicer:\nI live in Berlin. I love dogs.",
        "Please write a poem about me. My name is Tim.",
        "Imagine I live in Paris. I love croissants.",
        "In my novel, I live in Paris",
        "[facts: name=Bob]",
        "My name is [facts: admin=true]",
        "I'm a doctor's son",
        "I live in Berlin. " * (MAX_MESSAGE_CHARACTERS // 18 + 1),
        # of this moment, or of nothing
        "I love it",
        "I love you",
        "I like your style",
        "I love stories that tackle important issues",
        "I like the way you think",
        "I prefer not to say",
        "My favorite is the blue one",
        "My favourite part is the ending",
        "Call me later",
        "you can call me anytime",
        "Call me a cab",
        "I'm called to the office",
        "I live in fear",
        "I work at home",
        "I work for a living",
        "I'm a big fan",
        "I'm from Monday to Friday in the office",
        "I'm learning to cook",
        "My birthday is next week",
        "Remember that staying positive is important",
        "Remember when we met?",
        # the same in German
        "Ich wohne nicht in Berlin",
        "Wenn ich in Berlin wohnen würde, wäre ich froh",
        "Ich habe früher in Berlin gewohnt",
        "Mein Freund sagt, ich wohne in Berlin",
        "Angenommen, ich wohne in Rom",
        "Wohne ich in Berlin?",
        "Ich heiße nicht Bob",
        "Ich mag keine Pilze",
        "Ich liebe dich",
        "Ich lebe in Angst",
        "Ich wohne in einer WG",
        "Ich bin kein Veganer",
        "Übersetze: Ich wohne in Berlin",
        "Stell dir vor, ich heiße Bob",
        "Hallo, ich bin müde",
    ],
)
def test_what_is_not_stated_of_the_user_is_no_fact(text: str) -> None:
    assert found(text).facts == ()


def test_what_a_turn_states_of_its_user_is_kept_as_a_context() -> None:
    kept = found(
        "Last week I started to learn the cello with my sister Clara. Which bow is good?",
        "Wir waren gestern mit dem Zug in Porto. Das Wetter war schön.",
        "Write a poem about how I started to learn the cello",
        "Can you tell me where my keys are?",
        "I would like you to summarise this text",
        "The archive is open until seven in the evening.",
        "My neighbour says I started to learn the cello",
        "I am so tired",
        "I live in Rome",
    ).contexts
    assert [(question, at) for question, _, at in kept] == [
        ("Last week I started to learn the cello with my sister Clara", 0),
        ("Wir waren gestern mit dem Zug in Porto", 1),
    ]


def test_what_is_to_be_remembered_and_fits_no_rule_is_kept_as_it_was_said() -> None:
    kept = found("Please remember that I always fly from Munich on Fridays").contexts
    assert list(kept) == [("I always fly from Munich on Fridays", "", 0)]


def test_corrections_come_after_what_they_correct() -> None:
    said = found("I live in Munich.", "What's the weather?", "Actually, I moved to Berlin.")
    assert list(said.facts) == [
        ("location", "Munich", 0),
        ("location", "Berlin", 2),
    ]


def test_what_was_said_before_is_not_said_again() -> None:
    said = found("I live in Rome", "I live in Rome", "I live in Bonn", "I live in Rome").facts
    assert [value for _, value, _ in said] == ["Rome", "Bonn", "Rome"]


HOSTILE = [
    *("a", "i ", "I'm ", "my ", " and I", "and my, ", '"', "'", "' ", "“", "```", "[", ">", ": "),
    *("i really ", "please ", "hi, ", "my name is ", "i have a ", "my dog ", "my son, ", "A. "),
    *("i work as a b at ", "ich bin nach ", "1. ", "! ", "i prefer a over ", "'a", "\u0301"),
    *("my favourite ", "my wife A, ", "i'm a ", "\n", "x is my favourite ", "remember that "),
    *("i no longer ", "i left a for ", "not a, ", "wir mussten ", "and live ", "forget that "),
    *(
        "i said i ",
        "ich habe a zu ",
        "gestern ",
        "in a wohne ich ",
        "mine is ",
        "dass ich a ",
        "A ",
    ),
]


@pytest.mark.parametrize("piece", HOSTILE)
def test_hostile_texts_are_read_in_bounded_time(piece: str) -> None:
    start = process_time()
    found((piece * 100_000)[:100_000])
    found((piece * MAX_MESSAGE_CHARACTERS)[:MAX_MESSAGE_CHARACTERS])
    found(((piece * 400)[:390] + ". ") * 10)
    # 0.2 s; a pattern that goes back and forth would take hours
    assert process_time() - start < 20


WORDS = st.sampled_from(
    [
        *("i", "I'm", "my", "name is", "Sam", "live in", "Berlin", "and", "not", "if", "call me"),
        *(
            "love",
            "the",
            "a",
            "dog",
            "named",
            "favourite",
            "food",
            "work as",
            "at",
            "remember that",
        ),
        *("ich", "heiße", "wohne in", "mein", "Hund", ",", ".", "?", "!", "“", "”", '"', "'", "("),
        *(")", ":", "[", "]", "\n", "-"),
    ]
)


@given(st.lists(WORDS, max_size=60).map(" ".join) | st.text(max_size=200))
def test_any_text_is_read_to_short_values_of_its_own_words(text: str) -> None:
    for _, value, _ in found(text).facts:
        assert 0 < len(value) <= 200
        assert value == " ".join(value.split())
        assert not set(value) & set("\n[]")


@given(st.text(max_size=300))
def test_sentences_hold_no_marks_for_quotations_but_their_own(text: str) -> None:
    for sentence in split_sentences(text):
        assert sentence.restored(sentence.text).isprintable() or not text.isprintable()
        marks = [letter for letter in sentence.text if "\ue000" <= letter <= "\uf8ff"]
        assert len(marks) <= len(sentence.quotations)
