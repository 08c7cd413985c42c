"""Pages in German and Spanish, and English where programs read."""

import ast
import re
from collections.abc import Iterable, Iterator
from fnmatch import fnmatch
from functools import cache
from html.parser import HTMLParser
from pathlib import Path

import pytest
from babel.messages.catalog import Message
from babel.messages.pofile import read_po
from django.conf import settings
from django.core.management import call_command
from django.test import Client
from django.utils import translation

from accounts.models import Membership
from accounts.tests.keys import make_key
from common.stored_messages import translated_message
from documents.tests.factories import ChunkFactory, CollectionFactory, MembershipFactory
from scripts.messages import KEYWORDS, catalog_path, faults_of, sources, stored_texts
from scripts.template_texts import unmarked_texts

#: Main pages, with what is empty, found, refused and missing.
PAGES = (
    *("/", "/?q=pilot", "/?q=xyzzy&mode=lexical", "/?q=pilot&filter=year%3E", "/saved/"),
    *("/chat/", "/documents/", "/documents/harbour/", "/documents/harbour/upload/", "/runs/"),
    *("/documents/harbour/edit/", "/graph/", "/graph/nodes/new/", "/memory/"),
    *("/memory/facts/", "/pipelines/"),
    *("/new-pipeline/", "/traces/", "/dashboard/", "/dashboard/quality/", "/keys/", "/missing/"),
)
ADMIN_PAGES = ("/admin/", "/admin/documents/document/", "/admin/graph/node/")


@pytest.fixture(autouse=True)
def english_afterwards() -> Iterator[None]:
    """The language of a page stays that of the thread until the next request."""
    yield
    translation.activate(settings.LANGUAGE_CODE)


@pytest.fixture
def reader() -> Membership:
    """The owner of a workspace, staff, with a document."""
    owner: Membership = MembershipFactory(
        user__username="ada", user__is_staff=True, user__is_superuser=True
    )
    collection = CollectionFactory(workspace=owner.workspace, slug="harbour", name="Harbour")
    ChunkFactory(document__collection=collection, document__title="Search", text="The pilot boat.")
    return owner


@cache
def _english_texts(language: str) -> frozenset[str]:
    """Texts of pages that the language says otherwise, but for words that may be names as well."""
    with catalog_path(language, "django").open("rb") as file:
        messages = list(read_po(file, locale=language))
    texts = {
        " ".join(original.split()): " ".join(string.split())
        for message in messages
        if isinstance(message.id, str) and message.id
        for original, string in [(message.id, str(message.string))]
    }
    different = texts.keys() - texts.values()
    return frozenset(text for text in different if len(text) > 2 and not text.islower())


class _Texts(HTMLParser):
    """Texts and labels of a page, without code and what has a language of its own."""

    def __init__(self) -> None:
        super().__init__()
        self.texts: list[str] = []
        self._skipped: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        is_icon = "material-symbols" in (given.get("class") or "")
        if is_icon or tag in {"script", "style", "code", "pre", "textarea", "bdi"}:
            self._skipped.append(tag)
        self.texts += [given[name] or "" for name in ("title", "aria-label") if name in given]

    def handle_endtag(self, tag: str) -> None:
        if tag in self._skipped:
            self._skipped.remove(tag)

    def handle_data(self, data: str) -> None:
        if not self._skipped:
            self.texts.append(data)


def _texts(html: str) -> Iterator[str]:
    parser = _Texts()
    parser.feed(html)
    return (" ".join(text.split()) for text in parser.texts)


@pytest.mark.doors
@pytest.mark.django_db
@pytest.mark.parametrize("language", ["de", "es"])
def test_main_pages_have_no_english_text(client: Client, reader: Membership, language: str) -> None:
    client.force_login(reader.user)
    # The name of the document is no text of the site.
    english = _english_texts(language) - {"Search"}

    left: dict[str, list[str]] = {}
    for address in (*PAGES, *ADMIN_PAGES):
        page = client.get(address, headers={"Accept-Language": language})

        assert f'<html lang="{language}"' in page.text, address
        assert page.headers["Content-Language"] == language
        if found := english.intersection(_texts(page.text)):
            left[address] = sorted(found)
    assert not left


@pytest.mark.django_db
def test_the_text_of_documents_stays(client: Client, reader: Membership) -> None:
    client.force_login(reader.user)

    page = client.get("/documents/harbour/", headers={"Accept-Language": "de"})

    assert "Search" in _texts(page.text)


