"""`manage.py search` and `manage.py ingest` as a person and as a program use them."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from documents.models import Collection

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("media_root")]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "aspirin.md").write_text("# Aspirin\n\n## Dose\n\nOne tablet a day.\n")
    (tmp_path / "bread.txt").write_text("Bread is baked from flour.")
    return tmp_path


def output(capsys: Any, *arguments: str) -> dict[str, Any]:
    call_command(*arguments, "--json")
    answer: dict[str, Any] = json.loads(capsys.readouterr().out)
    return answer


def test_what_was_ingested_is_found(folder: Path, capsys: Any) -> None:
    report = output(capsys, "ingest", str(folder), "--collection", "notes")
    assert report["documents"] == {
        "total": 2,
        "ready": 2,
        "skipped": 0,
        "failed": 0,
        "cancelled": 0,
        "duplicates": 0,
    }
    assert report["chunks"] == {"ready": 2, "embedded": 2}
    found = output(capsys, "search", "which dose of aspirin?", "--collection", "notes", "-k", "1")
    (hit,) = found["hits"]
    assert hit["title"] == "Aspirin"
    assert hit["heading_path"] == ["Aspirin"]
    assert "One tablet" in hit["snippet"]["text"]


def test_a_list_that_is_cut_is_not_called_a_count(
    folder: Path, capsys: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "water.txt").write_text("Water is drunk.")
    output(capsys, "ingest", str(folder), "--collection", "notes")
    call_command("search", "bread", "--collection", "notes", "-k", "1")
    assert "1 of 3 passages · " in capsys.readouterr().out
    monkeypatch.setattr("search.ranked_results.SHALLOW_DEPTH", 2)
    call_command("search", "bread", "--collection", "notes", "-k", "1")
    assert "1 of the best 2 passages · " in capsys.readouterr().out


def test_a_second_time_nothing_is_embedded(folder: Path, capsys: Any) -> None:
    output(capsys, "ingest", str(folder), "--collection", "notes")
    report = output(capsys, "ingest", str(folder), "--collection", "notes")
    assert report["documents"]["skipped"] == 2
    assert report["chunks"] == {"ready": 2, "embedded": 0}


def test_a_glob_chooses_files(folder: Path, capsys: Any) -> None:
    report = output(capsys, "ingest", str(folder), "--collection", "c", "--glob", "*.md")
    assert report["documents"]["total"] == 1


@pytest.mark.parametrize(
    ("glob", "said"), [("*.pdf", "matches the glob “*.pdf”"), ("**/*", "contains no file")]
)
def test_a_folder_without_such_a_file_fails_and_makes_no_collection(
    tmp_path: Path, glob: str, said: str
) -> None:
    (tmp_path / ".hidden.md").write_text("Hidden.")
    with pytest.raises(CommandError, match=re.escape(said)) as failure:
        call_command("ingest", str(tmp_path), "--collection", "c", "--glob", glob)
    assert (failure.value.returncode, str(tmp_path) in str(failure.value)) == (1, True)
    assert not Collection.objects.exists()


def test_some_failures_are_listed_and_exit_with_1(folder: Path, capsys: Any) -> None:
    (folder / "empty.md").touch()
    with pytest.raises(SystemExit) as end:
        call_command("ingest", str(folder), "--collection", "notes", "--json")
    report = json.loads(capsys.readouterr().out)
    assert end.value.code == 1
    (failure,) = report["failures"]
    assert (failure["name"], failure["code"]) == ("empty.md", "empty")
    assert failure["reason"].endswith(".")


@pytest.mark.parametrize(
    ("arguments", "cure"),
    [
        (["ingest", "/nowhere", "--collection", "notes"], "does not exist"),
        (["ingest", ".", "--collection", "No Slug!"], "lower-case letters"),
        (["search", "x", "--collection", "nowhere"], "There are: notes|none"),
        (["search", "", "--collection", "notes"], "Enter a question"),
        (["search", "x " * 3000, "--collection", "notes"], "4,000 are allowed"),
        (["search", "x", "-k", "0"], "k must be"),
    ],
)
def test_what_cannot_be_is_said_with_exit_code_2(
    folder: Path, capsys: Any, arguments: list[str], cure: str
) -> None:
    output(capsys, "ingest", str(folder), "--collection", "notes")
    with pytest.raises(CommandError, match=cure) as failure:
        call_command(*arguments)
    assert failure.value.returncode == 2
