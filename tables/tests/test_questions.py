"""Questions become plans: what is computed, what is not sure, what is none of a table's."""

import re
from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tables.questions.matching import found_values
from tables.questions.plan import Column, Plan, TableSchema, Unsure
from tables.questions.planner import plan_question
from tables.questions.words import fold_text, has_measure, parse_number

TODAY = date(2026, 4, 10)
BIKES = TableSchema(
    1,
    "Bikes",
    (
        Column("Model", values=("Ferry 300", "Ferry 500", "Trail X", "City Go"), is_unique=True),
        Column("Category", values=("Cargo", "City", "Trail")),
        Column("Price", "number", "EUR"),
        Column("Weight (kg)", "number", "kg"),
        Column("Delivery (days)", "number"),
    ),
    "price-list.xlsx",
)
EXPENSES = TableSchema(
    2,
    "Expenses",
    (
        Column("Date", "date", least=date(2026, 1, 3), most=date(2026, 3, 30)),
        Column("Category", values=("Travel", "Food", "Office supplies")),
        Column("Employee", values=("Ana Ruiz", "Bob Smith")),
        Column("Amount", "number", "EUR"),
    ),
    "expenses.csv",
)
INVOICES = TableSchema(
    3,
    "Rechnungen",
    (
        Column("Nummer", values=("R-1", "R-2", "R-3"), is_unique=True),
        Column("Kunde", values=("Adler GmbH", "Baum AG")),
        Column("Datum", "date", least=date(2025, 2, 1), most=date(2026, 2, 20)),
        Column("Betrag", "number", "EUR"),
        Column("Status", values=("offen", "bezahlt")),
    ),
    "rechnungen.csv",
)
DELIVERIES = TableSchema(
    4,
    "Deliveries",
    (
        Column("Supplier", values=("Norwerk", "Süd AG")),
        Column("Ordered", "date", least=date(2026, 1, 1), most=date(2026, 5, 1)),
        Column("Late", "boolean"),
        Column("Units", "number"),
        Column("Unit price", "number", "USD"),
    ),
    "deliveries.md",
)
STAFF = TableSchema(
    5,
    "Empleados",
    (
        Column("Nombre", values=("Luis", "Marta", "Eva"), is_unique=True),
        Column("Departamento", values=("Ventas", "Taller")),
        Column("Salario", "number", "EUR"),
        Column("Edad", "number"),
        Column("Ciudad", values=("Madrid", "Vigo")),
    ),
    "empleados.html",
)
TABLES = [BIKES, EXPENSES, INVOICES, DELIVERIES, STAFF]
MARCH = "Date from 2026-03-01 before 2026-04-01"


