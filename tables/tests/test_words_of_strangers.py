"""Questions in other words than the tables': short headers, codes, compounds, verbs."""

from datetime import date

import pytest

from tables.questions.plan import Column, Plan, TableSchema, Unsure
from tables.questions.planner import plan_question

TODAY = date(2026, 11, 29)
_DAYS = {"type": "date", "least": date(2025, 1, 3), "most": date(2025, 12, 30)}

PLOTS = TableSchema(
    1,
    "",
    (
        Column("Parz.", values=("R01", "R02", "A05"), is_unique=True),
        Column("Weg", values=("Rosenweg", "Amselweg")),
        Column("qm", "number"),
        Column("Strom", "boolean"),
        Column("Rückst. €", "number"),
    ),
    title="Parzellen 2026.csv",
)
WINES = TableSchema(
    2,
    "",
    (
        Column("Bezeichnung", values=("Casa Morelli", "Chateau Rouge"), is_unique=True),
        Column("Farbe", values=("rot", "weiß")),
        Column("Land", values=("Italien", "Frankreich")),
        Column("Flaschen im Bestand", "number"),
        Column("Preis", "number", "EUR"),
    ),
    title="Weinkeller.csv",
)
DONORS = TableSchema(
    3,
    "",
    (
        Column("Fecha", **_DAYS),
        Column("Nº donante", values=("D-1", "D-2"), is_unique=True),
        Column("Sexo", values=("M", "H")),
        Column("Edad", "number"),
        Column("1ª vez", "boolean"),
    ),
    title="donaciones.csv",
)
BAKERY = TableSchema(
    4,
    "",
    (
        Column("Date", **_DAYS),
        Column("Day", values=("Mon", "Sat", "Sun")),
        Column("Coffees", "number"),
        Column("Takings €", "number"),
    ),
    title="Bakery sales.xlsx",
)
FLATS = TableSchema(
    5,
    "",
    (
        Column("Obj.-Nr.", values=("M-1", "M-2"), is_unique=True),
        Column("Zi.", "number"),
        Column("Kaltmiete", "number", "EUR"),
        Column("NK", "number", "EUR"),
        Column("Balkon", "boolean"),
    ),
    title="mietangebote.md",
)
FOOD = TableSchema(
    6,
    "",
    (
        Column("Fecha", **_DAYS),
        Column("Qué", values=("Arroz", "Pasta", "Fruta")),
        Column("Kg", "number"),
    ),
    title="Repartos.xlsx",
)
FOUNTAINS = TableSchema(
    7,
    "",
    (
        Column("Brunnen", values=("Pfarrbrunnen", "Marktbrunnen"), is_unique=True),
        Column("Baujahr", "number"),
        Column("Trinkwasser", "boolean"),
        Column("letzte Wartung", **_DAYS),
    ),
    title="Brunnen.html",
)
BIKES = TableSchema(
    8,
    "",
    (
        Column("Job", "number"),
        Column("Date in", **_DAYS),
        Column("Bike", values=("e-bike", "city bike")),
        Column("Works", values=("Lane closure", "Full closure", "Full service")),
        Column("Price", "number", "GBP"),
        Column("Collected?", "boolean"),
    ),
    title="workshop jobs.csv",
)
BILLS = TableSchema(
    9,
    "",
    (
        Column("Client", values=("Brightwater", "Acme")),
        Column("Issued", **_DAYS),
        Column("Net", "number", "GBP"),
        Column("VAT", "number", "GBP"),
    ),
    title="Invoices.csv",
)
EPISODES = TableSchema(
    10,
    "",
    (
        Column("Season", "number"),
        Column("Title", values=("Harbour", "Night"), is_unique=True),
        Column("Downloads", "number"),
    ),
    title="episodes.md",
)


