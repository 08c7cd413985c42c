"""Forms of the pages: collections, uploads, and changes of passages and documents."""

import json
import re
from collections.abc import Iterable
from typing import Any

from django import forms
from django.conf import settings
from django.contrib.auth.models import Group
from django.core.files.uploadedfile import UploadedFile
from django.template.defaultfilters import filesizeformat
from django.utils.text import format_lazy
from django.utils.translation import gettext, gettext_lazy

from accounts.models import Membership, WorkspaceGroup
from common import features
from common.errors import InvalidInput, RagsiteError
from common.fusion_options import FusionOptions
from common.options import option_fields
from common.options.forms import OptionsField, WrittenField, form_field
from documents.collection_options import CollectionOptions, checked_facets
from documents.models import Collection, Document, IngestionRun
from documents.services import Upload
from documents.services.chunk_edits import MAX_PASSAGE_CHARACTERS
from documents.services.document_update import MAX_TITLE_CHARACTERS
from inference.model_registry import rerankers
from reading.chunkers import CHUNKERS
from reading.chunkers.options import ChunkerOptions

ACCESS_HELP = gettext_lazy("Nobody ticked: everybody in the workspace.")


def workspace_people(workspace_id: int) -> list[tuple[str, str]]:
    """The workspace's groups and members as (access list entry, name), and groups of the admin that
    a member is in."""
    groups = WorkspaceGroup.objects.filter(workspace=workspace_id).order_by("name")
    others = Group.objects.filter(
        workspace_group=None, user__memberships__workspace=workspace_id
    ).distinct()
    members = Membership.objects.filter(workspace=workspace_id).select_related("user")
    return [
        *((group.principal, group_label(group.name)) for group in groups),
        *((f"group:{group.pk}", group_label(group.name)) for group in others.order_by("name")),
        *(
            (f"user:{member.user_id}", member.user.username)
            for member in members.order_by("user__username")
        ),
    ]


def group_label(name: str) -> str:
    """Such as “Sales (group)”, to be told from a member of the same name."""
    return gettext("{name} (group)").format(name=name)


class AccessForm(forms.Form):
    """A form with a check box for everybody who may be given access, if there is anybody else."""

    access = forms.MultipleChoiceField(
        label=gettext_lazy("Who may see it"),
        required=False,
        widget=forms.CheckboxSelectMultiple,
        help_text=ACCESS_HELP,
    )
    #: Whether there is anybody to keep it from.
    has_access = True

    def offer_access(self, workspace_id: int, *, chosen: Iterable[str] = ()) -> None:
        """Offer groups and members of the workspace, and who is in the list already."""
        choices = workspace_people(workspace_id)
        known = {name for name, _ in choices}
        choices += [(name, name) for name in chosen if name not in known]
        self.fields["access"].choices = choices  # type: ignore[attr-defined]
        self.order_fields([name for name in self.fields if name != "access"])
        self.has_access = len(choices) > 1
        if not self.has_access:
            del self.fields["access"]

    def clean_access(self) -> list[str] | None:
        """The access list, or None for everybody in the workspace."""
        return self.cleaned_data["access"] or None


MAX_FILE_NAME_CHARACTERS = 1024
CHUNKER_CHOICES = [
    (name, format_lazy("{}: {}", name, gettext_lazy(kind.summary)))
    for name, kind in CHUNKERS.items()
]
GRAPH_CHOICES = [
    (
        Collection.Graph.RULES,
        gettext_lazy("By rules: names, links, dates, code, tables; needs no model"),
    ),
    (
        Collection.Graph.LLM,
        gettext_lazy("By the chat model: also what relates them; takes its time"),
    ),
    (Collection.Graph.OFF, gettext_lazy("Off: nothing is read, and what was is forgotten")),
]

VECTORS_CHOICES = [
    (True, gettext_lazy("On: found by words and by meaning")),
    (False, gettext_lazy("Off: found by words only")),
]
AUTOMATIC_MODEL_CHOICES = [
    (True, gettext_lazy("Choose by the languages of the documents")),
    (False, gettext_lazy("Keep the current model")),
]


