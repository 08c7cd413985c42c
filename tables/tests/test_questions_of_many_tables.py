"""Questions over tables of different things at once: the one that is spoken of is asked."""

from datetime import date

import pytest

from tables.questions.plan import Column, Plan, TableSchema
from tables.questions.planner import plan_question

TODAY = date(2026, 4, 10)
VANS = TableSchema(
    1,
    "",
    (
        Column("Plate", values=("AB 12", "AB 13", "CD 4"), is_unique=True),
        Column("Vehicle", values=("Ford Transit", "VW Caddy")),
        Column("Branch", values=("Leeds", "York")),
        Column("Registered", "date", least=date(2020, 1, 1), most=date(2024, 6, 1)),
        Column("Mileage km", "number"),
        Column("Lease per month", "number", "GBP"),
        Column("Fuel (l/100 km)", "number"),
        Column("Tow bar", "boolean"),
        Column("Insured until", "date", least=date(2026, 1, 1), most=date(2027, 6, 1)),
    ),
    "Fleet 2026 fleet-2026.csv",
)
GIFTS = TableSchema(
    2,
    "Spenden",
    (
        Column("Datum", "date", least=date(2025, 1, 3), most=date(2025, 12, 30)),
        Column("Spender", values=("Ida Storm", "Otto Lange")),
        Column("Aktion", values=("Spielplatz", "Bibliothek")),
        Column("Betrag", "number", "EUR"),
    ),
    "spenden-2025.csv",
)
PARTY = TableSchema(
    3,
    "Kosten Weihnachtsfeier",
    (
        Column("Posten", values=("Saal", "Essen", "Musik"), is_unique=True),
        Column("Geplant", "number", "EUR"),
        Column("Bezahlt", "number", "EUR"),
    ),
    "weihnachtsfeier.docx",
)
STAYS = TableSchema(
    4,
    "Reservas",
    (
        Column("Reserva", values=("R1", "R2", "R3"), is_unique=True),
        Column("Huésped", values=("Ana", "Luis", "Eva"), is_unique=True),
        Column("Entrada", "date", least=date(2026, 7, 1), most=date(2026, 8, 30)),
        Column("Salida", "date", least=date(2026, 7, 3), most=date(2026, 9, 2)),
        Column("Noches", "number"),
        Column("Importe", "number", "EUR"),
        Column("Canal", values=("Web", "Agencia")),
    ),
    "reservas.ods",
)
WALKS = TableSchema(
    5,
    "Senderos",
    (
        Column("Sendero", values=("Cuerda Larga", "Siete Picos"), is_unique=True),
        Column("Longitud (km)", "number", "km"),
        Column("Zona", values=("Norte", "Sur")),
    ),
    "senderos.html",
)
LICENSES = TableSchema(
    6,
    "Licenses",
    (
        Column("Software", values=("Ink", "Cad"), is_unique=True),
        Column("Seats", "number"),
        Column("Seats used", "number"),
        Column("Cost per year", "number", "GBP"),
        Column("Renewal date", "date", least=date(2026, 1, 1), most=date(2026, 12, 1)),
        Column("Auto-renew", "boolean"),
    ),
    "it.xlsx",
)
TABLES = [VANS, GIFTS, PARTY, STAYS, WALKS, LICENSES]


def _plan(question: str) -> Plan | None:
    found = plan_question(question, TABLES, today=TODAY)
    return found if isinstance(found, Plan) else None