@pytest.mark.parametrize(
    ("question", "table", "computed"),
    [
        # Headers in short
        ("Welche Parzelle hat die größte Fläche?", PLOTS, "most of qm, first 1"),
        (
            "Wie groß ist ein Garten im Rosenweg durchschnittlich?",
            PLOTS,
            "mean of qm where Weg = Rosenweg",
        ),
        ("Wie viel Geld ist je Weg noch offen?", PLOTS, "sum of Rückst. €, by Weg"),
        ("Wie viele Gärten haben keinen Stromanschluss?", PLOTS, "count of rows where Strom = no"),
        (
            "¿Cuántos kilos de fruta repartimos en marzo?",
            FOOD,
            "sum of Kg where Fecha from 2025-03-01 before 2025-04-01 and Qué = Fruta",
        ),
        # Compounds
        ("Was ist der teuerste Rotwein?", WINES, "most of Preis where Farbe = rot, first 1"),
        ("Flaschenbestand pro Land", WINES, "sum of Flaschen im Bestand, by Land"),
        (
            "Wie viele Dreizimmerwohnungen mit Balkon haben wir?",
            FLATS,
            "count of rows where Zi. = 3 and Balkon = yes",
        ),
        # Codes and short names of values
        (
            "¿Cuántas mujeres han donado por primera vez?",
            DONORS,
            "count of rows where Sexo = M and 1ª vez = yes",
        ),
        ("what do we take on an average Saturday?", BAKERY, "mean of Takings € where Day = Sat"),
        (
            "Which weekday do we sell the most coffee on?",
            BAKERY,
            "sum of Coffees, by Day, most first, first 1",
        ),
        ("How many ebikes came in?", BIKES, "count of rows where Bike = e-bike"),
        (
            "How many full closures were there?",
            BIKES,
            "count of rows where Works = Full closure",
        ),
        # Two of them
        (
            "How many more downloads did season 3 get than season 2?",
            EPISODES,
            "sum of Downloads, Season = 3 compared with Season = 2",
        ),
        (
            "¿Cuántos kilos más de arroz que de pasta hubo?",
            FOOD,
            "sum of Kg, Qué = Arroz compared with Qué = Pasta",
        ),
        (
            "Unterschied der mittleren Kaltmiete mit und ohne Balkon",
            FLATS,
            "mean of Kaltmiete, Balkon = yes compared with Balkon = no",
        ),
        # What is meant
        (
            "how many bikes haven't been picked up yet?",
            BIKES,
            "count of rows where Collected? = no",
        ),
        (
            "how much did the jobs bring in in April",
            BIKES,
            "sum of Price where Date in from 2025-04-01 before 2025-05-01",
        ),
        ("Was ist der älteste Brunnen?", FOUNTAINS, "least of Baujahr, first 1"),
        (
            "An wie vielen Brunnen kann man das Wasser trinken?",
            FOUNTAINS,
            "count of rows where Trinkwasser = yes",
        ),
        (
            "What did I bill Brightwater, without the VAT?",
            BILLS,
            "sum of Net where Client = Brightwater",
        ),
    ],
)
def test_words_that_the_table_does_not_have(
    question: str, table: TableSchema, computed: str
) -> None:
    found = plan_question(question, [table], today=TODAY)
    assert isinstance(found, Plan), found
    assert found.describe() == computed


@pytest.mark.parametrize(
    ("question", "tables"),
    [
        # Revenue is no cost, and a noun in the place of an adjective says which rows.
        ("How much revenue did the invoices from Acme generate in euros?", [BILLS]),
        ("How many vegan bikes came in for a full service?", [BIKES]),
        # Nothing says which of them.
        ("How many were more than 50 pounds?", [BIKES, BILLS]),
    ],
)
def test_what_is_not_sure_is_not_computed(question: str, tables: list[TableSchema]) -> None:
    assert not isinstance(plan_question(question, tables, today=TODAY), Plan)


def test_the_readings_differ_in_what_they_compute() -> None:
    found = plan_question("How many were more than 50 pounds?", [BIKES, BILLS], today=TODAY)
    assert isinstance(found, Unsure)
    assert len({reading.describe() for reading in found.readings}) == 2
