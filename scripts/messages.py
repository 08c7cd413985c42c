"""Catalogs of the pages' texts: find the texts, keep locale/*/LC_MESSAGES/*.po in step with
them, and compile these.

    .venv/bin/python -m scripts.messages           # after texts were added, changed or translated
    .venv/bin/python -m scripts.messages --check   # fails where something is missing or stale

Works without GNU gettext. The compiled catalogs are committed, so that a clone needs nothing.
"""

import ast
import io
import json
import os
import re
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from babel.messages.catalog import Catalog, Message
from babel.messages.extract import DEFAULT_KEYWORDS, extract
from babel.messages.mofile import write_mo
from babel.messages.pofile import read_po, write_po

from scripts.template_texts import unmarked_texts

ROOT = Path(__file__).resolve().parent.parent
LANGUAGES = ("de", "es")
KEYWORDS = dict(DEFAULT_KEYWORDS) | {
    "gettext_lazy": None,
    "gettext_noop": None,
    "ngettext_lazy": (1, 2),
    "pgettext_lazy": ((1, "c"), 2),
}
#: So that a catalog changes with its texts only.
NO_DATE = datetime(2026, 1, 1, tzinfo=UTC)
#: Placeholders and tags, which a translation must keep.
KEPT = re.compile(r"%\(\w+\)[sd]|\{\w+(?::[^{}]*)?\}|</?[a-z][^<>]*>")
#: Modules whose sentences are stored in English, or leave modules that know no Django, and are
#: translated where they are shown, by `common.stored_messages`.
STORED = (
    *("reading/*.py", "reading/ocr/*.py", "reading/parsers/*.py", "documents/ingestion/*.py"),
    *("reading/sandbox/__main__.py", "reading/sandbox/limits.py", "inference/remote/*.py"),
    *("inference/backends/chat_ollama.py", "inference/interfaces.py"),
)
_STORED_TEXT = re.compile(
    r"[A-Z“{].* .*[.?](?: \{\w+\})?|(?:an?|its?) \S.+|The \w+(?:, written out .+)?", re.S
)


def find_texts(domain: str) -> Catalog:
    """The catalog of all texts: `django` of pages and code, `djangojs` of scripts."""
    found = Catalog(charset="utf-8", creation_date=NO_DATE)
    for path in sorted(sources(domain)):
        text = path.read_text()
        kind = "javascript" if path.suffix == ".js" else "python"
        if path.suffix == ".html":
            text = _calls_of(text, str(path))
        lines = io.BytesIO(text.encode())
        for line, message, comments, context in extract(kind, lines, KEYWORDS, ("Translators:",)):
            place = (str(path.relative_to(ROOT)), line)
            found.add(message, None, [place], auto_comments=comments, context=context)
    if domain == "django":
        for path in sorted(path for pattern in STORED for path in ROOT.glob(pattern)):
            for line, message in stored_texts(path.read_text()):
                found.add(message, None, [(str(path.relative_to(ROOT)), line)])
        from common.model_names import model_names

        for name in model_names():
            found.add(name, None, [("models", 0)])
        for path in sorted((ROOT / "rag" / "pipelines" / "templates").glob("*.json")):
            pipeline = json.loads(path.read_text())
            for field in ("name", "description"):
                found.add(pipeline[field], None, [(str(path.relative_to(ROOT)), 0)])
    return found


def stored_texts(code: str) -> Iterator[tuple[int, str]]:
    """Lines and texts of sentences that no function marks, and of parts of such; the values of
    f-strings become placeholders with the last name in them."""
    tree, inner = ast.parse(code), set[ast.AST]()
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr):  # docstrings
            inner.add(node.value)
        elif isinstance(node, ast.JoinedStr):
            inner.update(part for part in ast.walk(node) if part is not node)
        if node in inner or not isinstance(node, ast.Constant | ast.JoinedStr):
            continue
        names: dict[str, str] = {}
        text = ""
        for part in node.values if isinstance(node, ast.JoinedStr) else [node]:
            if isinstance(part, ast.FormattedValue):
                value = ast.unparse(part.value)
                name = re.findall(r"[A-Za-z]\w*", value)[-1].strip("_").lower()
                while names.setdefault(name, value) != value:
                    name += "2"
                text += f"{{{name}}}"
            elif isinstance(part, ast.Constant) and isinstance(part.value, str):
                text += part.value
        if _STORED_TEXT.fullmatch(text := text.strip()) and re.search("[a-z] [a-zA-Z0-9{]", text):
            yield node.lineno, text


