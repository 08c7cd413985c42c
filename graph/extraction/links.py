"""Where links lead, and the addresses at which a document itself is found. Pure."""

import re
from collections.abc import Iterator, Mapping
from pathlib import PurePosixPath
from typing import Any

from graph.extraction.addresses import bounded, own_addresses, targets
from graph.extraction.forms import form
from graph.extraction.found import Kind, Mention, Source
from graph.extraction.tally import Tally

#: Of one passage, and of one document: a list of a thousand links refers to none of them.
MOST, MOST_OF_A_DOCUMENT = 50, 1_000
MOST_NAME = 300

_LINK = re.compile(
    r"""
    (?<!!)\[\[(?P<wiki>[^\[\]|#\n]{1,200})(?:[|#][^\[\]\n]{0,300})?\]\]
  | \]\(\s*(?:<(?P<angled>[^<>\n]{1,2000})>|(?P<target>[^\s()<>]*(?:\([^\s()<>]*\)[^\s()<>]*)*))
    (?:\s+(?:"[^"\n]*"|'[^'\n]*'|\([^)\n]*\)))?\s*\)
  | ^[ ]{0,3}\[[^\]\n]{1,300}\]:[ \t]+<?(?P<defined>[^\s<>]+)>?
  | \bhref\s*=\s*(?:"(?P<href>[^"\n]*)"|'(?P<href2>[^'\n]*)')
  | :doc:`(?:[^`<\n]*<)?(?P<doc>[^`<>\n]{1,500})>?`
  | :ref:`(?:[^`<\n]*<)?(?P<ref>[^`<>\n]{1,200})>?`
  | ^[ ]*\.\.[ ]_`?(?P<label>[^`:\n]{1,200})`?:[ \t]*(?P<labelled>\S+)?
  | `[^`<\n]{1,300}<(?P<inline>[^`<>\s]{1,2000})>`_
  | (?P<bare>\bhttps?://(?:[^\s<>"'`()\[\]{}|\\]|\([^\s<>"'`()]*\))+)
  | (?<![\w.+-])(?P<email>[\w.+-]{1,64}@[\w-]+(?:\.[\w-]+)+)
    """,
    re.VERBOSE | re.MULTILINE,
)
#: Most passages have none of these, and are passed over.
_HINT = re.compile(r"\]\(|\[\[|\]:|href|:doc:`|:ref:`|\.\. _|>`_|://|@")
_PUNCTUATION = ".,;:!?…"
#: What the full stop of a sentence may stand behind.
_RUNS_ON = frozenset(("bare", "email"))
#: Of what is no link.
_KINDS: dict[str, Kind] = {"label": "self", "email": "text"}
_ADDRESSES = ("angled", "target", "defined", "href", "href2", "doc", "labelled", "inline", "bare")


def mentions(source: Source) -> Iterator[Mention]:
    """Own addresses as `self`, in the first passage; what passages link to as `link`."""
    if not source.passages:
        return
    tally = Tally(most=MOST)
    for own, written in own_addresses(source):
        tally.add(Mention(0, own, written[:MOST_NAME], "ref", "self"))
    if stem := _wiki_name(source):
        tally.add(Mention(0, form(stem), stem, "name", "self"))
    left = MOST_OF_A_DOCUMENT
    for link in _given(source.metadata):
        for target in targets(link, source=source):
            tally.add(Mention(0, target, link[:MOST_NAME], "ref", "link"))
    for at, passage in enumerate(source.passages):
        if left > 0 and _HINT.search(passage.text):
            for match in _LINK.finditer(passage.text):
                for mention in _read(match, at, source):
                    tally.add(mention)
                    left -= 1
    yield from tally.mentions()


def _read(match: re.Match[str], at: int, source: Source) -> Iterator[Mention]:
    if name := (match["wiki"] or "").strip():
        yield from _mention(match, at, "wiki", form(name), "name")
    elif match["ref"]:
        yield from _mention(match, at, "ref", _label(match["ref"]), "ref")
    elif match["email"]:
        written = match["email"].rstrip(_PUNCTUATION)
        yield from _mention(match, at, "email", bounded(f"email:{written.lower()}"), "email")
    else:
        if match["label"] and not match["labelled"] and match["label"] != "_":
            yield from _mention(match, at, "label", _label(match["label"]), "ref")
        for group in _ADDRESSES:
            if written := match[group]:
                link = written.rstrip(_PUNCTUATION) if group in _RUNS_ON else written
                for target in targets(link, source=source):
                    yield from _mention(match, at, group, target, "ref")


def _mention(match: re.Match[str], at: int, group: str, found: str, type: str) -> Iterator[Mention]:
    if found:
        written = match[group].rstrip(_PUNCTUATION) if group in _RUNS_ON else match[group]
        start = match.start(group)
        kind = _KINDS.get(group, "link")
        yield Mention(
            at, found, written.strip()[:MOST_NAME], type, kind, 1, start, start + len(written)
        )


def _label(name: str) -> str:
    """reStructuredText's names know neither case nor how much space is in them."""
    return bounded("ref:label:" + " ".join(name.casefold().split()))


def _wiki_name(source: Source) -> str:
    """A note is called by the name of its file, whatever its title says."""
    key = PurePosixPath(source.key.replace("\\", "/"))
    is_note = key.suffix.lower() in {".md", ".markdown", ".txt", ".org"}
    return key.stem if is_note and form(key.stem) != form(source.title) else ""


def _given(metadata: Mapping[str, Any]) -> Iterator[str]:
    """Links that a parser or a caller noted beside the text, as strings."""
    links = metadata.get("links")
    for link in (links if isinstance(links, list) else [])[:MOST]:
        if isinstance(link, str):
            yield link
