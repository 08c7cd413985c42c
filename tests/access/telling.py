"""docs/reference/access.md, out of the declared doors."""

import re
from collections.abc import Iterable, Mapping
from pathlib import Path

from tests.access import doors_admin, doors_api, doors_pages, doors_tools
from tests.access.policy import Door, Who

PAGE = Path(__file__).resolve().parent.parent.parent / "docs" / "reference" / "access.md"
_HEAD = """\
# Who may do what

Written by `python -m tests.access` out of what [tests/access/](../../tests/access/policy.py)
declares. `tests/test_access_walk.py` goes to every address as those who may just come in and those
who just may not, from nobody to a superuser and with keys of every scope, and looks that it is so.
The statuses that it met lie in `var/test/access-matrix.md`.

- **Members** are viewers, editors and owners of the workspace. Somebody else is answered 404,
  superusers included. Pages show one's own workspaces.
- **On the access list**: where a document has one, members that it does not name are answered 404.
  Where it has none, all members are on it.
- **The user alone**: another member, and an owner too, is answered 404.
- A **scope** is what an API key needs besides the rights of its user; without it the answer is 403.
  Keys open no pages and nothing of the admin.
- A key that is **limited to collections** opens nothing of what belongs to the whole workspace
  (403), and finds nothing of other collections (404).
- Who is not logged in gets 401 from the API, and the login page elsewhere. Who may see a thing and
  not change it gets 403.
"""
_KEYS_ONLY = " (by key alone)"


def page() -> str:
    """The whole page."""
    parts = [_HEAD, "\n## The API\n"]
    parts += _sections(doors_api.GROUPS, has_scope=True)
    lines = [
        "\nThe same over `POST /api/v1/tools/NAME/` and over `/mcp`, which takes keys alone and\n",
        "needs `read` besides.\n\n| tool | who | scope |\n|---|---|---|\n",
    ]
    for name, (who, scope, _) in doors_tools.TOOLS.items():
        lines.append(f"| `{name}` | {who.value} | {scope} |\n")
    lines.append("\n| method of `/mcp` | who | scope |\n|---|---|---|\n")
    for name, (who, _) in doors_tools.METHODS.items():
        lines.append(f"| `{name}` | {who.value} | read |\n")
    parts += ["\n## Tools and the Model Context Protocol\n", "".join(lines)]
    parts += ["\n## Pages\n", *_sections(doors_pages.GROUPS, has_scope=False)]
    parts += ["\n## The admin\n", _admin()]
    return "".join(parts)


def _sections(groups: Mapping[str, Iterable[Door]], *, has_scope: bool) -> list[str]:
    head = (
        "| request | who | scope |\n|---|---|---|\n"
        if has_scope
        else ("| page | who |\n|---|---|\n")
    )
    parts = []
    for group, doors in groups.items():
        rows = dict.fromkeys(_row(door, has_scope=has_scope) for door in doors)
        parts.append(f"\n### {group}\n\n{head}{''.join(rows)}")
    return parts


def _row(door: Door, *, has_scope: bool) -> str:
    who = door.who.value + (_KEYS_ONLY if door.is_for_keys else "")
    scope = "none" if door.who is Who.ANYBODY else door.scope.replace("+", " + ")
    cells = [f"`{door.method} {_address(door)}`", who, *([scope] if has_scope else [])]
    return f"| {' | '.join(cells)} |\n"


def _address(door: Door) -> str:
    """Without the question, and with names for things."""
    path = door.path.partition("?")[0]
    path = re.sub(r"/(open\.md|n|minilm-384)/", "/ID/", path).replace("facts/new/", "facts/FACT/")
    return re.sub(r"\{(\w+)\}", lambda match: match[1].upper(), path)


def _admin() -> str:
    lines = [
        "\nStaff see rows of all workspaces, by Django's permissions to view, add, change and\n",
        "delete a model's rows. This is the most that anybody may do there; — is nobody,\n",
        "superusers included.",
        "\n\n| model | add | change | delete | actions, and the permission that they need |\n",
        "|---|---|---|---|---|\n",
    ]
    for label, rights in doors_admin.MODELS.items():
        given = ["yes" if each else "—" for each in (rights.add, rights.change, rights.delete)]
        actions = [f"{name.replace('_', ' ')} (`{needs}`)" for name, needs in rights.actions]
        lines.append(f"| {label} | {' | '.join(given)} | {', '.join(actions) or '—'} |\n")
    return "".join(lines)