@pytest.mark.django_db
def test_the_chosen_language_is_kept_for_the_person(client: Client, reader: Membership) -> None:
    client.force_login(reader.user)
    answer = client.post("/language/", {"language": "es", "next": "/documents/"})
    assert answer.headers["Location"] == "/documents/"
    assert '<html lang="es"' in client.get("/").text

    elsewhere = Client(headers={"Accept-Language": "de"})
    assert '<html lang="de"' in elsewhere.get("/login/").text
    reader.user.refresh_from_db()
    reader.user.set_password("harbour light")
    reader.user.save()
    elsewhere.post("/login/", {"username": "ada", "password": "harbour light"})
    assert '<html lang="es"' in elsewhere.get("/").text

    elsewhere.post("/language/", {"language": ""})
    assert '<html lang="de"' in elsewhere.get("/").text


@pytest.mark.django_db
def test_a_language_that_is_not_there_is_refused(client: Client, reader: Membership) -> None:
    client.force_login(reader.user)

    answer = client.post("/language/", {"language": "tlh", "next": "https://example.org/"})

    assert answer.status_code == 400
    assert "tlh" in answer.text


@pytest.mark.django_db
def test_programs_are_answered_in_english(
    client: Client, reader: Membership, capsys: pytest.CaptureFixture[str]
) -> None:
    _, key = make_key(reader)
    # A page in German before it, in the same thread.
    client.get("/login/", headers={"Accept-Language": "de"})
    answer = client.get(
        "/api/v1/collections/nowhere/",
        headers={"Authorization": f"Bearer {key}", "Accept-Language": "de"},
    )

    assert answer.status_code == 404
    assert "There is no collection" in answer.text
    call_command("search", "pilot", workspace=reader.workspace.slug, mode="lexical")
    assert "1 passage" in capsys.readouterr().out


def test_numbers_are_written_as_the_language_does(client: Client) -> None:
    catalog = client.get("/texts.js", headers={"Accept-Language": "de"}).text

    assert '"DECIMAL_SEPARATOR": ","' in catalog
    assert "const django" in catalog


@pytest.mark.parametrize(
    ("string", "fault"),
    [
        ("", "is not translated"),
        ("Lauf {pk}: <b>fertig</b>", ""),
        ("Lauf: <b>fertig</b>", "has"),
        ("Lauf {pk}: fertig", "has"),
    ],
)
def test_faults_of_translations_are_found(string: str, fault: str) -> None:
    found = "".join(faults_of(Message("Run {pk}: <b>ready</b>", string)))

    assert found.startswith(fault) if fault else not found


def _in_f_strings(code: str) -> list[str]:
    """Texts that gettext is given inside of f-strings."""
    calls = (
        call
        for string in ast.walk(ast.parse(code))
        if isinstance(string, ast.JoinedStr)
        for call in ast.walk(string)
        if isinstance(call, ast.Call) and ast.unparse(call.func).rpartition(".")[2] in KEYWORDS
    )
    return [
        argument.value
        for call in calls
        for argument in call.args
        if isinstance(argument, ast.Constant) and isinstance(argument.value, str)
    ]


def test_no_text_is_inside_an_f_string() -> None:
    """Babel finds it there with Python 3.12 and later only."""
    assert _in_f_strings("f\"{a}, {gettext('some more')}\"") == ["some more"]
    assert _in_f_strings('f"{gettext(LABELS[a])}"') == []
    found = {
        str(path.relative_to(settings.BASE_DIR)): texts
        for path in sources("django")
        if path.suffix == ".py" and (texts := _in_f_strings(path.read_text()))
    }
    assert found == {}


def test_texts_of_templates_that_are_not_marked_are_found() -> None:
    template = (
        '{% translate "Search" %}\n<p title="Your documents">{{ name }}</p>\n'
        "<code>manage.py</code>\n{% if a %}Upload{% endif %}\n"
    )

    assert list(unmarked_texts(template)) == [(2, "Your documents"), (4, "Upload")]


