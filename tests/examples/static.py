"""What can be said of a block without running it: its syntax, its commands, its options."""

import re
import shlex
import subprocess
import tomllib
from collections.abc import Iterator
from typing import Any

from django.core.management import get_commands, load_command_class
from django.core.management.base import CommandError

from tests.examples import shapes
from tests.examples.pages import Block

_MANAGE = re.compile(r"\bmanage\.py\s+(\w+)((?:[^\n|;&)#<>\"']|\"[^\"]*\"|'[^']*')*)")
LANGUAGES = {"sh", "json", "python", "sql", "toml", "yaml", ""}


def fault(block: Block) -> str:
    """What is wrong with how it is written; empty where nothing is."""
    if block.language not in LANGUAGES:
        return f"what is {block.language!r}? Known are {', '.join(sorted(LANGUAGES))}"
    if block.is_shell:
        return _shell_fault(block.text)
    try:
        if block.language == "python":
            compile(block.text, str(block), "exec")
        elif block.language == "toml":
            tomllib.loads(block.text)
        elif block.language == "json":
            list(json_documents(block.text))
    except (SyntaxError, ValueError) as error:
        return str(error)
    return ""


def json_documents(text: str) -> Iterator[Any]:
    """One document, or one a line. Raises ValueError."""
    try:
        yield shapes.shown_json(text)
    except ValueError:
        lines = [line for line in text.splitlines() if line.strip()]
        if len(lines) < 2:
            raise
        try:
            yield from [shapes.shown_json(line) for line in lines]
        except ValueError:
            yield shapes.shown_json(text)


def _shell_fault(text: str) -> str:
    checked = subprocess.run(
        ["bash", "-n"], input=text, capture_output=True, text=True, check=False
    )
    if checked.returncode:
        return checked.stderr
    joined = text.replace("\\\n", " ")
    for name, arguments in (match.group(1, 2) for match in _MANAGE.finditer(joined)):
        if name not in get_commands():
            return f"there is no command {name}"
        if wrong := _option_fault(name, arguments):
            return wrong
    return ""


def _option_fault(name: str, arguments: str) -> str:
    """Whether the command takes these arguments."""
    app = get_commands()[name]
    command = load_command_class(app, name) if isinstance(app, str) else app
    parser = command.create_parser("manage.py", name)
    parser.called_from_command_line = False  # raise instead of exit
    try:
        parser.parse_args(shlex.split(arguments))
    except (CommandError, SystemExit) as error:
        return f"manage.py {name}{arguments}: {error}"
    except ValueError:
        return ""  # a quotation that goes on elsewhere
    return ""
