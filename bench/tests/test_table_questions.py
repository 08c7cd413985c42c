"""Questions of Spider to tables with made rows. Skipped, visibly, where the set is not on the
machine."""

from datetime import date
from pathlib import Path

import pytest

from bench.table_questions import made_databases
from documents.ingestion.sources import discover
from documents.models import Collection
from documents.services import ingest_inline
from tables.asking import TableAnswer, ask_tables
from tables.evaluation import counts, evaluate, load_questions
from tables.models import Table

FOLDER = Path(__file__).resolve().parents[3] / "shared" / "data" / "spider_schema"
pytestmark = [
    pytest.mark.django_db,
    pytest.mark.usefixtures("media_root"),
    pytest.mark.shared_data,
    pytest.mark.skipif(not FOLDER.is_dir(), reason="spider_schema is not on this machine"),
]


@pytest.mark.parametrize("name", ["concert_singer", "employee_hire_evaluation", "poker_player"])
def test_what_is_computed_is_what_the_sql_of_spider_gives(
    collection: Collection, tmp_path: Path, name: str
) -> None:
    made = next(each for each in made_databases(FOLDER) if each.name == name)
    made.write(tmp_path)
    ingest_inline(collection=collection, sources=discover(sorted(tmp_path.glob("*.csv"))))

    def ask(question: str) -> TableAnswer:
        return ask_tables(question, Table.objects.current(), today=date(2026, 4, 10))

    asked = evaluate(load_questions(tmp_path), ask)
    found = counts(asked)
    assert len(asked) == len(made.questions) >= 10
    assert found["right"] >= 0.7 * len(asked), asked
    assert found["wrong"] == 0, asked


def test_the_rows_are_the_same_each_time(tmp_path: Path) -> None:
    for folder in (tmp_path / "first", tmp_path / "second"):
        next(made_databases(FOLDER)).write(folder)
    for path in (tmp_path / "first").iterdir():
        assert path.read_bytes() == (tmp_path / "second" / path.name).read_bytes()