@pytest.mark.parametrize(
    ("question", "table", "computed"),
    [
        ("Wie viele Autos haben mehr als 90.000 km?", 1, "count of rows where Mileage km > 90,000"),
        ("how many cars have a tow bar", 1, "count of rows where Tow bar = yes"),
        ("What do we pay for the lease per month in total?", 1, "sum of Lease per month"),
        ("lease per month by branch", 1, "sum of Lease per month, by Branch"),
        (
            "Does Leeds pay more lease than York?",
            1,
            "sum of Lease per month, Branch = Leeds compared with Branch = York",
        ),
        ("Which vehicles are the oldest?", 1, "least of Registered, first 1"),
        ("Which van uses the most fuel?", 1, "most of Fuel (l/100 km), first 1"),
        (
            "When does the insurance of the VW Caddy run out?",
            1,
            "Insured until where Vehicle = VW Caddy",
        ),
        ("die drei größten Spenden", 2, "most of Betrag, first 3"),
        ("top 2 Spender", 2, "sum of Betrag, by Spender, most first, first 2"),
        (
            "How much did we raise in June 2025?",
            2,
            "sum of Betrag where Datum from 2025-06-01 before 2025-07-01",
        ),
        ("durchschnittliche Spende je Aktion", 2, "mean of Betrag, by Aktion"),
        ("Was hat die Weihnachtsfeier insgesamt gekostet?", 3, "sum of Bezahlt"),
        (
            "Wie viele Posten haben mehr als 300 Euro gekostet?",
            3,
            "count of rows where Bezahlt > 300",
        ),
        ("What was planned for the Weihnachtsfeier in total?", 0, ""),
        ("importe medio por reserva", 4, "mean of Importe"),
        ("average nights per booking", 4, "mean of Noches"),
        (
            "¿Cuántas reservas entran en julio?",
            4,
            "count of rows where Entrada from 2026-07-01 before 2026-08-01",
        ),
        (
            "¿Cuántas reservas hay en agosto?",
            4,
            "count of rows where Entrada from 2026-08-01 before 2026-09-01",
        ),
        ("reservas que pasan de 400 euros", 4, "Reserva where Importe > 400"),
        (
            "¿Ingresamos más por la web o por la agencia?",
            4,
            "sum of Importe, Canal = Web compared with Canal = Agencia",
        ),
        ("sendero más largo", 5, "most of Longitud (km), first 1"),
        (
            "¿Cuántos kilómetros suman los senderos del norte?",
            5,
            "sum of Longitud (km) where Zona = Norte",
        ),
        ("which software costs more than 2k a year", 6, "Software where Cost per year > 2,000"),
        ("Which licences are not set to auto-renew?", 6, "Software where Auto-renew = no"),
        (
            "which licences renew in June",
            6,
            "Software where Renewal date from 2026-06-01 before 2026-07-01",
        ),
    ],
)
def test_the_table_that_is_spoken_of_is_asked(question: str, table: int, computed: str) -> None:
    found = _plan(question)
    assert ((found.tables[0], found.describe()) if found else (0, "")) == (table, computed)


@pytest.mark.parametrize(
    "question",
    [
        "Wie viele Spender sind über 60?",  # euros or years
        "How many seats are unused?",
        "How much did we raise from bookings?",
        "Wer hat die meisten Fahrzeuge?",  # no column says who
        "How much did the potty cost?",  # which is no mistake for another word
    ],
)
def test_a_wrong_number_is_worse_than_none(question: str) -> None:
    assert _plan(question) is None


GYM = TableSchema(
    1,
    "Sheet1",
    (
        Column("Full name", values=("Ada Byron", "Tom Reed"), is_unique=True),
        Column("Plan", values=("Gold", "Basic", "Student")),
        Column("Monthly fee", "number", "EUR"),
        Column("Joined", "date", least=date(2025, 1, 3), most=date(2026, 3, 30)),
        Column("Paid", "boolean"),
        Column("Visits", "number"),
    ),
    "gym-2026.csv",
)
PARTS = TableSchema(
    2,
    "",
    (
        Column("Item", values=("Oak board", "Screw M8", "Table leg"), is_unique=True),
        Column("Stock", "number"),
        Column("Unit price", "number", "EUR"),
        Column("Supplier", values=("Holz Meier", "Fixit")),
    ),
    "parts.csv",
)


@pytest.mark.parametrize(
    ("question", "computed"),
    [
        ("how many members have the gold plan", "count of rows where Plan = Gold"),
        ("Number of unpaid gold memberships", "count of rows where Plan = Gold and Paid = no"),
        ("top 3 members by visits", "most of Visits, first 3"),
        (
            "I'd like to know the total of fees of student members",
            "sum of Monthly fee where Plan = Student",
        ),
        ("how many women have the gold plan", ""),
        ("How much insurance do gold members pay?", ""),
        ("How many screws m8 do we have in stock?", "sum of Stock where Item = Screw M8"),
        ("Könnten Sie mir bitte sagen, was ausverkauft ist?", "Item where Stock is empty"),
        ("Which items are out of stock?", "Item where Stock is empty"),
        ("¿Me podéis decir qué está agotado?", "Item where Stock is empty"),
        ("How many were planted in 2025?", ""),
        ("How many unicorns cost more than 20 euros?", ""),
        ("How many tenants have the gold plan?", "count of rows where Plan = Gold"),
    ],
)
def test_a_noun_for_the_rows_may_be_in_no_name(question: str, computed: str) -> None:
    found = plan_question(question, [GYM, PARTS], today=TODAY)
    assert (found.describe() if isinstance(found, Plan) else "") == computed


CHOIR = TableSchema(
    1,
    "",
    (
        Column("Name", values=("Elke Esser", "Uwe Wirtz"), is_unique=True),
        Column("Jahresbeitrag", "number", "EUR"),
        Column("Beitrag bezahlt", "boolean"),
        Column("Student", values=("Eva", "Jan")),
    ),
    "chor.csv",
)


