"""Texts in languages that a collection's embedding model was not made for, and the move to a model
that was. Begin with `language_gap`.
"""

from collections.abc import Collection as Codes
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from django.db import transaction
from django.db.models import Count, QuerySet
from django.utils.text import get_text_list, slugify
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from accounts.audit import Action
from common.errors import Conflict
from common.rls import bypass_rls
from documents.embedders import embedder_for
from documents.languages import language_name
from documents.models import Collection, Document, EmbeddingSpace, IngestionRun, Reembedding
from documents.services.audit import record
from documents.services.spaces import (
    add_space,
    default_space,
    get_space,
    queue_reembedding,
    queue_space_index,
)
from inference.interfaces import InferenceError
from inference.model_languages import EVERY, is_made_for, model_languages
from inference.model_registry import embedders

#: A language counts with this share of a collection's documents, or this many: the detected
#: language of a single one among many may be wrong.
MIN_SHARE = 0.02
MIN_DOCUMENTS = 10


@dataclass(frozen=True, slots=True)
class FittingModel:
    """An embedder that was made for the languages in question, and its space, None before the
    first use."""

    alias: str
    model_name: str
    space: EmbeddingSpace | None

    @property
    def space_name(self) -> str:
        """Of the space that there is, or that will be."""
        if self.space is not None:
            return self.space.name
        short = slugify(self.model_name.rpartition("/")[2].replace(".", "-"))
        return f"{short}-{embedders[self.alias].dimensions}"[-60:].strip("-_")


@dataclass(frozen=True, slots=True)
class LanguageGap:
    """`languages` (ISO codes, most documents first) of `document_count` documents, which the model
    of the collection was not made for. `fitting` was; None where no such model is configured."""

    collection: Collection
    languages: tuple[str, ...]
    document_count: int
    fitting: FittingModel | None

    @property
    def sentence(self) -> str:
        """What is wrong, without the cure."""
        names = list_languages(self.languages)
        model = self.collection.space.model_name
        if not self.document_count:
            return _(
                "Documents of “%(collection)s” are in %(languages)s, which its model %(model)s was"
                " not made for: search by meaning will hardly find them."
            ) % {"collection": self.collection, "languages": names, "model": model}
        return ngettext(
            "%(count)s document of “%(collection)s” is in %(languages)s, which its model %(model)s"
            " was not made for: search by meaning hardly finds it.",
            "%(count)s documents of “%(collection)s” are in %(languages)s, which its model"
            " %(model)s was not made for: search by meaning hardly finds them.",
            self.document_count,
        ) % {
            "count": f"{self.document_count:,}",
            "collection": self.collection,
            "languages": names,
            "model": model,
        }

    @property
    def cure(self) -> str:
        """What to do about it, for whoever reads it anywhere but on the collection's page."""
        return move_advice(self.fitting, [self.collection.slug])


def list_languages(codes: Codes[str]) -> str:
    """“German and Spanish”, for ISO codes, in the language of the page."""
    return get_text_list([language_name(code) for code in codes], _("and"))


def move_advice(fitting: FittingModel | None, slugs: Sequence[str]) -> str:
    """A sentence that says how these collections get to a model for their languages."""
    if fitting is None:
        return _(
            "No model for that is configured: “Change the embedding model” in the documentation"
            " says how to add one."
        )
    commands = [f"manage.py reembed --to {fitting.space_name} --collection {slugs[0]}"]
    if fitting.space is None:
        commands.insert(0, f"manage.py spaces add {fitting.space_name} --embedder {fitting.alias}")
    written = " && ".join(commands)
    if len(slugs) > 1:
        return _("Move them to %(model)s on their pages, or the first with `%(command)s`.") % {
            "model": fitting.model_name,
            "command": written,
        }
    return _("Move the collection to %(model)s on its page, or with `%(command)s`.") % {
        "model": fitting.model_name,
        "command": written,
    }


