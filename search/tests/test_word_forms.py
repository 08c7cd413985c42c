"""Words are found as people type them: without accents, in parts, in another notation."""

from importlib import import_module

import numpy as np
import pytest
from django.db import connection

from documents import lexical_differences, lexical_index, services
from documents.compounds import Splitter
from documents.ingestion.items import Item
from documents.models import Collection, Posting
from documents.tests.factories import CollectionFactory
from search.query_options import site_scope
from search.services import search
from search.snippets import identifier_matches

#: A text, and what is typed for a word of it.
TYPED = {
    "Die Straße nach Köln ist gesperrt.": "Strasse STRASSE Koeln Koln",
    "Wir trafen uns in Orléans im Café.": "Orleans cafe",
    "Zoë und Chloé kamen spät.": "Zoe Chloe spaet spat",
    "Łódź leży w Polsce, mówi Żółkiewska.": "Lodz lezy Zolkiewska mowi",
    "Nguyễn Thị Minh Khai sống ở Hà Nội.": "nguyen song noi",
    "København og Ærø ligger ved Øresund.": "Kobenhavn Koebenhavn Oresund",
    "Malmö är en stad, Ångström en enhet.": "Malmo Malmoe Angstrom",
    "The encyclopædia mentions the œuvre, a naïve façade.": "encyclopaedia oeuvre naive facade",
    "The ﬂight of the oﬃce.": "flight office",
    "Ｆｕｌｌ ｗｉｄｔｈ": "full width",
    "Příliš žluťoučký kůň úpěl ďábelské ódy": "prilis zlutoucky kun dabelske",
    "Szép őszi nap volt Győrben": "szep oszi gyorben",
    "El niño pidió jalapeños mañana": "nino jalapenos manana",
    "Işık Şahin ısırgan otu içti": "isik sahin isirgan icti",
    "Ёлка и её ёж": "елка еж",
    "Η Αθήνα είναι η πρωτεύουσα": "Αθηνα ΑΘΗΝΑ πρωτευουσα",
    "ذهب أحمد إلى المكتبة لقراءة شَجَرَة": "احمد الي المكتبه شجرة",
    "این کتاب را می‌خوانم": "كتاب اين",
    "שָׁלוֹם לְכָל הָעוֹלָם": "שלום",
    "getUserById returns a record.": "get_user_by_id getUserById",
    "Call fetch_order_items first.": "fetchOrderItems fetchorderitems",
    "The part AB-1234 replaces XZ 9876.": "ab1234 AB-1234 1234 XZ9876 xz-9876",
    "Python 3.11.4 and v4.0.0-rc1 of the tool.": "3.11 v4 4.0.0 3.11.4 v4.0",
    "Order 12/345-A/77 was shipped.": "12/345-A/77 12345A77",
    "On 2024-03-01 we paid 1,234.50 dollars.": "2024-03-01 1234.50 1,234.50",
    "Am 01.03.2024 zahlten wir 9.876,50 Euro.": "01.03.2024 9.876,50",
    "The wi-fi needs no e-mail nor co-operation.": "wifi email cooperation wi-fi",
    "We use C++ at AT&T.": "C++ AT&T",
    "Everything in C# there.": "C#",
    "It binds CO₂ of 400 m² and H₂O": "co2 CO₂ m2 m² h2o H2O",
    "Rods of ²³⁵U, as a note¹ says": "235U note ²³⁵U",
    "A film of 5\u00b5m on 10\u2126": "5\u03bcm 5\u00b5m 10\u03a9",
    "A gap of 6\u03bcm and E = mc2": "6\u00b5m mc²",
    "Rocket 🚀 launch and ☕ break": "🚀 ☕",
    "Krankenversicherungskarte im Handschuhfach": "Versicherung Karte Fach Handschuh",
    "De arbeidsongeschiktheidsverzekering is betaald": "verzekering",
}


@pytest.fixture
def collection(db: None) -> Collection:
    made: Collection = CollectionFactory(default_language="")
    items = [
        Item(str(number), text, np.eye(1, 384, number)[0]) for number, text in enumerate(TYPED)
    ]
    services.store_items(collection=made, items=items)
    return made


def found(collection: Collection, typed: str) -> list[str]:
    scope = site_scope(workspace=collection.workspace)
    return [hit.document_key for hit in search(typed, scope=scope, mode="lexical", k=3).hits]


def test_what_people_type_finds_the_text(collection: Collection) -> None:
    lexical_index.index_pending(collection.pk)
    missed = [
        typed
        for number, words in enumerate(TYPED.values())
        for typed in words.split()
        if found(collection, typed)[:1] != [str(number)]
    ]
    assert missed == []
    assert not lexical_differences.find_differences(collection.pk, sample=10**6)


def test_forms_are_found_while_their_texts_are_pending(collection: Collection) -> None:
    assert found(collection, "Orleans") == found(collection, "Orléans") == ["1"]
    assert found(collection, "get_user_by_id") == ["19"]
    assert not lexical_differences.find_differences(collection.pk)


