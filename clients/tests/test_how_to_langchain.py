"""The examples of the page on LangChain, LangGraph and agents, run as they stand there."""

import re
import subprocess
import sys

import pytest

from documents.ingestion.items import Item
from documents.ingestion.sources import discover
from documents.services import ingest_inline, store_items
from documents.tests.factories import CollectionFactory, MembershipFactory
from rag.tests.conftest import ROOT, SiteProcess
from rag.tests.mcp_world import secret_of

pytestmark = [pytest.mark.django_db, pytest.mark.nightly]

PAGE = ROOT / "docs" / "how-to" / "use-with-langchain.md"
MOVING = "In March we move to the new house."


@pytest.fixture(scope="module")
def secret(committed: None, tmp_path_factory: pytest.TempPathFactory) -> str:
    member = MembershipFactory(user__username="demo")
    leaflets = CollectionFactory(workspace=member.workspace, slug="leaflets")
    folder = tmp_path_factory.mktemp("leaflets")
    (shown,) = re.findall(r"echo '(.*?)' > leaflets/aspirin.json", PAGE.read_text())
    (folder / "aspirin.json").write_text(shown)
    ingest_inline(collection=leaflets, sources=list(discover([folder])))
    collection = CollectionFactory(workspace=member.workspace, slug="notes")
    store_items(collection=collection, items=[Item("house", MOVING, title="The house")])
    return secret_of(member)


def test_every_program_on_the_page_runs(
    site: SiteProcess, site_environment: dict[str, str], secret: str
) -> None:
    programs = "\f".join(re.findall(r"```python\n(.*?)```", PAGE.read_text(), flags=re.DOTALL))
    # In one process, each by itself: to load LangChain takes seconds.
    each = "import sys\nfor program in sys.stdin.read().split('\\f'):\n"
    each += "    exec(program, {'__name__': '__main__'})\n    print('\\f', end='')"
    ended = subprocess.run(
        [sys.executable, "-c", each],
        input=programs.replace("http://localhost:8000", site.url).replace("rs_…", secret),
        env={**site_environment, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert ended.returncode == 0, ended.stderr
    said = ended.stdout.removesuffix("\f").split("\f")
    on_the_server, _, elsewhere, langchain, langgraph = said
    assert re.search(r"moving \d+ We move in March\.", on_the_server)
    assert elsewhere.strip() == MOVING
    assert f"The house {MOVING}" in langchain
    assert "id='canteen'" in langchain
    assert langgraph.strip() == MOVING
