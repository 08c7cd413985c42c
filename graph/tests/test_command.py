"""`manage.py graph` as a person and as a program use it."""

import gzip
import io
import json
import sys
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from django.core.management import CommandError, call_command

from accounts.models import Workspace
from documents.models import Collection
from documents.tests.factories import (
    ChunkFactory,
    CollectionFactory,
    DocumentFactory,
    WorkspaceFactory,
)
from graph.models import Edge, Extraction, Node
from graph.tests.factories import make_edge, make_extracted, make_mention, make_node

pytestmark = pytest.mark.django_db
HOSTILE = "[bold red]x[/] \u202eabc"


@pytest.fixture
def workspace() -> Workspace:
    return Workspace.objects.filter(slug="default").first() or WorkspaceFactory(slug="default")


def told(capsys: Any, *arguments: str) -> str:
    """What the command prints."""
    capsys.readouterr()
    call_command("graph", *arguments)
    return str(capsys.readouterr().out)


def data(capsys: Any, *arguments: str) -> Any:
    """What it prints as JSON."""
    return json.loads(told(capsys, *arguments, "--json"))


def write(file: Path, *lines: Any) -> str:
    file.write_text("\n".join(json.dumps(line, ensure_ascii=False) for line in lines))
    return str(file)


ADA = {"node": {"id": "src:ada", "name": "Ada Lovelace", "labels": ["Person"]}}
ENGINE = {"node": {"id": "src:engine", "name": "Analytical Engine", "props": {"built": False}}}
PROGRAMMED = {"edge": {"source": "src:ada", "rel": "PROGRAMMED", "target": "src:engine"}}


@pytest.fixture
def imported(workspace: Workspace, tmp_path: Path, capsys: Any) -> Any:
    """Two nodes and an edge, and what the command said."""
    return data(capsys, "import", write(tmp_path / "graph.jsonl", PROGRAMMED, ADA, ENGINE))


def test_a_file_is_imported_once(imported: Any, tmp_path: Path, capsys: Any) -> None:
    assert (imported["nodes_created"], imported["edges_created"], imported["stubs"]) == (2, 1, 0)
    again = data(capsys, "import", str(tmp_path / "graph.jsonl"))
    assert {again[name] for name in again if name != "taken"} == {0}
    changed = write(tmp_path / "other.jsonl", {"node": {"id": "src:engine", "props": {"x": 1}}})
    assert "1 changed" in told(capsys, "import", changed)
    assert Node.objects.get(key="src:engine").props == {"built": False, "x": 1}
    told(capsys, "import", changed, "--replace-props")
    assert Node.objects.get(key="src:engine").props == {"x": 1}


def test_a_file_is_imported_from_standard_input_and_compressed(
    workspace: Workspace, tmp_path: Path, capsys: Any, monkeypatch: Any
) -> None:
    lines = "\n".join(map(json.dumps, (PROGRAMMED, ADA, ENGINE))).encode()
    (tmp_path / "graph.jsonl.gz").write_bytes(gzip.compress(lines))
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(lines)))

    assert data(capsys, "import", "-")["edges_created"] == 1
    assert data(capsys, "import", str(tmp_path / "graph.jsonl.gz"))["edges_created"] == 0


