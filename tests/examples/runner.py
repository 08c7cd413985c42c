"""Goes through a page as its reader would, and notes what is not as the page says."""

import json
import shlex
from collections.abc import Sequence
from inspect import signature

from django.utils.module_loading import import_string

from tests.examples import shapes, static
from tests.examples.pages import Block
from tests.examples.sessions import Done, Session, python, shell
from tests.examples.site import Site

_SHOWN = {"", "json", "text"}


class Reader:
    """One page on a site. `faults` says what was wrong, with the line of the block."""

    def __init__(self, site: Site, name: str, key: str) -> None:
        self.faults: list[str] = []
        self._folder = site.checkout(name)
        self._environment = site.environment | {"KEY": key}
        self._put = {
            "http://127.0.0.1:8000": site.url,
            "http://localhost:8000": site.url,
            "demo:PASSWORD": f"demo:{site.password}",
            "rs_…": key,
            "sk-ant-…": "sk-of-the-examples",
            "sk-…": "sk-of-the-examples",
            "/home/you/ragsite": str(self._folder),
            "/home/you": self._environment["HOME"],
            "'postgresql://reader:password@db.example.org/shop'": '"$EXAMPLES_SHOP"',
            "postgresql://ragsite:PASSWORD@db.example.org:5432/ragsite": site.database,
            "redis://cache.example.org:6379/0": site.redis,
        }
        self._shell = shell(self._folder, self._environment)
        self._python: Session | None = None
        self._printed: str | None = None

    def read(self, blocks: Sequence[Block]) -> None:
        """Do what the blocks say, one after the other."""
        for block in blocks:
            fault = self._fault(block) if block.is_run else ""
            if fault:
                self.faults.append(f"{block}: {fault}")
            if not block.is_run:
                self._printed = None

    def close(self) -> None:
        """End what runs."""
        self._shell.close()
        if self._python:
            self._python.close()

    def _fault(self, block: Block) -> str:
        if first := block.said.get("first"):
            done = self._shell.run(self._made_real(first))
            if done.status:
                return f"first: status {done.status}: {done.printed}"
        if command := block.said.get("output of"):
            self._printed = self._shell.run(self._made_real(command)).printed
        if block.said.keys() & {"file", "request", "options of"}:
            return self._use(block)
        if block.is_shell:
            return self._judge(block, self._shell.run(self._made_real(block.text)))
        if block.language == "python":
            self._python = self._python or python(self._folder, self._environment)
            return self._judge(block, self._python.run(self._made_real(block.text)))
        if block.language in _SHOWN and self._printed is not None:
            printed, self._printed = self._printed, None
            return _difference(block, self._made_real(block.text), printed)
        return ""

    def _use(self, block: Block) -> str:
        """What is no command, and is used as its comment says."""
        if name := block.said.get("file"):
            (self._folder / name).parent.mkdir(parents=True, exist_ok=True)
            (self._folder / name).write_text(block.text)
        elif path := block.said.get("options of"):
            try:
                signature(import_string(path)).bind(**json.loads(block.text))
            except TypeError as error:
                return str(error)
        else:
            return self._ask(block, *block.said["request"].split())
        return ""

    def _judge(self, block: Block, done: Done) -> str:
        self._printed = done.printed
        wanted = int(block.said.get("status", "0"))
        return "" if done.status == wanted else f"status {done.status}: {done.printed[-3000:]}"

    def _ask(self, block: Block, method: str, path: str) -> str:
        body = self._folder / "request.json"
        body.write_text(block.text)
        key = shlex.quote(f"Authorization: Bearer {self._environment['KEY']}")
        url = shlex.quote(f"{self._put['http://127.0.0.1:8000']}{path}")
        return self._judge(
            block,
            self._shell.run(
                f"curl -X {method} -H {key} -H 'Content-Type: application/json' -d @{body} {url}"
            ),
        )

    def _made_real(self, text: str) -> str:
        for shown, real in self._put.items():
            text = text.replace(shown, real)
        return text


def _difference(block: Block, shown: str, printed: str) -> str:
    """Why what was printed has not the shape of what the block shows; empty where it has."""
    if block.language != "json":
        fits = shapes.fits_text(shown, printed)
        return "" if fits else f"shown is\n{shown}\nprinted was\n{printed[-3000:]}"
    got = list(shapes.documents(printed))
    for one in static.json_documents(shown):
        misfits = [shapes.misfit(one, each) for each in got]
        if all(misfits):
            return (
                max(misfits, key=lambda said: said.index(":"))
                if misfits
                else f"no JSON was printed: {printed[-2000:]}"
            )
    return ""