def sources(domain: str) -> Iterator[Path]:
    """The files whose texts are looked for."""
    if domain == "djangojs":
        yield from (ROOT / "static" / "js").rglob("*.js")
        return
    yield from (ROOT / "templates").rglob("*.html")
    for app in (*ROOT.glob("*/apps.py"), ROOT / "reading" / "__init__.py"):
        for path in app.parent.rglob("*.py"):
            if not {"tests", "migrations"}.intersection(path.relative_to(ROOT).parts):
                yield path


def _calls_of(template: str, name: str) -> str:
    """The texts of a template as calls of gettext, each on its line."""
    from django.utils.translation.template import templatize

    return "\n".join(line.strip() for line in templatize(template, origin=name).split("\n"))


def catalog_path(language: str, domain: str) -> Path:
    return ROOT / "locale" / language / "LC_MESSAGES" / f"{domain}.po"


def update_catalog(language: str, domain: str) -> Catalog:
    """The language's catalog with all texts of now, those untranslated empty."""
    path = catalog_path(language, domain)
    known = Catalog(locale=language)
    if path.exists():
        with path.open("rb") as file:
            known = read_po(file, locale=language, domain=domain)
    new = Catalog(
        locale=language, domain=domain, project="ragsite", charset="utf-8", fuzzy=False,
        header_comment=f"# Texts of ragsite's pages: {language}. See scripts/messages.py.",
        creation_date=NO_DATE, revision_date=NO_DATE, last_translator="", language_team="",
    )  # fmt: skip
    for message in find_texts(domain):
        if message.id:
            old = known.get(message.id, message.context)
            new.add(
                message.id,
                old.string if old and old.id == message.id and not old.fuzzy else None,
                [(file, 0) for file in sorted({file for file, _ in message.locations})],
                context=message.context,
            )
    return new


def written(catalog: Catalog) -> tuple[bytes, bytes]:
    """The catalog as the contents of a .po and of a .mo file."""
    text, compiled = io.BytesIO(), io.BytesIO()
    write_po(text, catalog, width=100, sort_output=True, include_lineno=False)
    write_mo(compiled, catalog)
    return text.getvalue(), compiled.getvalue()


def faults_of(message: Message) -> Iterator[str]:
    """What is wrong with a translation."""
    string = message.string or ""
    strings = [string] if isinstance(string, str) else list(string)
    if not all(strings):
        yield "is not translated"
        return
    ids = [message.id] if isinstance(message.id, str) else list(message.id)
    for string, original in zip(strings, ids, strict=True):
        kept, needed = sorted(KEPT.findall(string)), sorted(KEPT.findall(original))
        # A singular may name its number in words.
        if kept != needed and not (len(ids) > 1 and sorted(KEPT.findall(ids[1])) == kept):
            yield f"has {kept} and not {needed}"


def main() -> int:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "ragsite.settings")
    import django

    django.setup()
    is_check = "--check" in sys.argv[1:]
    faults = [
        f"{path.relative_to(ROOT)}:{line}: not marked for translation: {text!r}"
        for path in sorted((ROOT / "templates").rglob("*.html"))
        for line, text in unmarked_texts(path.read_text())
    ]
    for language in LANGUAGES:
        for domain in ("django", "djangojs"):
            catalog, path = update_catalog(language, domain), catalog_path(language, domain)
            for message in catalog:
                if message.id:
                    for fault in faults_of(message):
                        faults.append(f"{path.relative_to(ROOT)}: {message.id!r} {fault}")
            for file, content in zip(
                (path, path.with_suffix(".mo")), written(catalog), strict=True
            ):
                if not is_check:
                    file.parent.mkdir(parents=True, exist_ok=True)
                    file.write_bytes(content)
                elif not file.exists() or file.read_bytes() != content:
                    faults.append(f"{file.relative_to(ROOT)} is out of date: run `make messages`")
    for fault in faults[:100]:
        print(fault, file=sys.stderr)
    if len(faults) > 100:
        print(f"… and {len(faults) - 100:,} more", file=sys.stderr)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