def test_the_graph_is_looked_at(imported: Any, capsys: Any) -> None:
    assert data(capsys, "stats")["nodes"] == 2
    assert "2 nodes, 1 edge" in told(capsys, "stats")
    (found,) = data(capsys, "find", "ada l")
    assert (found["id"], found["labels"]) == ("src:ada", ["Person"])
    assert data(capsys, "find", "ada l", "--label", "Town") == []
    assert data(capsys, "show", "src:engine")["props"] == {"built": False}
    page = told(capsys, "show", "src:engine")
    assert "Analytical Engine" in page
    assert "false" in page

    (beside,) = data(capsys, "neighbors", "src:ada")["neighbors"]
    assert (beside["id"], beside["rel"], beside["direction"]) == (
        "src:engine",
        "PROGRAMMED",
        "out",
    )
    assert "PROGRAMMED" in told(capsys, "neighbors", "src:engine", "--direction", "in")
    assert data(capsys, "neighbors", "src:ada", "--rel", "OTHER")["total"] == 0

    way = data(capsys, "path", "src:engine", "src:ada")
    assert [node["id"] for node in way["nodes"]] == ["src:engine", "src:ada"]
    assert "← PROGRAMMED" in told(capsys, "path", "src:engine", "src:ada")
    none = data(capsys, "path", "src:engine", "src:ada", "--direction", "out")
    assert (none["found"], none["nodes"]) == (False, [])
    assert "no way" in told(capsys, "path", "src:engine", "src:ada", "--direction", "out")


def test_nodes_are_merged_after_a_look(imported: Any, capsys: Any) -> None:
    merging = ("merge", "src:ada", "src:engine")
    looked = data(capsys, *merging, "--dry-run")
    assert Node.objects.count() == 2
    assert "1 node would go" in told(capsys, *merging, "--dry-run")
    assert data(capsys, *merging) == looked
    assert (Node.objects.count(), Edge.objects.count()) == (1, 0)
    assert data(capsys, "show", "src:engine")["id"] == "src:ada"


def test_what_is_exported_is_imported_elsewhere(
    imported: Any, workspace: Workspace, tmp_path: Path, capsys: Any
) -> None:
    collection = CollectionFactory(workspace=workspace, slug="notes")
    chunk = ChunkFactory(document=DocumentFactory(collection=collection, key="a.md"))
    make_mention(chunk, Node.objects.get(key="src:ada"))
    make_extracted("ent:name:found", chunk)
    WorkspaceFactory(slug="elsewhere")
    file = str(tmp_path / "graph.jsonl.gz")

    assert told(capsys, "export", "--format", "jsonl", "-o", file) == ""
    done = data(capsys, "import", file, "--workspace", "elsewhere")
    assert (done["nodes_created"], done["edges_created"]) == (2, 1)
    again = str(tmp_path / "again.jsonl")
    told(capsys, "export", "--format", "jsonl", "-o", again, "--workspace", "elsewhere")
    with gzip.open(file) as first:
        assert first.read() == Path(again).read_bytes()

    told(capsys, "export", "--format", "jsonl", "-o", again, "--extracted")
    assert "ent:name:found" in Path(again).read_text()


def test_ends_that_are_documents_are_exported_by_their_ids(
    workspace: Workspace, tmp_path: Path, capsys: Any
) -> None:
    collection = CollectionFactory(workspace=workspace, slug="notes")
    document = DocumentFactory(collection=collection, key="a.md")
    chunk = ChunkFactory(document=document)
    ends = [
        make_node(f"doc:{document.pk}", workspace=workspace, document=document),
        make_node(f"chunk:{chunk.pk}", workspace=workspace, chunk=chunk),
        make_node("src:b", workspace=workspace),
    ]
    make_edge(ends[0], "ABOUT", ends[2])
    make_edge(ends[1], "ABOUT", ends[2])
    file = tmp_path / "graph.jsonl"

    told(capsys, "export", "--format", "jsonl", "-o", str(file))
    edges = [json.loads(line).get("edge") for line in file.read_text().splitlines()]
    sources = [edge["source"] for edge in edges if edge]
    assert sources == ["doc:notes:a.md", "chunk:notes:a.md:0"]
    assert data(capsys, "import", str(file))["edges_created"] == 0


def test_graphs_are_exported_for_other_programs(
    workspace: Workspace, tmp_path: Path, capfdbinary: Any
) -> None:
    make_edge(
        make_node("src:ada", workspace=workspace), "KNOWS", make_node("src:b", workspace=workspace)
    )
    call_command("graph", "export")
    root = ElementTree.fromstring(capfdbinary.readouterr().out)
    assert len(root.findall(".//{http://graphml.graphdrawing.org/xmlns}node")) == 2
    file = tmp_path / "graph.json"
    call_command("graph", "export", "--format", "json", "--around", "src:ada", "-o", str(file))
    assert len(json.loads(file.read_text())["elements"]["nodes"]) == 2


