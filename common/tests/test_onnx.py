"""onnxruntime reports nothing to its maker."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from django.conf import settings

ROOT = Path(settings.BASE_DIR)
APPS = ("common", "inference", "reading", "documents", "search", "rag", "memory", "ragsite")
MODULES = ("common.onnx", "inference.local.onnx_models", "reading.ocr.pp_ocr")


def kept_at_home(statement: str, home: Path) -> list[str]:
    """What the statement leaves in the home directory of a process of its own."""
    names = {"ORT_DISABLE_TELEMETRY", "XDG_CACHE_HOME"}
    environment = {name: value for name, value in os.environ.items() if name not in names}
    subprocess.run(
        [sys.executable, "-c", statement],
        cwd=ROOT,
        env={**environment, "HOME": str(home)},
        check=True,
        timeout=300,
    )
    return [path.name for path in home.rglob("*")]


@pytest.mark.parametrize("module", MODULES)
def test_reports_are_turned_off_before_it_is_loaded(module: str, tmp_path: Path) -> None:
    statement = (
        f"import {module}, os, sys;"
        "assert 'onnxruntime' in sys.modules and os.environ['ORT_DISABLE_TELEMETRY'] == '1'"
    )
    assert not any("onnxruntime" in name for name in kept_at_home(statement, tmp_path))


def test_nothing_of_the_site_imports_it_by_itself() -> None:
    importing = re.compile(r"^\s*(import|from) onnxruntime", re.MULTILINE)
    files = [path for app in APPS for path in (ROOT / app).rglob("*.py")]
    found = [path for path in files if importing.search(path.read_text())]
    assert found == [ROOT / "common" / "onnx.py"]
