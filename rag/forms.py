"""Forms of the chat, pipeline and database pages."""

import json
from typing import Any

from django import forms
from django.utils.translation import gettext, gettext_lazy

from common.options import option_fields
from common.options.forms import form_field
from documents.forms import AccessForm
from documents.models import Collection
from rag.models import DatabaseConnection
from rag.sql.options import DatabaseOptions
from tables.plan_tokens import MAX_TOKEN_CHARACTERS

MAX_QUESTION_CHARACTERS = 8_000
MAX_DEFINITION_CHARACTERS = 200_000


class TitleForm(forms.Form):
    title = forms.CharField(label=gettext_lazy("Title"), max_length=80)


class QuestionForm(forms.Form):
    """A question, and how it is to be answered."""

    question = forms.CharField(max_length=MAX_QUESTION_CHARACTERS, widget=forms.Textarea)
    model = forms.CharField(required=False, max_length=200)
    pipeline = forms.CharField(required=False, max_length=63)
    reading = forms.CharField(required=False, max_length=MAX_TOKEN_CHARACTERS)
    memory = forms.BooleanField(required=False)


class DefinitionForm(forms.Form):
    """A pipeline definition as JSON; the pipeline service validates its content."""

    definition = forms.CharField(
        label=gettext_lazy("Definition"),
        max_length=MAX_DEFINITION_CHARACTERS,
        help_text=gettext_lazy("JSON. Saving checks the whole definition and lists all errors."),
        widget=forms.Textarea(
            attrs={"rows": 28, "spellcheck": "false", "autocapitalize": "off", "wrap": "off"}
        ),
    )
    version = forms.IntegerField(required=False, widget=forms.HiddenInput)

    def clean_definition(self) -> Any:
        text = self.cleaned_data["definition"].replace("\0", "")
        try:
            return json.loads(text)
        except json.JSONDecodeError as error:
            raise forms.ValidationError(
                gettext("This is not JSON: line {lineno}, column {colno}: {msg}.").format(
                    lineno=error.lineno, colno=error.colno, msg=error.msg
                )
            ) from error
        except RecursionError as error:
            raise forms.ValidationError(gettext("This is nested too deeply.")) from error


class DatabaseForm(AccessForm):
    """A new connection to a catalogued database, or the changes of one that is there."""

    collection = forms.ModelChoiceField(
        Collection.objects.none(),
        label=gettext_lazy("Collection"),
        to_field_name="slug",
        help_text=gettext_lazy("In which its tables are catalogued."),
    )
    is_enabled = forms.BooleanField(label=gettext_lazy("Run queries"), required=False, initial=True)

    def __init__(
        self, data: Any, *, workspace_id: int, connection: DatabaseConnection | None = None
    ) -> None:
        options = option_fields(DatabaseOptions)
        initial: dict[str, Any] = {}
        if connection is not None:
            named = options.keys() - {"password"}
            initial = {name: getattr(connection, name) for name in named}
            initial |= {"access": connection.access or [], "is_enabled": connection.is_enabled}
        super().__init__(data, initial=initial)
        collections = Collection.objects.filter(workspace=workspace_id).order_by("name")
        self.fields["collection"].queryset = collections  # type: ignore[attr-defined]
        if connection is not None:
            del self.fields["collection"]
        is_kept = connection is not None and bool(connection.credentials)
        for name, option in options.items():
            self.fields[name] = form_field(option, has_stored_value=is_kept and name == "password")
        encryption = self.fields["encryption"]
        assert isinstance(encryption.widget, forms.Select)  # an option with choices
        encryption.widget.choices = DatabaseConnection.Encryption.choices
        self._rare = {name for name, option in options.items() if option.is_rare}
        self.order_fields([*options, "collection"])
        self.offer_access(workspace_id, chosen=initial.get("access", ()))
        if "access" in self.fields:
            self.fields["access"].label = gettext("Who may run queries")
            self.fields["access"].help_text = gettext(
                "Nobody checked: all members who see the tables."
            )

    def usual_fields(self) -> list[forms.BoundField]:
        return [field for field in self.visible_fields() if field.name not in self._rare]

    def rare_fields(self) -> list[forms.BoundField]:
        """Options that most people leave as they are."""
        return [field for field in self.visible_fields() if field.name in self._rare]

    def rare_errors(self) -> bool:
        return any(field.errors for field in self.rare_fields())

    def options(self) -> DatabaseOptions:
        """Raises InvalidInput."""
        names = option_fields(DatabaseOptions)
        given = {
            name: value
            for name, value in self.cleaned_data.items()
            if name in names and value != ""
        }
        return DatabaseOptions.from_text(given)