@pytest.mark.parametrize(
    ("question", "table", "computed"),
    [
        ("How many bikes cost more than 4,000?", 1, "count of rows where Price > 4,000"),
        ("How many bikes cost more than 4.000 euros?", 1, "count of rows where Price > 4,000"),
        (
            "How many bikes cost between 1,000 and 2,000 euros?",
            1,
            "count of rows where Price from 1,000 to 2,000",
        ),
        ("Which bikes weigh less than 20 kg?", 1, "Model where Weight (kg) < 20"),
        ("Which bike is the cheapest?", 1, "least of Price, first 1"),
        ("The two most expensive bikes", 1, "most of Price, first 2"),
        ("top 3 bikes by price", 1, "most of Price, first 3"),
        ("Which bike weighs the most?", 1, "most of Weight (kg), first 1"),
        ("How much does the Ferry 500 cost?", 1, "Price where Model = Ferry 500"),
        (
            "Is the Ferry 300 heavier than the City Go?",
            1,
            "Weight (kg), Model = Ferry 300 compared with Model = City Go",
        ),
        (
            "What is the difference in price between Ferry 300 and Ferry 500?",
            1,
            "Price, Model = Ferry 300 compared with Model = Ferry 500",
        ),
        (
            "What is the average price of the cargo bikes?",
            1,
            "mean of Price where Category = Cargo",
        ),
        (
            "How much did we spend on travel in March?",
            2,
            f"sum of Amount where {MARCH} and Category = Travel",
        ),
        (
            "What did we spend on office supplies in the first quarter?",
            2,
            "sum of Amount where Date from 2026-01-01 before 2026-04-01"
            " and Category = Office supplies",
        ),
        (
            "How much did Ana Ruiz spend last month?",
            2,
            f"sum of Amount where {MARCH} and Employee = Ana Ruiz",
        ),
        (
            "How many expenses were above 100 between January and February?",
            2,
            "count of rows where Amount > 100 and Date from 2026-01-01 before 2026-03-01",
        ),
        ("Total amount by category", 2, "sum of Amount, by Category"),
        (
            "Which category did we spend the most on?",
            2,
            "sum of Amount, by Category, most first, first 1",
        ),
        (
            "Did we spend more on travel or on food?",
            2,
            "sum of Amount, Category = Travel compared with Category = Food",
        ),
        (
            "Which month had the highest expenses?",
            2,
            "sum of Amount, by month of Date, most first, first 1",
        ),
        ("When was the last expense?", 2, "most of Date, first 1"),
        ("Wie viele Rechnungen sind offen?", 3, "count of rows where Status = offen"),
        (
            "Summe aller offenen Rechnungen pro Kunde",
            3,
            "sum of Betrag where Status = offen, by Kunde",
        ),
        (
            "Wie hoch ist der Gesamtbetrag der offenen Rechnungen von Adler?",
            3,
            "sum of Betrag where Kunde = Adler GmbH and Status = offen",
        ),
        (
            "Welcher Kunde hat die meisten Rechnungen?",
            3,
            "count of rows, by Kunde, most first, first 1",
        ),
        (
            "Which supplier was late most often?",
            4,
            "count of rows where Late = yes, by Supplier, most first, first 1",
        ),
        (
            "How many deliveries were not late?",
            4,
            "count of rows where Late = no",
        ),
        ("How many units were delivered by Norwerk?", 4, "sum of Units where Supplier = Norwerk"),
        ("How many suppliers do we have?", 4, "count of Supplier"),
        (
            "¿Cuántos empleados ganan más de 2.000 euros?",
            5,
            "count of rows where Salario > 2,000",
        ),
        (
            "¿Cuál es el salario medio por departamento?",
            5,
            "mean of Salario, by Departamento",
        ),
        ("¿Quién gana más?", 5, "most of Salario, first 1"),
        ("¿Cuántos empleados trabajan en Ventas?", 5, "count of rows where Departamento = Ventas"),
        ("Average salary of employees older than 40", 5, "mean of Salario where Edad > 40"),
        ("how many bikes cost over 4k", 1, "count of rows where Price > 4,000"),
        (
            "how much did we spend per month on average",
            2,
            "sum of Amount, by month of Date, averaged",
        ),
        ("share of spending on travel", 2, "share of Amount where Category = Travel"),
        (
            "how many expenses in february and march",
            2,
            "count of rows where Date from 2026-02-01 before 2026-04-01",
        ),
        (
            "expenses in the last 30 days",
            2,
            "Category where Date from 2026-03-12 before 2026-04-11",
        ),
        (
            "how many expenses last week",
            2,
            "count of rows where Date from 2026-03-30 before 2026-04-06",
        ),
        (
            "total spent in the first half of 2026",
            2,
            "sum of Amount where Date from 2026-01-01 before 2026-07-01",
        ),
        (
            "expenses from january until february",
            2,
            "Category where Date from 2026-01-01 before 2026-03-01",
        ),
        (
            "Ausgaben von Januar bis Februar nach Category",
            2,
            "sum of Amount where Date from 2026-01-01 before 2026-03-01, by Category",
        ),
        ("highest amount per employee", 2, "most of Amount, by Employee"),
        ("top 2 employees by amount", 2, "sum of Amount, by Employee, most first, first 2"),
        ("average number of expenses per employee", 2, "count of rows, by Employee, averaged"),
        ("which employees are there", 2, "count of rows, by Employee"),
        (
            "Wie viele Rechnungen sind noch nicht bezahlt?",
            3,
            "count of rows where Status != bezahlt",
        ),
        ("unbezahlte Rechnungen", 3, "Nummer where Status != bezahlt"),
        ("Wie viele verschiedene Kunden haben wir?", 3, "count of Kunde"),
        ("Anteil der offenen Rechnungen", 3, "share of rows where Status = offen"),
        (
            "Rechnungen über 1.000 Euro oder bezahlt",
            3,
            "Nummer where Betrag > 1,000 or Status = bezahlt",
        ),
        ("Kunde mit den meisten Rechnungen", 3, "count of rows, by Kunde, most first, first 1"),
        ("how many deliveries were on time", 4, "count of rows where Late = no"),
        ("how many deliveries per suplier", 4, "count of rows, by Supplier"),
        ("Porcentaje de empleados de Madrid", 5, "share of rows where Ciudad = Madrid"),
    ],
)
def test_sure_questions_are_planned(question: str, table: int, computed: str) -> None:
    plan = plan_question(question, TABLES, today=TODAY)
    assert isinstance(plan, Plan), plan
    assert plan.tables == (table,)
    described = plan.describe()
    head, _, condition = described.partition(" where ")
    wanted_head, _, wanted = computed.partition(" where ")
    assert head == wanted_head
    assert sorted(condition.split(" and ")) == sorted(wanted.split(" and "))


