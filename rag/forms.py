"""Forms of the chat and pipeline pages."""

import json
from typing import Any

from django import forms
from django.utils.translation import gettext, gettext_lazy

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