class FacetsField(WrittenField):
    """Metadata fields as people write them, `author, topic.area`, as a list."""

    kind = list

    def parse(self, text: str) -> list[str]:
        return checked_facets(re.split(r"[,\n]", text))

    def write(self, value: list[str]) -> str:
        return ", ".join(value)


def reranker_choices() -> list[tuple[str, Any]]:
    """The site's own, the entries of RERANKERS, and those that are connected."""
    return [("", gettext_lazy("The site's own")), *rerankers.labels().items()]


class CollectionChangeForm(forms.Form):
    """Fields of a collection that can be changed."""

    name = forms.CharField(
        label=gettext_lazy("Name"), max_length=200, help_text=gettext_lazy("What people call it.")
    )
    description = forms.CharField(
        label=gettext_lazy("Description"),
        required=False,
        widget=forms.Textarea(attrs={"rows": 2}),
        help_text=gettext_lazy("What is in it."),
    )
    language = forms.CharField(
        label=gettext_lazy("Language"),
        max_length=20,
        required=False,
        help_text=gettext_lazy(
            "A code such as “de”. Left empty, each document's language is detected."
        ),
    )
    vectors = forms.TypedChoiceField(
        label=gettext_lazy("Vectors"),
        choices=VECTORS_CHOICES,
        coerce=lambda value: value == "True",
        initial=True,
        required=False,
        help_text=gettext_lazy(
            "Whether passages are found by meaning, too. Switched off, vectors that are there are"
            " kept and not searched; switched on again, what has none is embedded."
        ),
    )
    automatic_model = forms.TypedChoiceField(
        label=gettext_lazy("Embedding model"),
        choices=AUTOMATIC_MODEL_CHOICES,
        coerce=lambda value: value == "True",
        initial=True,
        required=False,
        help_text=gettext_lazy(
            "Whether a model made for the languages of the documents may replace the current one."
        ),
    )
    chunker = forms.ChoiceField(
        label=gettext_lazy("Chunking"),
        choices=CHUNKER_CHOICES,
        initial="auto",
        required=False,
        help_text=gettext_lazy("How documents become passages. “auto” suits most."),
    )
    chunker_options = OptionsField(
        ChunkerOptions,
        label=gettext_lazy("Chunker options"),
        max_length=200,
        help_text=gettext_lazy(
            "Such as “max_tokens=200 overlap=20”. Empty: the chunker's own defaults."
        ),
    )
    graph = forms.ChoiceField(
        label=gettext_lazy("Graph"),
        choices=GRAPH_CHOICES,
        initial=Collection.Graph.RULES,
        required=False,
        help_text=gettext_lazy(
            "How documents are read for what they mention and how it is related."
        ),
    )
    facets = FacetsField(
        label=gettext_lazy("Facets"),
        max_length=1000,
        required=False,
        empty_value="",
        help_text=gettext_lazy(
            "Fields of the metadata to narrow results by, such as “author, topic.area”. Left"
            " empty, those that tell the found passages apart best."
        ),
    )

    reranker = forms.ChoiceField(
        label=gettext_lazy("Reranker"),
        choices=reranker_choices,
        required=False,
        help_text=Collection._meta.get_field("reranker").help_text,
    )
    rerank_instruction = form_field(option_fields(CollectionOptions)["rerank_instruction"])
    fusion = OptionsField(
        FusionOptions,
        keys={"vector": "weights", "lexical": "weights"},
        label=gettext_lazy("Fusion"),
        max_length=200,
        help_text=gettext_lazy(
            "How searches join words and meaning: “method=rrf”, “method=weighted"
            " vector=0.7 lexical=0.3”, “depth=400”. Empty: as the site does."
        ),
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for name in ("graph", "vectors"):
            if not features.is_on(name):
                del self.fields[name]

    def clean(self) -> dict[str, Any]:
        """What was not chosen stays as it is; a new collection gets the defaults."""
        given: dict[str, Any] = super().clean() or self.cleaned_data
        for name in ("chunker", "graph", "vectors", "automatic_model"):
            if given.get(name) == "":
                given[name] = self.get_initial_for_field(self.fields[name], name)
        return given

    @classmethod
    def of(cls, collection: Collection, posted: Any = None) -> "CollectionChangeForm":
        """The form filled with the collection's values."""
        return cls(
            posted,
            initial={
                name: getattr(collection, "default_language" if name == "language" else name)
                for name in CollectionChangeForm.base_fields
            },
        )


class CollectionForm(CollectionChangeForm):
    """The fields of a new collection: also its slug."""

    slug = forms.SlugField(
        label=gettext_lazy("Address"),
        max_length=63,
        required=False,
        help_text=gettext_lazy("Stands in links. Left empty, it is made from the name."),
    )
    field_order = ("name", "slug")
    #: Fields at the top of the form; the others have defaults that suit most.
    first = ("name", "description")


class MultipleFileInput(forms.ClearableFileInput):
    allow_multiple_selected = True


class MultipleFileField(forms.FileField):
    """Every file of one input, as a list."""

    widget = MultipleFileInput

    def clean(self, data: Any, initial: Any = None) -> "list[UploadedFile[Any]]":
        """Django's checks on each file; an empty one passes, to fail later under its name."""
        if not data:
            raise forms.ValidationError(self.error_messages["required"], code="required")
        return [super(MultipleFileField, self).clean(file, initial) for file in data]


class UploadForm(AccessForm):
    """Files for a collection. `paths` are their names with folders, in the same order, because
    browsers send names without folders."""

    files = MultipleFileField(  # type: ignore[assignment]  # the field, not what was sent
        label=gettext_lazy("Files"),
        allow_empty_file=True,
        error_messages={"required": gettext_lazy("No file was sent. Choose at least one.")},
    )
    paths = forms.CharField(required=False, widget=forms.HiddenInput)
    again = forms.BooleanField(
        label=gettext_lazy("Process unchanged files again"),
        required=False,
        help_text=gettext_lazy("Files whose content is the same as before are skipped otherwise."),
    )

    versions = forms.BooleanField(
        label=gettext_lazy("Keep the earlier text of changed files"),
        required=False,
        help_text=gettext_lazy(
            "As a version that can be read and is not searched. It is replaced otherwise."
        ),
    )
    store_once = forms.BooleanField(
        label=gettext_lazy("Store the same file once"),
        required=False,
        help_text=gettext_lazy(
            "A file that is here already under another name becomes a link to it."
        ),
    )

    def __init__(self, *args: Any, workspace_id: int, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.offer_access(workspace_id)

    def clean_files(self) -> "list[UploadedFile[Any]]":
        """Refuse too large files before anything is stored."""
        files: list[UploadedFile[Any]] = self.cleaned_data["files"]
        large = [file for file in files if (file.size or 0) > settings.MAX_UPLOAD_BYTES]
        if large:
            named = ", ".join(
                f"{file.name} ({filesizeformat(file.size or 0)})" for file in large[:5]
            )
            more = (
                gettext(" and {number} more").format(number=len(large) - 5)
                if len(large) > 5
                else ""
            )
            too_large_message = gettext(
                "Too large: {named}{more}. A file may have {limit}. Nothing was stored: leave"
                " these out or split them, and send the rest again."
            ).format(named=named, more=more, limit=filesizeformat(settings.MAX_UPLOAD_BYTES))
            raise forms.ValidationError(too_large_message, code="too_large")
        return files

    def clean_paths(self) -> list[str]:
        """A JSON list of names; anything else counts as missing."""
        try:
            paths = json.loads(self.cleaned_data["paths"] or "[]")
        except ValueError:
            return []
        if not isinstance(paths, list):
            return []
        return [str(path).replace("\x00", "")[:MAX_FILE_NAME_CHARACTERS] for path in paths]

    def uploads(self) -> list[Upload]:
        """The files under their paths. Valid forms only."""
        files = self.cleaned_data["files"]
        names = [str(file.name) for file in files]
        paths = self.cleaned_data["paths"]
        if len(paths) == len(files):
            names = [path or name for path, name in zip(paths, names, strict=True)]
        return [Upload(name=name, file=file) for name, file in zip(names, files, strict=True)]

    def policy(self) -> str:
        """The ingestion policy that the checkboxes select. Valid forms only."""
        chosen = IngestionRun.Policy
        if self.cleaned_data["versions"]:
            return chosen.NEW_VERSION
        return chosen.OVERWRITE if self.cleaned_data["again"] else chosen.SKIP_IF_UNCHANGED


class DeleteCollectionForm(forms.Form):
    """The typed name confirms an irreversible deletion."""

    name = forms.CharField(label=gettext_lazy("Name of the collection"), strip=True)

    def __init__(self, *args: Any, expected: str, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.expected = expected
        self.fields["name"].widget.attrs["autocomplete"] = "off"

    def clean_name(self) -> str:
        """Must equal the collection's name exactly."""
        name: str = self.cleaned_data["name"]
        if name != self.expected:
            raise forms.ValidationError(
                gettext("That is not its name. Type “{expected}” to delete it.").format(
                    expected=self.expected
                ),
                code="wrong_name",
            )
        return name


class PassageForm(forms.Form):
    """The text of a passage; `expected` is the content hash when the form was shown."""

    text = forms.CharField(
        label=gettext_lazy("Text"),
        strip=False,
        max_length=MAX_PASSAGE_CHARACTERS,
        widget=forms.Textarea(attrs={"rows": 16, "spellcheck": "true"}),
        error_messages={
            "required": gettext_lazy("A passage needs a text. Or delete its document.")
        },
    )
    expected = forms.CharField(max_length=64, widget=forms.HiddenInput)


class MetadataLinesField(WrittenField):
    """Metadata as people write it, a field a line: `year: 2026`; lists and objects as JSON."""

    def parse(self, text: str) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for line in filter(str.strip, text.splitlines()):
            name, colon, value = map(str.strip, line.partition(":"))
            if not colon or not name:
                raise InvalidInput(
                    gettext(
                        "Write a field a line, its name before a colon: “{value}” has none."
                    ).format(value=line.strip()[:80])
                )
            if name in found:
                raise InvalidInput(gettext("“{name}” stands there twice.").format(name=name))
            found[name] = _parse_value(value)
        return found

    def write(self, value: dict[str, Any]) -> str:
        lines: list[str] = []
        for name, each in value.items():
            is_line = isinstance(each, str) and each == each.strip() and len(each.splitlines()) < 2
            is_plain = is_line and _parse_value(each) == each
            lines.append(f"{name}: {each if is_plain else json.dumps(each, ensure_ascii=False)}")
        return "\n".join(lines)


def _parse_value(text: str) -> Any:
    """Numbers, booleans, lists and objects parsed as JSON; everything else is text."""
    try:
        return json.loads(text)
    except ValueError:
        return text


class DocumentChangeForm(AccessForm):
    """Title, metadata, and who may see the document."""

    title = forms.CharField(
        label=gettext_lazy("Title"),
        max_length=MAX_TITLE_CHARACTERS,
        help_text=gettext_lazy(
            "It is found with every passage. Another one takes a moment: all are read anew."
        ),
    )
    metadata = MetadataLinesField(
        label=gettext_lazy("Metadata"),
        required=False,
        widget=forms.Textarea(attrs={"rows": 6}),
        help_text=gettext_lazy(
            "A field a line, such as “year: 2026”. Searches can be narrowed by them."
        ),
    )

    def __init__(self, data: Any = None, *, document: Document) -> None:
        initial = {
            "title": document.title,
            "metadata": document.metadata,
            "access": document.access or [],
        }
        super().__init__(data, initial=initial)
        self.offer_access(document.workspace_id, chosen=document.access or ())

    def field_of(self, error: RagsiteError) -> str | None:
        """The form field that an error belongs to."""
        name = error.field if isinstance(error, InvalidInput) else ""
        return name if name in self.fields else None
