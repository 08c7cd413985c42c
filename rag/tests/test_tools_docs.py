"""The page about the tools says what the registry does."""

from pathlib import Path
from typing import Any

import pytest

from common.tools import Tool
from rag.tools import TOOLS, required_scope

PAGE = Path(__file__).resolve().parent.parent.parent / "docs" / "reference" / "tools.md"
KINDS = {
    "string": "text",
    "integer": "number",
    "object": "object",
    "array": "list",
    "number": "number",
    "boolean": "true or false",
}


def sections() -> dict[str, str]:
    """Text by the name of the tool that it is about."""
    _, *parts = PAGE.read_text().split("\n### ")
    return {part.partition("\n")[0].strip("`"): part.partition("\n## ")[0] for part in parts}


def kind_of(field: dict[str, Any]) -> str:
    """What an argument may be, in words."""
    if "enum" in field:
        return " or ".join(f"`{value}`" for value in field["enum"])
    kinds = field["type"] if isinstance(field["type"], list) else [field["type"]]
    told = " or ".join(KINDS[kind] for kind in kinds)
    bounds = [f"{field['minimum']:,} to {field['maximum']:,}"] if "maximum" in field else []
    return ", ".join([told, *bounds])


def rows_of(tool: Tool) -> list[str]:
    """Its arguments as the page tells of them."""
    needed = tool.parameters["required"]
    return [
        f"| `{name}` | {kind_of(field)} | {_default(name, field, needed)} |"
        f" {field['description']} |"
        for name, field in tool.parameters["properties"].items()
    ]


def _default(name: str, field: dict[str, Any], needed: list[str]) -> str:
    return "needed" if name in needed else f"`{field['default']}`" if "default" in field else ""


def told(tool: Tool) -> str:
    """The section that belongs on the page."""
    head = "| argument | what | default | meaning |\n|---|---|---|---|"
    rows = rows_of(tool)
    table = "\n".join([head, *rows]) if rows else "It takes no arguments."
    return f"{tool.description}\n\nKey: `{required_scope(tool)}`.\n\n{table}"


def test_every_tool_has_a_section_in_the_order_of_the_registry() -> None:
    assert list(sections()) == list(TOOLS)


@pytest.mark.parametrize("name", TOOLS)
def test_a_section_says_what_the_tool_takes(name: str) -> None:
    section = sections()[name]
    for line in told(TOOLS[name]).splitlines():
        assert line in section, f"docs/reference/tools.md, {name}: {line}"
    arguments = [line for line in section.splitlines() if line.startswith("| `")]
    assert arguments == rows_of(TOOLS[name])
