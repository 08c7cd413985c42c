"""Tables: none, those of a collection, the rows of one, filtered, none that fits, refused."""

from documents.ingestion.sources import Source
from documents.services import ingest_inline
from tables.models import Table
from tests.matrix.states import State, World

EXPENSES = (
    "Date;Kind;Remark of the one who spent it;Amount (EUR);Paid\n"
    + "".join(
        f"2026-03-{day:02};Travel;Train to {'Neustadt ' * (day % 4 + 1)};1.{day:03},50;yes\n"
        for day in range(1, 29)
    )
    + "2026-03-29;Food;"
    + "w" * 90
    + ";80,25;no\n"
)


def _expenses(world: World) -> None:
    data = EXPENSES.encode()
    source = Source("expenses.csv", "expenses.csv", len(data), lambda: data)
    ingest_inline(collection=world.office, sources=[source])


def _address(world: World) -> str:
    return f"/tables/{Table.objects.get(document__key='expenses.csv').pk}/"


STATES = [
    State(
        "none", lambda world: f"/documents/{world.empty.slug}/tables/", "text=No tables here yet"
    ),
    State("rows", _address, "text=29 rows", prepare=_expenses),
    State(
        "sorted",
        lambda world: _address(world) + "?sort=Amount+%28EUR%29&words=food&descending=1",
        "text=Show all rows",
    ),
    State("nothing", lambda world: _address(world) + "?words=bikes", "text=No row fits"),
    State(
        "refused",
        lambda world: _address(world) + "?sort=Nothing",
        "text=no column",
        expected=("status of 400",),
    ),
    State("some", lambda world: f"/documents/{world.office.slug}/tables/", "text=Expenses"),
]
