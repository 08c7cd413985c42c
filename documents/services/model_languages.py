"""What people are told of a collection's embedding model: texts in languages that it was not made
for, and the move to one that was. Begin with `model_notes`; what moves collections by itself is
`documents.ingestion.space_choice`.
"""

from collections.abc import Collection as Codes
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from django.db import transaction
from django.db.models import QuerySet
from django.utils.text import get_text_list
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from accounts.audit import Action
from common.errors import Conflict
from documents.fitting_models import (
    FittingModel,
    better_space,
    counted_languages,
    documents_by_language,
    fitting_model,
)
from documents.ingestion.space_choice import ensure_space
from documents.languages import language_name
from documents.models import Collection, Document, EmbeddingSpace, IngestionRun, Reembedding
from documents.services.audit import record
from documents.services.spaces import default_space, queue_reembedding, queue_space_index
from inference.model_languages import EVERY, is_made_for


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
    model was not made for; before the first document, of its default language. None without, and
    where it has no vectors."""
    made_for = collection.space.languages
    if not made_for or EVERY in made_for or not collection.has_vectors:
        return None
    given = Document.objects.filter(collection=collection) if documents is None else documents
    counts = documents_by_language(given)
    if not counts and collection.default_language:
        counts = {collection.default_language: 0}
    counted = counted_languages(counts)
    missing = {code: number for code, number in counted.items() if not is_made_for(made_for, code)}
    if not missing:
        return None
    ordered = sorted(missing, key=lambda code: (-missing[code], code))
    return LanguageGap(collection, tuple(ordered), sum(missing.values()), fitting_model(counted))


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
    found = ensure_space(fitting)
    if fitting.space is None:
        # Without it searches compare with every vector, which `manage.py validate` would report.
        transaction.on_commit(partial(queue_space_index, space=found), robust=True)
    return found


def move_to_fitting_model(*, collection: Collection, user: Any) -> Reembedding:
    """Have the workers move the collection to a model that was made for its languages, or to the
    better one of this release, while it is searched. Languages go on to choose its model, if they
    did. Raises Conflict where nothing is to be moved, or it is being moved already, and
    InferenceError."""
    gap = language_gap(collection)
    if gap is None:
        target = better_space(collection)
        if target is None:
            raise Conflict(
                _("The model of “%(collection)s” was made for the languages of its documents.")
                % {"collection": collection}
            )
    elif gap.fitting is None:
        raise Conflict(f"{gap.sentence} {gap.cure}")
    else:
        target = ensure_space(gap.fitting)
    row = queue_reembedding(target=target, collection=collection, by_hand=False, user=user)
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


@dataclass(frozen=True, slots=True)
class ModelNotes:
    """What people are told of a collection's model: the first of them that there is. `moving` are
    the words for the unfinished `move`, `better` is the space of this release's better model."""

    gap: LanguageGap | None
    move: Reembedding | None
    moving: str
    better: EmbeddingSpace | None

    @property
    def sentences(self) -> list[str]:
        """For programs and terminals."""
        if self.gap:
            return [f"{self.gap.sentence} {self.gap.cure}"]
        return [self.moving] if self.moving else []


def model_notes(collection: Collection, documents: QuerySet[Document] | None = None) -> ModelNotes:
    """For the collection's pages, to those who may see these `documents`, or all."""
    gap = language_gap(collection, documents)
    move = None if gap else open_move(collection)
    moving = move_sentence(move, collection) if move else ""
    better = None if gap or move else better_space(collection)
    return ModelNotes(gap, move, moving, better)


def run_notes(run: IngestionRun, user: Any = None) -> ModelNotes:
    """For a run that has ended: of the documents that it brought, of those that `user` may see, and
    of the move that they caused."""
    gap = run_gap(run, user)
    move = open_move(run.collection) if run.is_finished and not gap else None
    return ModelNotes(gap, move, move_sentence(move, run.collection) if move else "", None)


def open_move(collection: Collection) -> Reembedding | None:
    """The unfinished move of the collection's passages to another model, or of everything's."""
    if not collection.former_spaces:
        return None
    moves = Reembedding.objects.exclude(state=Reembedding.State.DONE).filter(
        target=collection.space
    )
    return moves.filter(collection=collection).first() or moves.filter(collection=None).first()


def move_sentence(move: Reembedding, collection: Collection) -> str:
    """What is happening, in the words of somebody who chose no model where nobody did."""
    numbers = {"done": f"{move.done:,}", "total": f"{move.total:,}"}
    if collection.automatic_model:
        documents = documents_by_language(Document.objects.filter(collection=collection))
        former = EmbeddingSpace.objects.filter(pk__in=collection.former_spaces)
        foreign = [
            code
            for code in counted_languages(documents)
            if not all(is_made_for(space.languages, code) for space in former)
        ]
        if foreign:
            foreign.sort(key=lambda code: (-documents[code], code))
            return _(
                "Some documents are in %(languages)s. They are being prepared so that questions in"
                " %(languages)s find them: %(done)s of %(total)s."
            ) % {"languages": list_languages(foreign), **numbers}
    return _(
        "Passages are moving to %(model)s: %(done)s of %(total)s. All of them are found meanwhile."
    ) % {"model": move.target.model_name, **numbers}
