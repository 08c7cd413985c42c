"""Hits with the addresses of their passages, and why each is where it is."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import urlencode, urlsplit

from django.conf.locale import LANG_INFO
from django.utils.dates import MONTHS_3

from common.addresses import address
from common.fusion import EVIDENCE
from search.filters import Comparison, all_of, to_text
from search.filters.fields import Field
from search.filters.tree import Operator
from search.forms import SearchState
from search.presentation.grades import GradeButton, grade_buttons
from search.results import ArmReport, Hit, SearchResult

ARM_LABELS = {"lexical": "Words", "vector": "Meaning", "graph": "Graph"}
WAYS = {
    "lexical": "by your words",
    "vector": "by meaning",
    "graph": "over what passages name",
}
EVIDENCE_LABELS = {"letters": "Letters in common", "likeness": "Like the best"}
#: As many found words go along in the address of a passage.
PASSED_WORDS = 10


@dataclass(frozen=True, slots=True)
class ArmLine:
    """How one arm, or a piece of evidence, judged a hit; `share` "0.00" to "1.00" is the
    part of the fused score that came from it."""

    label: str
    place: str
    score: str
    contribution: str
    share: str


@dataclass(frozen=True, slots=True)
class ShownHit:
    """A hit, the address of its passage, and why it is here. `more_url` finds the other passages
    of its document; `grades` are the buttons to judge it by."""

    hit: Hit
    url: str
    arms: tuple[ArmLine, ...]
    more_url: str
    grades: tuple[GradeButton, ...]

    @property
    def percent(self) -> int:
        """Its relevance, of 100."""
        return round(100 * self.hit.relevance)

    @property
    def relevance(self) -> str:
        """The same for a bar."""
        return f"{self.hit.relevance:.2f}"

    @property
    def fused(self) -> str:
        """The score of all arms together."""
        return f"{self.hit.fused:.3f}"

    @property
    def move(self) -> str:
        """What reranking did to its place, such as “up from 7”; empty where nothing."""
        before, now = self.hit.fused_rank, self.hit.rank
        if self.hit.rerank is None or before == now:
            return ""
        return f"{'up' if before > now else 'down'} from {before}"

    @property
    def found_by(self) -> str:
        """Why it is here, in a few words: “Found by your words and by meaning”."""
        ways = [WAYS[name] for name in WAYS if name in self.hit.ranks]
        if not ways:
            return ""
        *others, last = ways
        return f"Found {', '.join(others)} and {last}" if others else f"Found {last}"

    @property
    def day(self) -> str:
        """The date that the document is of, as precise as it says; empty for the day on which it
        was brought, which is told otherwise."""
        known = self.hit.dated
        if not known or known == self.hit.updated_at.date().isoformat():
            return ""
        year, month, day = (*map(int, known.split("-")), 0, 0)[:3]
        name = MONTHS_3[month].title() if month in MONTHS_3 else ""
        return " ".join(part for part in (str(day or ""), str(name), str(year)) if part)

    @property
    def language(self) -> str:
        """The name of its document's language."""
        return str(LANG_INFO.get(self.hit.language, {}).get("name", self.hit.language))

    @property
    def place(self) -> str:
        """Where it came from: the host of an address, else the folder and name of a file."""
        host = urlsplit(self.hit.url).netloc if self.hit.url else ""
        return host or self.hit.source or self.hit.document_key


def shown_hits(
    state: SearchState, result: SearchResult, *, grades: Mapping[int, int]
) -> list[ShownHit]:
    """The page's hits. `grades`: document → what was said of it as an answer to the question."""
    return [
        ShownHit(
            hit=hit,
            url=passage_url(hit, state.query_string()),
            arms=(
                *(_arm_line(arm, hit) for arm in result.arms),
                *(_evidence_line(name, hit) for name in EVIDENCE if name in hit.contributions),
            ),
            more_url=_more_url(state, hit) if hit.more_in_document else "",
            grades=grade_buttons(hit.document_id, hit.chunk_id, grades.get(hit.document_id)),
        )
        for hit in result.hits
    ]


def passage_url(hit: Hit, search: str = "") -> str:
    """The document with the passage marked. `search`, an address behind its `?`, is kept for the
    way back."""
    path = f"{address('document', hit.collection_slug, 0).removesuffix('0/')}{hit.document_id}/"
    own = {"chunk": hit.chunk_id, "words": " ".join(_found_words(hit))}
    query = urlencode({name: value for name, value in own.items() if value})
    return f"{path}?{query}{'&' if search else ''}{search}#passage"


def _more_url(state: SearchState, hit: Hit) -> str:
    """The passages of this document alone, within the same filter."""
    only = Comparison(Field("document"), Operator.EQ, hit.document_key)
    tree = state.tree
    narrowed = to_text(all_of([tree, only] if tree else [only]))
    return state.url(group=False, collections=(hit.collection_slug,), filter=narrowed)


def _found_words(hit: Hit) -> list[str]:
    """The words that are highlighted in the snippet, each once, for the page to light too."""
    marked = " ".join(hit.snippet.text[start:end] for start, end in hit.snippet.highlights)
    return list(dict.fromkeys(re.findall(r"\w+", marked.lower())))[:PASSED_WORDS]


def _arm_line(arm: ArmReport, hit: Hit) -> ArmLine:
    score = {"lexical": hit.lexical, "vector": hit.similarity, "graph": hit.graph}.get(arm.name)
    unit = {"lexical": "BM25", "vector": "cosine", "graph": "strength"}.get(arm.name, "score")
    contribution = hit.contributions.get(arm.name)
    return ArmLine(
        label=ARM_LABELS.get(arm.name, arm.name.capitalize()),
        place=str(hit.ranks.get(arm.name, "not listed")),
        score="" if score is None else f"{unit} {score:.3g}",
        contribution="" if contribution is None else f"{contribution:.3f}",
        share=_share(contribution, hit),
    )


def _evidence_line(name: str, hit: Hit) -> ArmLine:
    contribution = hit.contributions[name]
    return ArmLine(EVIDENCE_LABELS[name], "", "", f"{contribution:.3f}", _share(contribution, hit))


def _share(contribution: float | None, hit: Hit) -> str:
    return f"{contribution / hit.fused if contribution and hit.fused > 0 else 0.0:.2f}"