#: Commands and what only they call, and clients of the API.
NOT_SHOWN = (
    *("*/management/*", "*/evaluation/*", "*/evaluation.py", "ragsite/*", "clients/*"),
    *("documents/catalogue/database.py", "documents/catalogue/ddl.py"),
    "tables/sql/execute.py",  # what a language model reads
)
#: Errors that are stored in English and translated where they are shown: `scripts.messages` finds
#: their sentences, and `make check` fails where one is not translated.
STORED_ERRORS = {"ParseError"}


def test_refusals_are_translated() -> None:
    root = Path(settings.BASE_DIR)
    trees = {
        str(path.relative_to(root)): ast.parse(path.read_text())
        for app in (*root.glob("*/apps.py"), root / "reading/__init__.py")
        for path in app.parent.rglob("*.py")
        if not {"tests", "migrations"}.intersection(path.relative_to(root).parts)
    }
    refusals = _subclass_names(trees.values(), {"RagsiteError", "SourceError", "ValidationError"})
    refusals -= STORED_ERRORS

    found = {
        name
        for name, tree in trees.items()
        if not any(fnmatch(name, pattern) for pattern in NOT_SHOWN)
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        and ast.unparse(node.func).rpartition(".")[2] in refusals
        and any(_is_english(argument) for argument in node.args)
    }

    assert found == set()


def _subclass_names(trees: Iterable[ast.Module], names: set[str]) -> set[str]:
    """The names of the classes, and of all that are derived from them."""
    bases = {
        node.name: {ast.unparse(base).rpartition(".")[2] for base in node.bases}
        for tree in trees
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef)
    }
    found = set(names)
    while new := {name for name in bases.keys() - found if bases[name] & found}:
        found |= new
    return found


def _is_english(argument: ast.expr) -> bool:
    """Whether an argument is a sentence in the code, outside of gettext. Codes have no space."""
    if isinstance(argument, ast.JoinedStr):
        text = " ".join(
            str(part.value) for part in argument.values if isinstance(part, ast.Constant)
        )
        return re.search(r"[^\W\d_]{2}", text) is not None
    if isinstance(argument, ast.Constant):
        return isinstance(argument.value, str) and " " in argument.value
    if isinstance(argument, ast.BinOp):
        return _is_english(argument.left) or _is_english(argument.right)
    if isinstance(argument, ast.IfExp):
        return _is_english(argument.body) or _is_english(argument.orelse)
    return False


@pytest.mark.parametrize(
    ("message", "german"),
    [
        ("The page has no text. Check that it was saved.", "Die Seite hat keinen Text. Prüfen Sie"),
        (
            "The PDF has 12,000 pages; 5,000 are allowed. Split it.",
            "Das PDF hat 12.000 Seiten, erlaubt sind 5.000. Teilen Sie es.",
        ),
        (
            "The file is named .txt but is a RAR archive. Print it to PDF.",
            "Die Datei heißt .txt, ist aber ein RAR-Archiv. Drucken Sie es als PDF.",
        ),
        (
            "http://host/embeddings did not answer within 2.0 s. Check the API key. Tried 3 times.",
            "http://host/embeddings hat in 2.0 s nicht geantwortet. Prüfen Sie den API-Schlüssel.",
        ),
        ("Search", "Suche"),
        ("The disk is on fire.", "The disk is on fire."),
        ("", ""),
    ],
)
def test_stored_messages_are_translated_where_shown(message: str, german: str) -> None:
    assert translated_message(message) == message
    with translation.override("de"):
        assert translated_message(message).startswith(german)


def test_sentences_of_code_are_found() -> None:
    code = (
        '"""Docstring of a module."""\nX = "Save it."\nlog("not a sentence")\n'
        'raise Error("code", f"{name!r} has {len(text):,} bytes; {limits.most:,} fit. {CURE}")\n'
        'label = "a RAR archive"\n'
    )

    assert sorted(stored_texts(code)) == [
        (2, "Save it."),
        (4, "{name} has {text} bytes; {most} fit. {cure}"),
        (5, "a RAR archive"),
    ]


@pytest.mark.parametrize(
    ("code", "is_english"),
    [
        ("'No such file.'", True),
        ("f'{name} is missing.'", True),
        ("'One file.' if one else gettext('Two files.')", True),
        ("gettext('No such file.')", False),
        ("f'{place}: {error}'", False),
        ("'invalid'", False),
    ],
)
def test_english_refusals_are_found(code: str, *, is_english: bool) -> None:
    assert _is_english(ast.parse(code, mode="eval").body) is is_english
