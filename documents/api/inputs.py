"""What requests about collections, documents and runs may say."""

import re
from typing import Any

from django.conf import settings
from django.core.validators import RegexValidator
from drf_spectacular.utils import extend_schema_serializer
from rest_framework import serializers

from accounts.api import WorkspaceParameters
from common.serializers import MetadataField, PageParameters, StrictSerializer
from common.wording import counted
from documents.api.serializers import FusionSerializer
from documents.chunkers import CHUNKERS
from documents.chunkers.options import Option
from documents.facets import MAX_CHARACTERS, MOST_FACETS
from documents.models import Collection, Document, IngestionItem, IngestionRun
from documents.services import MAX_METADATA_CHARACTERS

#: A key stands in an index, whose rows PostgreSQL bounds at about 2,700 bytes.
MAX_KEY_BYTES = 2048
MEDIA_TYPE = re.compile(r"^[\w.+-]+/[\w.+-]+$", re.ASCII)


class CollectionFilter(PageParameters, WorkspaceParameters):
    """Which collections."""


class DocumentFilter(PageParameters, WorkspaceParameters):
    """Which documents."""

    collection = serializers.SlugField(
        required=False, max_length=63, help_text="Slug of a collection."
    )
    key = serializers.CharField(
        required=False,
        max_length=1024,
        trim_whitespace=False,
        help_text="The caller's own id: with `collection`, at most one document has it.",
    )
    status = serializers.ChoiceField(
        choices=Document.Status.choices,
        required=False,
        help_text="How far the newest ingestion of the document is.",
    )
    media_type = serializers.CharField(required=False, max_length=100, help_text="`text/markdown`.")
    versions = serializers.ChoiceField(
        choices=["current", "all"],
        default="current",
        help_text="`all` lists superseded versions too, and such as are not loaded yet.",
    )


class DocumentInput(StrictSerializer):
    """What is to be said of a document from now on."""

    title = serializers.CharField(
        required=False,
        max_length=500,
        help_text="It stands with every passage, so all of them are embedded anew.",
    )
    metadata = MetadataField(
        required=False, help_text="All of it: what is not named is taken away."
    )
    access = serializers.ListField(
        child=serializers.CharField(max_length=80),
        required=False,
        allow_null=True,
        max_length=100,
        help_text="Who may see it, in all its versions: members of the workspace as `user:7`,"
        " groups as `group:3`, you among them. Null: everybody in the workspace.",
    )


class DocumentDeletion(WorkspaceParameters):
    """What goes with a document."""

    versions = serializers.ChoiceField(
        choices=["all", "this"],
        default="all",
        help_text="`this` deletes a single superseded version.",
    )


class ChunkFilter(PageParameters, WorkspaceParameters):
    """Which chunks of the document."""


class EditFilter(PageParameters, WorkspaceParameters):
    """Which changes."""


class RunFilter(PageParameters, WorkspaceParameters):
    """Which runs."""

    collection = serializers.SlugField(
        required=False, max_length=63, help_text="Slug of a collection."
    )
    state = serializers.ChoiceField(
        choices=IngestionRun.State.choices, required=False, help_text="How far the run is."
    )


class ItemFilter(PageParameters, WorkspaceParameters):
    """Which files of the run."""

    state = serializers.ChoiceField(
        choices=IngestionItem.State.choices, required=False, help_text="How far the file is."
    )


@extend_schema_serializer(component_name="ChunkerOptions")
class ChunkerOptionsInput(StrictSerializer):
    """What the chunker is told. Each takes only its own options; tokens are the model's."""

    def get_fields(self) -> dict[str, serializers.Field[Any, Any, Any, Any]]:
        return {name: _option_field(users) for name, users in _options().items()}


def _options() -> dict[str, dict[str, Option]]:
    """Every option by its name, and by the chunker that takes it."""
    options: dict[str, dict[str, Option]] = {}
    for chunker, kind in CHUNKERS.items():
        for option in kind.options:
            options.setdefault(option.name, {})[chunker] = option
    return options


def _option_field(users: dict[str, Option]) -> serializers.IntegerField:
    option = next(iter(users.values()))
    by_default: dict[int, list[str]] = {}
    for chunker, each in users.items():
        by_default.setdefault(each.default, []).append(chunker)
    defaults = "; ".join(f"{value} for {', '.join(of)}" for value, of in by_default.items())
    return serializers.IntegerField(
        required=False,
        min_value=option.least,
        max_value=option.most,
        help_text=f"{option.help} Default: {defaults}.",
    )


