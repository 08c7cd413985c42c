"""Which model was made for the languages of a collection's documents, and which is better than the
one it has. Begin with `fitting_model`."""

import re
from collections.abc import Collection as Codes
from collections.abc import Mapping
from dataclasses import dataclass

from django.db.models import Count, QuerySet
from django.utils.text import slugify

from documents.embedders import embedder_for
from documents.models import Collection, Document, EmbeddingSpace
from inference.interfaces import Embedder, InferenceError
from inference.model_languages import is_made_for, model_languages, supersedes
from inference.model_registry import alias_of, embedders

#: A language counts with this share of a collection's documents, or this many: the detected
#: language of a single one among many may be wrong.
MIN_SHARE = 0.02
MIN_DOCUMENTS = 10


def documents_by_language(documents: QuerySet[Document]) -> dict[str, int]:
    """How many of these documents, as far as they can be found, are in each language, by ISO code;
    empty where it is unknown."""
    found = documents.filter(is_current=True, status=Document.Status.READY).order_by()
    return dict(found.values_list("language").annotate(number=Count("pk", distinct=True)))


def counted_languages(documents: Mapping[str, int]) -> dict[str, int]:
    """Of the numbers of documents by language those that are no mistakes of the detection."""
    least = min(MIN_SHARE * sum(documents.values()), MIN_DOCUMENTS)
    return {code: number for code, number in documents.items() if code and number >= least}


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
        return space_name(embedders[self.alias])


def space_name(embedder: Embedder) -> str:
    """The name of a new space of this model: its own without the owner, and its dimensions."""
    name = embedder.model_name.rpartition("/")[2].removesuffix(":latest")
    short = slugify(re.sub("[.:]", "-", name))
    return f"{short}-{embedder.dimensions}"[-60:].strip("-_")


def fitting_model(languages: Codes[str]) -> FittingModel | None:
    """A working model that was made for all these languages: of the default space, of another one,
    or of a configured embedder without a space. A connected model is chosen by people only: it is
    none of these unless they made its space the default."""
    spaces = EmbeddingSpace.objects.order_by("-is_default", "state", "id")
    for space in spaces:
        alias = alias_of(space.embedder, space.model_name)
        is_offered = space.is_default or alias in embedders.configured()
        if is_offered and _fits(alias, space.model_name, languages):
            try:
                embedder_for(space)
            except InferenceError:
                continue
            return FittingModel(alias, space.model_name, space)
    used = {alias_of(space.embedder, space.model_name) for space in spaces}
    for alias in embedders.configured():
        if alias not in used:
            try:
                model_name, _dimensions = embedders[alias].model_name, embedders[alias].dimensions
            except InferenceError:
                continue
            if _fits(alias, model_name, languages):
                return FittingModel(alias, model_name, None)
    return None


def cutting_embedder(space: EmbeddingSpace, language: str) -> Embedder:
    """The embedder whose tokens a text is cut by: that of the space, unless it was not made for
    the language and another configured one was, because the collection moves to that.

    A vocabulary of English cuts a Russian word into its letters, and passages would be a quarter
    as long as they should be. Uses no database. Raises InferenceError.
    """
    own = embedder_for(space)
    if not is_made_for(space.languages, language):
        for alias in embedders.configured():
            try:
                if _fits(alias, embedders[alias].model_name, [language]):
                    return embedders[alias]
            except InferenceError:
                continue
    return own


def better_space(collection: Collection) -> EmbeddingSpace | None:
    """The default space, where its model supersedes the collection's, which is of an earlier
    release, and was made for the documents' languages; None where somebody chose the model."""
    if not (collection.has_vectors and collection.automatic_model) or collection.former_spaces:
        return None
    space = EmbeddingSpace.objects.filter(is_default=True).first()
    if space is None or not supersedes(space.model_name, collection.space.model_name):
        return None
    documents = Document.objects.filter(collection=collection)
    languages = counted_languages(documents_by_language(documents))
    return space if all(is_made_for(space.languages, code) for code in languages) else None


def _fits(alias: str, model_name: str, languages: Codes[str]) -> bool:
    made_for = model_languages(alias, model_name)
    return bool(made_for) and all(is_made_for(made_for, code) for code in languages)