@pytest.mark.parametrize(
    ("question", "computed"),
    [
        (
            "Wie viel Beitrag steht noch aus?",
            "sum of Jahresbeitrag where Beitrag bezahlt = no",
        ),
        (
            "Wie viel Jahresbeitrag ist noch offen?",
            "sum of Jahresbeitrag where Beitrag bezahlt = no",
        ),
        ("How many teachers have not paid?", ""),
    ],
)
def test_what_is_outstanding_is_not_paid(question: str, computed: str) -> None:
    found = plan_question(question, [CHOIR], today=TODAY)
    assert (found.describe() if isinstance(found, Plan) else "") == computed


TREES = TableSchema(
    1,
    "Bäume",
    (
        Column("Baum-Nr.", values=("B-1", "B-2"), is_unique=True),
        Column("Pflanzjahr", "number"),
        Column("Letzte Kontrolle", "date", least=date(2025, 1, 3), most=date(2026, 3, 30)),
        Column("Fällung geplant", "boolean"),
    ),
    "baumkataster.xlsx",
)
BAKERY = TableSchema(
    2,
    "",
    (
        Column("Producto", values=("Barra de pan", "Croissant", "Tarta 2019")),
        Column("Fecha", "date", least=date(2019, 1, 3), most=date(2026, 3, 30)),
        Column("Precio unitario", "number", "EUR"),
        Column("Importe", "number", "EUR"),
    ),
    "reparto.csv",
)
STEPS = TableSchema(
    3,
    "Price list",
    (
        Column("Model", values=("A1", "B2"), is_unique=True),
        Column("1 to 149", "number", "USD"),
        Column("150 and more", "number", "USD"),
    ),
    "list.xlsx",
)
MONTHS = TableSchema(
    4,
    "Plan",
    (
        Column("Day", "date", least=date(2026, 1, 3), most=date(2026, 6, 30)),
        Column("Post", values=("Rent", "Power")),
        Column("April 2026", "number", "GBP"),
    ),
    "plan.xlsx",
)
LOANS = TableSchema(
    5,
    "Préstamos",
    (
        Column("Título del libro", values=("Niebla", "Nada")),
        Column("Devuelto", "boolean"),
    ),
    "biblioteca.xlsx",
)


@pytest.mark.parametrize(
    ("question", "table", "computed"),
    [
        (
            "Wie viele Bäume wurden vor 1960 gepflanzt?",
            TREES,
            "count of rows where Pflanzjahr < 1,960",
        ),
        (
            "Wie viele Bäume wurden zwischen 1950 und 1960 gepflanzt?",
            TREES,
            "count of rows where Pflanzjahr from 1,950 to 1,960",
        ),
        ("Wie viele Bäume sind von 1960?", TREES, ""),
        (
            "¿Cuánto cuesta la barra de pan?",
            BAKERY,
            "Precio unitario where Producto = Barra de pan",
        ),
        ("Was kostet ein Croissant?", BAKERY, "Precio unitario where Producto = Croissant"),
        ("How much is the croissant?", BAKERY, "Precio unitario where Producto = Croissant"),
        ("¿Cuánto vale la tarta 2019?", BAKERY, "Precio unitario where Producto = Tarta 2019"),
        (
            "Which model has the highest price for 150 and more?",
            STEPS,
            "most of 150 and more, first 1",
        ),
        ("How much was spent per month?", MONTHS, ""),
        ("¿Cuántos libros no se han devuelto?", LOANS, "count of rows where Devuelto = no"),
    ],
)
def test_years_and_prices_that_columns_have(
    question: str, table: TableSchema, computed: str
) -> None:
    found = plan_question(question, [table], today=TODAY)
    assert (found.describe() if isinstance(found, Plan) else "") == computed


@pytest.mark.parametrize(
    "asked",
    [
        "Would you mind telling me how many members have the gold plan? Many thanks in advance!",
        "Weißt du, wie viele Mitglieder Gold haben?",
        "Guten Tag, ich hätte gern gewusst, wie viele Mitglieder Gold haben",
        "Mich würde interessieren, wie viele Mitglieder Gold haben",
        "Buenos días, quería saber cuántos miembros son Gold",
        "¿Alguien sabe cuántos miembros son Gold? Muchas gracias",
    ],
)
def test_what_is_said_out_of_politeness_changes_nothing(asked: str) -> None:
    found = plan_question(asked, [GYM, PARTS], today=TODAY)
    assert isinstance(found, Plan)
    assert found.describe() == "count of rows where Plan = Gold"