@extend_schema_serializer(component_name="CollectionChange")
class _CollectionInput(StrictSerializer):
    """What a collection has from its beginning, and can be changed."""

    name = serializers.CharField(max_length=200)
    description = serializers.CharField(required=False, allow_blank=True, max_length=10_000)
    language = serializers.CharField(
        required=False,
        allow_blank=True,
        max_length=20,
        help_text="ISO code, such as `de`. Empty: each document's language is detected.",
    )
    chunker = serializers.CharField(
        required=False,
        max_length=20,
        help_text=f"How documents are cut: {', '.join(f'`{name}`' for name in CHUNKERS)}. Default"
        " `auto`. A change holds for documents when they are next ingested.",
    )
    chunker_options = ChunkerOptionsInput(required=False)
    graph = serializers.ChoiceField(
        choices=Collection.Graph.choices,
        required=False,
        help_text="How documents are read for the graph: `rules` needs no model, `llm` asks the"
        " chat model, `off` reads nothing. Default `rules`. After a change all documents are read"
        " again; `off` forgets what was read.",
    )
    facets = serializers.ListField(
        child=serializers.CharField(max_length=MAX_CHARACTERS),
        required=False,
        max_length=MOST_FACETS,
        help_text="Fields of the metadata, such as `author` or `topic.area`, that searches with"
        " `facet=*` count. Empty: those that tell the found passages apart best.",
    )


@extend_schema_serializer(component_name="CollectionChange")
class CollectionInput(_CollectionInput):
    """What of a collection can be changed."""

    reranker = serializers.CharField(
        required=False,
        allow_blank=True,
        max_length=63,
        help_text="The entry of `RERANKERS` that reads its best hits again; empty: the site's own.",
    )
    rerank_instruction = serializers.CharField(
        required=False,
        allow_blank=True,
        max_length=1000,
        help_text="What the reranker is to look for, for models that heed it.",
    )
    fusion = FusionSerializer(
        required=False, help_text="How searches join words and meaning; `{}`: as the site does."
    )


@extend_schema_serializer(component_name="NewCollection")
class NewCollectionInput(_CollectionInput):
    """A collection to be made."""

    slug = serializers.SlugField(
        required=False, max_length=63, help_text="Its name in addresses. Default: from the name."
    )


class _Target(StrictSerializer):
    """Where a document goes."""

    collection = serializers.SlugField(max_length=63, help_text="Slug of the collection.")
    policy = serializers.ChoiceField(
        choices=IngestionRun.Policy.choices,
        default=IngestionRun.Policy.SKIP_IF_UNCHANGED.value,
        help_text="What to do with a key that is there already. `skip_if_unchanged` replaces a text"
        " that is not the same, `overwrite` any; `new_version` keeps the one before as a version"
        " that is read and not searched.",
    )
    store_once = serializers.BooleanField(
        default=False,
        help_text="A document with the bytes of another one of the collection becomes a link to it:"
        " nothing is embedded or found twice.",
    )
    metadata = MetadataField(
        required=False, help_text="JSON object of your own, found again with every hit."
    )

    access = serializers.ListField(
        child=serializers.CharField(max_length=80),
        required=False,
        allow_null=True,
        max_length=100,
        help_text="Who may see the documents that are new, from the first moment: members of the"
        " workspace as `user:7`, groups as `group:3`, you among them. Default: everybody in the"
        " workspace. A document that is there keeps its own, and takes no text for fewer than may"
        " see it.",
    )

    def validate_metadata(self, metadata: dict[str, Any]) -> dict[str, Any]:
        if len(str(metadata)) > MAX_METADATA_CHARACTERS:
            problem = f"The metadata may have {MAX_METADATA_CHARACTERS:,} characters."
            raise serializers.ValidationError(problem)
        return metadata


def check_key(key: str) -> None:
    """Raise ValidationError for a key that the index cannot hold."""
    if len(key.encode()) > MAX_KEY_BYTES:
        raise serializers.ValidationError(f"A key may have {MAX_KEY_BYTES:,} bytes.")


@extend_schema_serializer(component_name="TextDocument")
class TextInput(_Target):
    """A document given as text."""

    key = serializers.CharField(
        max_length=1024,
        trim_whitespace=False,
        validators=[check_key],
        help_text="Your own id for it: the same key again replaces the document.",
    )
    text = serializers.CharField(trim_whitespace=False)
    title = serializers.CharField(required=False, allow_blank=True, max_length=500)
    media_type = serializers.CharField(
        default="text/plain",
        max_length=100,
        validators=[RegexValidator(MEDIA_TYPE, "A media type looks like “text/markdown”.")],
        help_text="`text/plain`, `text/markdown` or `text/html`.",
    )


@extend_schema_serializer(component_name="FileUpload")
class FilesInput(_Target):
    """Documents given as files. Each one's key is its path, else its name."""

    files = serializers.ListField(
        child=serializers.FileField(max_length=1024, allow_empty_file=True),
        min_length=1,
        max_length=settings.MAX_UPLOAD_FILES,
        help_text="One or more files: repeat the field. A broken one fails alone.",
    )
    paths = serializers.ListField(
        child=serializers.CharField(max_length=1024, validators=[check_key]),
        required=False,
        help_text="The files' paths in their folder, as many and in the same order.",
    )

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        paths = attrs.get("paths")
        if paths and len(paths) != len(attrs["files"]):
            files, named = counted(len(attrs["files"]), "file"), counted(len(paths), "path")
            problem = f"{files} came with {named}. Send as many."
            raise serializers.ValidationError({"paths": problem})
        return attrs