def language_gap(
    collection: Collection, documents: QuerySet[Document] | None = None
) -> LanguageGap | None:
    """The languages of the collection's current documents, or of those of `documents`, that its
    model was not made for; before the first document, of its default language. None without."""
    made_for = collection.space.languages
    if not made_for or EVERY in made_for:
        return None
    given = Document.objects.filter(collection=collection) if documents is None else documents
    counts = dict(
        given.filter(is_current=True, status=Document.Status.READY)
        .order_by()
        .values_list("language")
        .annotate(number=Count("pk", distinct=True))
    )
    if not counts and collection.default_language:
        counts = {collection.default_language: 0}
    least = min(MIN_SHARE * sum(counts.values()), MIN_DOCUMENTS)
    missing = {
        code: number
        for code, number in counts.items()
        if number >= least and not is_made_for(made_for, code)
    }
    if not missing:
        return None
    ordered = sorted(missing, key=lambda code: (-missing[code], code))
    wanted = {*missing, *(code for code, number in counts.items() if number and code)}
    return LanguageGap(collection, tuple(ordered), sum(missing.values()), fitting_model(wanted))


def fitting_model(languages: Codes[str]) -> FittingModel | None:
    """A working model that was made for all these languages: of the default space, of another one,
    or of a configured embedder without a space."""

    def fits(alias: str, model_name: str) -> bool:
        made_for = model_languages(alias, model_name)
        return bool(made_for) and all(is_made_for(made_for, code) for code in languages)

    spaces = EmbeddingSpace.objects.order_by("-is_default", "state", "id")
    for space in spaces:
        if fits(space.embedder, space.model_name):
            try:
                embedder_for(space)
            except InferenceError:
                continue
            return FittingModel(space.embedder, space.model_name, space)
    for alias in {*embedders} - {space.embedder for space in spaces}:
        try:
            model_name, _dimensions = embedders[alias].model_name, embedders[alias].dimensions
        except InferenceError:
            continue
        if fits(alias, model_name):
            return FittingModel(alias, model_name, None)
    return None


def space_for_languages(languages: Codes[str]) -> EmbeddingSpace:
    """The space of a new collection: the site's default, unless its model was not made for one of
    these languages and another model was."""
    space = default_space()
    made_for = space.languages
    if all(is_made_for(made_for, code) for code in languages):
        return space
    fitting = fitting_model(languages)
    if fitting is None:
        return space
    found = _ensure_space(fitting)
    if fitting.space is None:
        # Without it searches compare with every vector, which `manage.py validate` would report.
        transaction.on_commit(partial(queue_space_index, space=found), robust=True)
    return found


def _ensure_space(fitting: FittingModel) -> EmbeddingSpace:
    if fitting.space is not None:
        return fitting.space
    with bypass_rls():  # the history of the site belongs to no workspace
        try:
            return add_space(name=fitting.space_name, embedder=fitting.alias)[0]
        except Conflict:  # of somebody else who was faster
            return get_space(fitting.space_name)


def move_to_fitting_model(*, collection: Collection, user: Any) -> Reembedding:
    """Have the workers move the collection to a model that was made for its languages, while it is
    searched. Raises Conflict where nothing is to be moved, or it is being moved already, and
    InferenceError."""
    gap = language_gap(collection)
    if gap is None:
        raise Conflict(
            _("The model of “%(collection)s” was made for the languages of its documents.")
            % {"collection": collection}
        )
    if gap.fitting is None:
        raise Conflict(f"{gap.sentence} {gap.cure}")
    target = _ensure_space(gap.fitting)
    row = queue_reembedding(target=target, collection=collection, user=user)
    record(Action.CHANGED, collection, fields=["space"])
    return row


def run_gap(run: IngestionRun, user: Any = None) -> LanguageGap | None:
    """The gap of the documents of a run that has ended, of those that `user` may see."""
    if not run.is_finished:
        return None
    documents = Document.objects.filter(collection=run.collection, items__run=run)
    if user is not None:
        documents = documents.visible_to(user)
    return language_gap(run.collection, documents) if documents.exists() else None


def open_move(collection: Collection) -> Reembedding | None:
    """The unfinished move of the collection's passages to another model, or of everything's."""
    if not collection.former_spaces:
        return None
    moves = Reembedding.objects.exclude(state=Reembedding.State.DONE).filter(
        target=collection.space
    )
    return moves.filter(collection=collection).first() or moves.filter(collection=None).first()