def test_the_exact_spelling_comes_first(db: None) -> None:
    collection = CollectionFactory(default_language="en")
    texts = {"plain": "to Orleans", "accented": "to Orléans", "part": "the Sonnenblume",
             "whole": "the Blume"}  # fmt: skip
    items = [Item(key, text, np.eye(1, 384, n)[0]) for n, (key, text) in enumerate(texts.items())]
    services.store_items(collection=collection, items=items)
    lexical_index.index_pending(collection.pk)
    assert found(collection, "Orleans") == ["plain", "accented"]
    assert found(collection, "Orléans") == ["accented", "plain"]
    assert found(collection, "Blume") == ["whole", "part"]


def test_forms_and_parts_of_deleted_texts_are_in_no_table(collection: Collection) -> None:
    lexical_index.index_pending(collection.pk)
    assert Posting.objects.filter(lexeme__in=["\x01orlean", "\x02versicherung"]).count() == 2
    services.delete_items(collection=collection, keys=list(map(str, range(len(TYPED)))))
    assert not Posting.objects.exclude(lexeme="").exists()


def test_texts_of_an_older_release_are_indexed_again(collection: Collection) -> None:
    lexical_index.index_pending(collection.pk)
    Posting.objects.filter(lexeme__in=["\x01co2", "\x01m2"]).delete()
    assert found(collection, "co2") == []
    import_module("documents.migrations.0028_small_digits").index_small_digits(None, None)
    assert [found(collection, "co2"), found(collection, "m2")] == [["29"], ["29"]]


@pytest.mark.parametrize(
    ("query", "text", "marked"),
    [
        ("ab1234", "the AB-1234 part", ["AB-1234"]),
        ("get_user_by_id", "call getUserById()", ["getUserById"]),
        ("user", "call getUserById()", ["User"]),
        ("3.11", "Python 3.11.4, not 13.11", ["3.11.4"]),
        ("v4", "the v4.0.0-rc1 of it", ["v4.0.0-rc1"]),
        ("C++", "in C and C++", ["C++"]),
        ("🚀", "a 🚀 start", ["🚀"]),
        ("1234.50", "paid 1,234.50", ["1,234.50"]),
        ("co2 m²", "CO₂ for a m2", ["CO₂", "m2"]),
        ("acgt", "acgt" * 50_000, []),  # in a step a letter, or it would take half an hour
    ],
)
def test_identifiers_are_marked_in_any_notation(query: str, text: str, marked: list[str]) -> None:
    assert [text[start:end] for start, end in identifier_matches(query, text)] == marked


def test_forms_of_a_long_row_of_numbers_are_none_of_its_beginnings(db: None) -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT ragsite_forms('simple', %s, '')", ["1.2." * 50_000])
        assert cursor.fetchone() == ([],)


def test_forms_of_many_words_are_compared_with_the_words_at_once(db: None) -> None:
    text = " ".join(f"Ä{n}" for n in range(20_000))
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT cardinality(ragsite_forms('simple', said, to_tsvector('simple', said)))"
            " FROM (VALUES (%s)) AS given (said)",
            [text],
        )
        # Ä10 → A10 Ae10 10, and once Ä
        assert cursor.fetchone() == (3 * 20_000 - 9,)


def test_folded_words_are_marked(collection: Collection) -> None:
    hit = search("orleans", scope=site_scope(workspace=collection.workspace), mode="lexical").hits[
        0
    ]
    text = hit.snippet.text
    assert [text[start:end] for start, end in hit.snippet.highlights] == ["Orléans"]


@pytest.mark.parametrize(
    ("language", "word", "parts"),
    [
        ("german", "Krankenversicherungskarte",
         {"krankenversicherung", "kranken", "versicherung", "karte"}),
        ("german", "Heizkostenabrechnung",
         {"heizkosten", "heiz", "kosten", "abrechnung", "kostenabrechnung"}),
        ("german", "Mietvertrag", {"miet", "vertrag"}),
        ("german", "Millionen", set()),
        ("german", "Entscheidung", set()),
        ("german", "Unternehmen", set()),
        ("german", "handschuhfach", set()),
        ("dutch", "ziekenhuis", {"zieken", "huis"}),
        ("dutch", "ministerie", set()),
    ],
)  # fmt: skip
def test_compounds_are_split_into_known_words(language: str, word: str, parts: set[str]) -> None:
    assert Splitter(language, ()).parts(f"{word} {'x ' * 100}") == parts


def test_compounds_are_split_by_the_words_of_the_collection() -> None:
    splitter = Splitter("swedish", {"försäkring", "avgift", "sjuk"})
    assert {"sjuk", "avgiften"} <= splitter.parts("Sjukförsäkringsavgiften höjdes " + "x " * 100)