@pytest.mark.parametrize(
    "question",
    [
        "What is the battery's capacity?",  # no measure
        "How many days of leave do I have?",  # no table of leave
        "Why do most bikes cost more than 4,000?",
        "What is the median price of the bikes?",  # not computed
        "How do I claim travel expenses?",
        "Who is the most popular singer?",
        "How much does it weigh to be careful about nothing at all?",
        "What share of the open invoices of Adler is above 1000?",  # of what, is not sure
        "which customers have more than 2 invoices",  # compares a count of rows
        "how many bikes are above the average price",  # compared with a result
        "average invoices by customer",
        "How many expenses on February 30?",
        "employees where we spent more than 500",  # compares a sum
    ],
)
def test_other_questions_are_none_of_a_tables(question: str) -> None:
    assert not isinstance(plan_question(question, TABLES, today=TODAY), Plan)


def test_a_month_of_two_years_has_two_readings() -> None:
    """“In February” may be of 2026 or of 2025: the later one is named first."""
    found = plan_question("Wie viele Rechnungen im Februar?", [INVOICES], today=TODAY)
    assert isinstance(found, Unsure)
    assert [reading.describe() for reading in found.readings] == [
        "count of rows where Datum from 2026-02-01 before 2026-03-01",
        "count of rows where Datum from 2025-02-01 before 2025-03-01",
    ]


def test_an_unknown_word_is_named() -> None:
    found = plan_question("How many folding bikes cost more than 900?", TABLES, today=TODAY)
    assert isinstance(found, Unsure)
    assert found.unknown == ("folding",)


def test_a_word_is_understood_by_meaning() -> None:
    """Where a model says that the word is clearly nearest to a column of a table that is named."""

    def similarity(words: list[str], names: list[str]) -> list[list[float]]:
        assert words == ["coworker"]
        return [[0.9 if name == "Employee" else 0.3 for name in names] for _ in words]

    question = "Total expenses by coworker"
    found = plan_question(question, [EXPENSES], today=TODAY, similarity=similarity)
    assert isinstance(found, Plan)
    assert found.describe() == "sum of Amount, by Employee"
    assert not isinstance(plan_question(question, [EXPENSES], today=TODAY), Plan)


@pytest.mark.parametrize(
    ("question", "near"),
    [
        ("How much did we spend on meals in March?", "Food"),  # a value
        ("How many bikes have lights?", "Weight (kg)"),  # nothing is computed with it
        ("What is the mean of lights?", "Price"),  # its table is not named
        ("How many bikes have lamps?", "Lamps"),  # which another table has by name
    ],
)
def test_a_near_word_is_not_enough(question: str, near: str) -> None:
    def similarity(words: list[str], names: list[str]) -> list[list[float]]:
        return [[0.95 if name == near else 0.1 for name in names] for _ in words]

    lamps = TableSchema(9, "Rooms", (Column("Room", is_unique=True), Column("Lamps", "boolean")))
    found = plan_question(question, [*TABLES, lamps], today=TODAY, similarity=similarity)
    assert not isinstance(found, Plan)


def test_tables_of_one_shape_are_asked_as_one() -> None:
    second = TableSchema(12, "Expenses", EXPENSES.columns, "expenses-april.csv")
    plan = plan_question("How much did we spend on travel?", [EXPENSES, second], today=TODAY)
    assert isinstance(plan, Plan)
    assert plan.tables == (2, 12)


