"""The doors as tables: of what was walked, and for the documentation."""

from collections import Counter
from collections.abc import Mapping
from pathlib import Path

from tests.access import doors_admin, doors_api, doors_pages, doors_tools
from tests.access.policy import ACTORS, Door

#: Beside the matrix.
SUMMARY = "access-summary.txt"

_PARTS = {"API": doors_api, "Tools": doors_tools, "Pages": doors_pages, "Admin": doors_admin}
GROUPS: dict[str, list[Door]] = {
    f"{part}: {group}": doors
    for part, module in _PARTS.items()
    for group, doors in module.GROUPS.items()
}
DOORS: list[Door] = [door for doors in GROUPS.values() for door in doors]


def matrix(statuses: Mapping[tuple[str, str], str]) -> str:
    """Status by door and actor, as Markdown."""
    names = [actor.name for actor in ACTORS]
    lines = [
        "# Who was let in where",
        "",
        "Statuses that the walk met; ✓ where the door was open. `e`: a tool's answer that refuses.",
    ]
    for group, doors in GROUPS.items():
        lines += ["", f"## {group}", "", f"| door | {' | '.join(names)} |"]
        lines.append("|---" * (len(names) + 1) + "|")
        for door in doors:
            cells = [statuses.get((door.name, name), "") for name in names]
            lines.append(f"| `{door.name}` | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def summary(statuses: Mapping[tuple[str, str], str]) -> str:
    """A line for each group: to how many of the doors tried each actor was let in."""
    lines = []
    for group, doors in GROUPS.items():
        names = {door.name for door in doors}
        tried = {name for at, name in statuses if at in names}
        if not tried:
            continue
        opened = Counter(
            name
            for door in doors
            for name in tried
            if statuses.get((door.name, name), "").endswith("✓")
        )
        let_in = [f"{each.name} {opened[each.name]}" for each in ACTORS if opened[each.name]]
        lines.append(f"{group}, {len(doors)}: {', '.join(let_in) or 'nobody'}")
    return "\n".join(lines) + "\n"


def write(path: Path, statuses: Mapping[tuple[str, str], str]) -> None:
    """Keep the matrix where people look for it, and what the end of the test run tells of it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(matrix(statuses))
    path.with_name(SUMMARY).write_text(summary(statuses))
