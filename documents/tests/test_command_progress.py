"""What commands say of a run while it goes on."""

import pytest

from documents.management import cli
from documents.management.cli import ProgressLines, progress_line
from documents.models import IngestionItem
from documents.tests.factories import ItemFactory, RunFactory
from tests.plugin import wait_until

State = IngestionItem.State


@pytest.mark.django_db
def test_a_line_says_how_far_a_run_is_and_at_which_files() -> None:
    run = RunFactory(total=1200, ready=1, failed=1, embedded=4321)
    for name in ("a.xml", "b.xml", "c.xml", "d.xml"):
        ItemFactory(run=run, name=name, state=State.EMBEDDING)
    ItemFactory(run=run, name="z.xml", state=State.READY)
    assert progress_line(run) == (
        "2 of 1,200 documents done, 4,321 chunks embedded, 1 failed; at a.xml, b.xml, c.xml, …"
    )


@pytest.mark.django_db(transaction=True)
def test_lines_come_while_the_run_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cli, "LINE_SECONDS", 0.01)
    run = RunFactory(total=1)
    ItemFactory(run=run, name="large.xml", state=State.EMBEDDING)
    said: list[str] = []
    with ProgressLines(said.append) as lines:
        lines.show_run(run)
        wait_until(lambda: said, what="a line was written")
    assert "0 of 1 document done, 0 chunks embedded, 0 failed; at large.xml" in said[0]
    assert lines._thread is not None
    assert not lines._thread.is_alive()
