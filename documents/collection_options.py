"""Options of a collection: what can be set of it, at every door. Services import it when they need
it: pydantic takes longer to load than most commands.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Any, Literal

from django.utils.translation import gettext
from pydantic import Field, field_validator

from common.errors import InvalidInput
from common.fusion_options import FusionOptions
from common.options import Options
from common.translation import gettext_noop
from documents.languages import CONFIGURATIONS, DETECTED_ONLY
from inference.model_registry import rerankers
from reading.chunkers import CHUNKERS

MAX_FACETS = 10
MAX_FACET_CHARACTERS = 128

#: Keys with single dots between them; a dot or backslash within a key has a backslash before it.
_PATH = re.compile(r"(?:[^.\\\x00]|\\[.\\])+(?:\.(?:[^.\\\x00]|\\[.\\])+)*", re.DOTALL)


def checked_facets(paths: Iterable[str]) -> list[str]:
    """Unique paths into the metadata, in their order; raises InvalidInput."""
    checked = list(dict.fromkeys(path.strip() for path in paths if path.strip()))
    if len(checked) > MAX_FACETS:
        raise InvalidInput(
            gettext("A collection may choose {limit} facets. Leave some out.").format(
                limit=MAX_FACETS
            ),
            field="facets",
        )
    for path in checked:
        if len(path) > MAX_FACET_CHARACTERS or not _PATH.fullmatch(path):
            raise InvalidInput(
                gettext(
                    "“{path}” is no field of the metadata. Write names with single dots"
                    " between them, as in “author” or “topic.area”; a dot that belongs to a"
                    " name has a backslash before it."
                ).format(path=path[:MAX_FACET_CHARACTERS]),
                field="facets",
            )
    return checked


class CollectionOptions(Options):
    """What can be set of a collection, besides its name, when it is made and later."""

    description: str = Field(default="", max_length=10_000)
    language: str = Field(
        default="",
        max_length=20,
        description="ISO code, such as `de`. Empty: each document's language is detected.",
    )
    chunker: str = Field(
        default="auto",
        min_length=1,
        max_length=20,
        description=f"How documents are cut: {', '.join(f'`{name}`' for name in CHUNKERS)}. Default"
        " `auto`. A change holds for documents when they are next ingested.",
    )
    chunker_options: Mapping[str, Any] = {}
    graph: Literal["off", "rules", "llm"] = Field(
        default="rules",
        description="How documents are read for the graph: `rules` needs no model, `llm` asks the"
        " chat model, `off` reads nothing. Default `rules`. After a change all documents are read"
        " again; `off` forgets what was read.",
    )
    facets: Sequence[Annotated[str, Field(min_length=1, max_length=MAX_FACET_CHARACTERS)]] = Field(
        default=(),
        max_length=MAX_FACETS,
        description="Fields of the metadata, such as `author` or `topic.area`, that searches with"
        " `facet=*` count. Empty: those that tell the found passages apart best.",
    )
    vectors: bool = Field(
        default=True,
        description="Whether its passages are embedded and found by meaning. Default true; false:"
        " they are found by words only, and vectors that are there are kept. Switched on again,"
        " what has none is embedded.",
    )
    automatic_model: bool = Field(
        default=True,
        description="Whether the languages of its documents choose the model that they are embedded"
        " with. Default true; false: it keeps the one that it has.",
    )
    reranker: str = Field(
        default="",
        max_length=63,
        title=gettext_noop("Reranker"),
        description="The entry of `RERANKERS`, or the alias of a connected reranker, that reads its"
        " best hits again; empty: the site's own.",
    )
    rerank_instruction: str = Field(
        default="",
        max_length=1000,
        title=gettext_noop("Instruction of the reranker"),
        description=gettext_noop(
            "What the reranker is to look for, for models that heed it. Empty: what it was trained"
            " on."
        ),
    )
    fusion: FusionOptions = Field(
        default=FusionOptions(),
        description="How searches join words and meaning; `{}`: as the site does.",
    )

    @field_validator("facets", mode="before")
    @classmethod
    def _check_facets(cls, given: Any) -> Any:
        return checked_facets(given) if isinstance(given, list | tuple) else given

    @field_validator("rerank_instruction")
    @classmethod
    def _strip(cls, given: str) -> str:
        return given.strip()

    @field_validator("language")
    @classmethod
    def _check_language(cls, given: str) -> str:
        if given and given not in CONFIGURATIONS and given not in DETECTED_ONLY:
            known = ", ".join(sorted(CONFIGURATIONS))
            raise InvalidInput(
                gettext(
                    "“{language}” is no language code known here. Use one of {known}, or"
                    " leave it empty to detect each document's language."
                ).format(language=given, known=known),
                field="language",
            )
        return given

    @field_validator("reranker")
    @classmethod
    def _check_reranker(cls, given: str) -> str:
        if given and given not in rerankers:
            known = ", ".join(rerankers) or "none"
            raise InvalidInput(
                gettext("There is no reranker “{reranker}”. RERANKERS has: {known}.").format(
                    reranker=given, known=known
                ),
                field="reranker",
            )
        return given

    def columns(self) -> dict[str, Any]:
        """What was given, by the columns of a collection."""
        given = self.given()
        if "language" in given:
            given["default_language"] = given.pop("language")
        return given