def test_documents_that_wait_are_read_here_and_now(workspace: Workspace, capsys: Any) -> None:
    collection = CollectionFactory(workspace=workspace, slug="notes")
    off = CollectionFactory(workspace=workspace, slug="off", graph=Collection.Graph.OFF)
    for each in (collection, off):
        text = "The engine of Charles Babbage was never built. Charles Babbage planned it."
        ChunkFactory(document=DocumentFactory(collection=each, key="a.md"), text=text)

    queued = data(capsys, "reextract", "--collection", "notes")
    assert (queued["queued"], queued["state"]["waiting"]) == (1, 1)
    (state,) = data(capsys, "extractions", "--collection", "notes")
    assert (state["graph"], state["waiting"], state["done"]) == ("rules", 1, 0)
    (state,) = data(capsys, "extract")
    assert (state["collection"], state["waiting"], state["done"]) == ("notes", 0, 1)
    assert "babbage" in told(capsys, "find", "babbage").casefold()
    assert "documents waiting to be read again: 1" in told(
        capsys, "reextract", "--collection", "notes"
    )
    assert "documents waiting to be read again: 0" in told(
        capsys, "reextract", "--collection", "notes", "--stale"
    )
    with pytest.raises(CommandError, match="not read for the graph"):
        call_command("graph", "reextract", "--collection", "off")


def test_documents_that_were_given_up_are_told_by_exit_code_1(
    workspace: Workspace, capsys: Any
) -> None:
    collection = CollectionFactory(workspace=workspace, slug="notes")
    Extraction.objects.create(
        workspace=workspace,
        collection=collection,
        document=DocumentFactory(collection=collection),
        state=Extraction.State.DEAD,
    )
    with pytest.raises(SystemExit) as end:
        call_command("graph", "extract", "--json")
    assert end.value.code == 1
    assert json.loads(capsys.readouterr().out)[0]["dead"] == 1


@pytest.mark.parametrize(
    ("arguments", "cure"),
    [
        (["stats", "--workspace", "nowhere"], "There is no workspace “nowhere”"),
        (["show", "src:nothing"], "There is no node “src:nothing”"),
        (["neighbors", "src:a", "-n", "0"], "limit must be from 1"),
        (["merge", "src:a", "src:nothing"], "These nodes do not exist: “src:nothing”"),
        (["import", "/nowhere/at/all"], "No such file"),
        (["export", "-o", "/nowhere/at/all"], "No such file"),
        (["export", "--format", "json"], "--around"),
        (["export", "--format", "jsonl", "--around", "src:a"], "Leave --around out"),
        (["export", "--around", "src:nothing"], "None of these"),
        (["extract", "--collection", "nothing"], "There is no collection"),
        (["reextract"], "required"),
    ],
)
def test_what_cannot_be_is_said(workspace: Workspace, arguments: list[str], cure: str) -> None:
    make_node("src:a", workspace=workspace)
    with pytest.raises(CommandError, match=cure):
        call_command("graph", *arguments, stderr=io.StringIO())
    assert Node.objects.count() == 1


def test_stored_text_is_neither_markup_nor_moves_the_cursor(
    workspace: Workspace, capsys: Any
) -> None:
    one = make_node("src:a", workspace=workspace, name=f"A {HOSTILE}", props={"x": HOSTILE})
    make_edge(one, HOSTILE, make_node("src:b", workspace=workspace, name=HOSTILE))

    for page in (
        told(capsys, "show", "src:a"),
        told(capsys, "neighbors", "src:a"),
        told(capsys, "path", "src:a", "src:b"),
        told(capsys, "find", "src:a"),
    ):
        assert "\u202e" not in page
        assert "[bold" in page