def test_a_table_is_chosen_by_its_name() -> None:
    columns = EXPENSES.columns[1:]
    files = [
        TableSchema(number, "Expenses", columns, f"expenses-{month}.csv")
        for number, month in enumerate(("january", "february", "march"), 20)
    ]
    plan = plan_question("How much did we spend on travel in March?", files, today=TODAY)
    assert isinstance(plan, Plan)
    assert plan.tables == (22,)


def test_a_mean_of_single_amounts_or_of_months_has_two_readings() -> None:
    found = plan_question("average amount per month", [EXPENSES], today=TODAY)
    assert isinstance(found, Unsure)
    assert [reading.describe() for reading in found.readings] == [
        "sum of Amount, by month of Date, averaged",
        "mean of Amount, by month of Date",
    ]


def test_two_columns_of_a_row_are_compared() -> None:
    stock = TableSchema(
        8,
        "Stock",
        (
            Column("Part", values=("Chain", "Tyre"), is_unique=True),
            Column("On hand", "number"),
            Column("Reorder level", "number"),
        ),
    )
    plan = plan_question("which parts are below the reorder level?", [stock], today=TODAY)
    assert isinstance(plan, Plan)
    assert plan.describe() == "Part where On hand < Reorder level"


@pytest.mark.parametrize(
    ("word", "meant"),
    [
        ("travle", "Travel"),  # two letters swapped
        ("travl", "Travel"),
        ("trevor", None),  # two mistakes
        ("bob", None),  # too short
        ("gravel", None),  # mistakes are rare in the first letter
    ],
)
def test_a_misspelt_word_is_the_only_one_near(word: str, meant: str | None) -> None:
    found = plan_question(f"how many expenses for {word}", [EXPENSES], today=TODAY)
    if meant is None:
        assert not isinstance(found, Plan) or found.corrected == ()
    else:
        assert isinstance(found, Plan)
        assert found.corrected == ((word, meant),)
        assert found.describe() == f"count of rows where Category = {meant}"


def test_a_word_that_two_names_are_near_to_is_not_corrected() -> None:
    cities = TableSchema(
        9, "Trips", (Column("City", values=("Marston", "Marlton")), Column("Fare", "number", "EUR"))
    )
    found = plan_question("how many trips to marxton", [cities], today=TODAY)
    assert isinstance(found, Unsure)
    assert found.unknown == ("marxton",)


def test_another_currency_is_not_compared() -> None:
    found = plan_question("How many bikes cost more than 4,000 dollars?", [BIKES], today=TODAY)
    assert found is None


@pytest.mark.parametrize(
    ("word", "language", "value"),
    [
        ("1,234.5", "en", 1234.5),
        ("1.234,5", "de", 1234.5),
        ("1.5", "de", 1.5),
        ("4.000", "en", 4000.0),
        ("4.500", "en", None),  # either way
        ("12", "es", 12.0),
    ],
)
def test_numbers_of_languages(word: str, language: str, value: float | None) -> None:
    assert parse_number(word, language) == value


def test_questions_without_a_measure_word() -> None:
    assert not has_measure("Tell me about the brakes")
    assert has_measure("Wie viele Räder gibt es?")
    assert has_measure("hours per project")
    assert has_measure("receipts this week")


def test_a_table_that_is_called_as_what_is_asked_for_goes_before_columns_that_are() -> None:
    fleet = TableSchema(
        6, "The fleet", (Column("Place", values=("Kiel", "Bonn")), Column("Bikes", "number"))
    )
    damage = TableSchema(
        7, "Damage", (Column("Age of the bike"), Column("Present value", "number", "EUR"))
    )
    for question in ("How many bikes cost more than 4,000?", "Which bike is the cheapest?"):
        plan = plan_question(question, [fleet, damage, BIKES], today=TODAY)
        assert isinstance(plan, Plan)
        assert (plan.tables, plan.columns[2]) == ((BIKES.id,), "Price")


@given(
    st.lists(st.text("aAéÉe\u0301\n\r\x85 .x", max_size=6)),
    st.text("aeé .", min_size=1, max_size=2),
)
def test_values_are_found_as_each_would_be(values: list[str], word: str) -> None:
    pattern = re.compile(re.escape(fold_text(word)))
    each = [value for value in values if pattern.search(fold_text(value.replace("\n", " ")))]
    assert list(found_values(pattern, values)) == each
