"""The documentation names every setting, code, command, check and model, and has no dead link."""

import inspect
import pkgutil
import re
from importlib import import_module
from pathlib import Path
from typing import get_args

import pytest
from django.core.management import get_commands

import inference.backends
from common.options import option_fields
from documents.demo_corpus import docs_sources, firm_pages, firm_sources
from documents.ingestion.containers import with_parts
from ragsite.bootstrap import OWN_APPS
from ragsite.environment import SIGN_IN
from reading.chunkers import CHUNKERS
from reading.chunkers.options import ChunkerOptions
from reading.parsers import ParseError
from scripts import python_reference
from sources.connectors import kinds

ROOT = Path(__file__).resolve().parent.parent
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
REFERENCE = ROOT / "docs" / "reference"


def test_every_environment_variable_is_described() -> None:
    settings = (ROOT / "ragsite" / "settings.py").read_text()
    variables = set(re.findall(r'env\.(?!models|sign_in)\w+\(\s*"([A-Z_]+)"', settings))
    for kind in re.findall(r'env\.models\(\s*"([A-Z]+)"', settings):
        variables |= {f"{kind}_BACKEND", f"{kind}_OPTIONS", f"{kind}S"}
    shared = set.intersection(*map(set, SIGN_IN.values()))
    for kind, names in SIGN_IN.items():
        variables |= {f"RAGSITE_{kind}_{name}" for name in set(names) - shared}
    described = (REFERENCE / "settings.md").read_text()
    assert len(variables) > 15
    assert {name for name in variables | shared if f"`{name}`" not in described} == set()


def test_every_error_code_of_a_file_is_described() -> None:
    codes = get_args(ParseError.__init__.__annotations__["code"])
    described = (REFERENCE / "errors.md").read_text()
    assert len(codes) > 5
    assert {code for code in codes if f"`{code}`" not in described} == set()


def test_every_command_of_ours_is_described() -> None:
    ours = {name for name, app in get_commands().items() if app in OWN_APPS}
    described = (REFERENCE / "commands.md").read_text()
    assert len(ours) > 4
    assert {name for name in ours if not re.search(rf"\b{name}\b", described)} == set()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_no_link_is_dead(page: Path) -> None:
    targets = re.findall(r"\]\(([^)#\s]+)", page.read_text())
    local = [
        target for target in targets if "://" not in target and not target.startswith("mailto:")
    ]
    assert [target for target in local if not (page.parent / target).exists()] == []


@pytest.mark.parametrize("chunker", CHUNKERS)
def test_every_chunker_is_described_with_its_options(chunker: str) -> None:
    page = (REFERENCE / "chunkers.md").read_text()
    rows = [row.split(" | ") for row in re.findall(r"^\| (.+) \|$", page, re.MULTILINE)]
    assert sum(row[0] == f"`{chunker}`" and len(row) == 3 for row in rows) == 1
    described = {
        (row[1], row[2], row[3]) for row in rows if len(row) == 4 and f"`{chunker}`" in row[0]
    }
    meanings = {
        name: option.description.partition(" Default:")[0]
        for name, option in option_fields(ChunkerOptions).items()
    }
    assert described == {
        (f"`{name}`", str(default), meanings[name])
        for name, default in CHUNKERS[chunker].defaults.items()
    }


def test_every_system_check_is_described() -> None:
    described = (REFERENCE / "checks.md").read_text()
    ids = {
        number
        for source in ROOT.glob("*/checks.py")
        for number in re.findall(r'id="(\w+\.[EW]\d+)"', source.read_text())
    }
    assert len(ids) > 5
    assert {number for number in ids if f"`{number}`" not in described} == set()


BACKENDS = [
    backend
    for module in pkgutil.iter_modules(inference.backends.__path__, "inference.backends.")
    for name, backend in inspect.getmembers(import_module(module.name), inspect.isclass)
    if backend.__module__ == module.name and name.endswith(("Embedder", "Reranker", "Chat"))
]


@pytest.mark.parametrize("backend", BACKENDS, ids=lambda backend: backend.__name__)
def test_every_model_backend_is_described_with_its_options(backend: type) -> None:
    page = (REFERENCE / "models.md").read_text()
    overview, *sections = page.split("\n## ")
    path = f"{backend.__module__}.{backend.__name__}".removeprefix("inference.backends.")
    assert f"`{path}`" in overview
    own = next(text for text in sections if backend.__name__ in text.splitlines()[0])
    others = re.findall(r"\(#(\w+)\)", own)
    described = own + "".join(text for text in sections if text.splitlines()[0].lower() in others)
    options = inspect.signature(backend).parameters
    assert {name for name in options if f"`{name}`" not in described} == set()


@pytest.mark.parametrize("page", ["README.md", "docs/tutorial.md"])
def test_pages_say_as_many_documents_of_the_demo_as_there_are(page: str) -> None:
    entries = list(with_parts([*firm_sources(), *firm_pages(), *docs_sources()]))
    said = re.findall(r"reads (\d+) documents of the demo", (ROOT / page).read_text())
    assert said == [str(len(entries))]


def test_every_kind_of_source_is_named_by_its_command() -> None:
    (row,) = re.findall(r"^\| `kinds` \|(.*)$", (REFERENCE / "commands.md").read_text(), flags=re.M)
    assert sorted(re.findall(r"`(\w+)`", row)) == sorted(kinds())


def test_the_python_reference_is_made_of_the_docstrings_that_there_are() -> None:
    _, mark, generated = python_reference.PAGE.read_text().partition(python_reference.MARK)
    assert mark
    assert generated.strip() == python_reference.reference().strip()
    for name in ("archive_turn", "search_memory", "ingest_sources"):
        assert f"### {name}" in generated
    for module, names in python_reference.SHOWN.items():
        undescribed = [name for name in names if not getattr(import_module(module), name).__doc__]
        assert undescribed == []
