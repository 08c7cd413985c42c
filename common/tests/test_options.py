"""Options declared once: what each door makes of a model, and of answers that are dataclasses."""

from argparse import ArgumentParser
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Annotated, Any, Literal

import pytest
from django.utils.translation import override
from pydantic import BaseModel, Field, SecretStr
from rest_framework import serializers

from common.errors import InvalidInput
from common.options import (
    INTERNAL,
    RARE,
    Options,
    flat_options,
    nested_options,
    option_fields,
)
from common.options.commandline import add_options
from common.options.drf import OptionsSerializer
from common.options.forms import OptionsField, form_field
from common.options.schema import option_schemas
from common.serializers import ResultSerializer
from common.tools import run_tool, tools_by_name


class Tea(Options):
    """A toy with every kind of option."""

    kind: Literal["green", "black"] = Field(default="green", description="What `leaf`.")
    minutes: int | None = Field(default=None, ge=1, le=1000, title="Name", description="How long.")
    sugar: float = Field(default=0.5, ge=0, json_schema_extra=RARE)
    milk: bool | None = None
    hot: bool = Field(default=False, alias="is_hot")
    label: str = Field(default="", max_length=5)
    herbs: tuple[str, ...] = ()
    shares: Mapping[str, Annotated[float, Field(ge=0)]] | None = None
    brewed: Any = Field(default=None, json_schema_extra=INTERNAL)
    owner: str


class TeaInput(OptionsSerializer):
    """A toy's input."""

    options = Tea
    skip = frozenset({"label"})
    sugar = serializers.IntegerField(required=False)
    k = serializers.IntegerField(default=3)


def refusal(**given: Any) -> tuple[str, str]:
    """Message and field of the error that these options raise."""
    with pytest.raises(InvalidInput) as caught:
        Tea(**{"owner": "Alice", **given})
    return str(caught.value), caught.value.field


def test_options_cannot_be_changed_and_know_their_names() -> None:
    tea = Tea(owner="Alice", is_hot=True)
    assert tea.hot
    with pytest.raises(ValueError, match="frozen"):
        tea.hot = False
    assert tea.given() == {"is_hot": True, "owner": "Alice"}


@pytest.mark.parametrize(
    ("given", "message", "field"),
    [
        ({"kind": "red"}, "There is no kind “red”. Use green, black.", "kind"),
        ({"minutes": 0}, "minutes must be a whole number from 1 to 1,000.", "minutes"),
        ({"minutes": "3"}, "minutes must be a whole number from 1 to 1,000.", "minutes"),
        ({"minutes": True}, "minutes must be a whole number from 1 to 1,000.", "minutes"),
        ({"sugar": -1.0}, "sugar must be a number of at least 0.", "sugar"),
        ({"sugar": float("nan")}, "sugar must be a number of at least 0.", "sugar"),
        ({"milk": "much"}, "milk must be true or false.", "milk"),
        ({"is_hot": 7}, "is_hot must be true or false.", "is_hot"),
        ({"hot": 7}, "is_hot must be true or false.", "is_hot"),
        ({"label": 7}, "label must be text.", "label"),
        ({"label": "too long"}, "label has 8 characters; 5 are allowed. Shorten it.", "label"),
        ({"herbs": "mint"}, "herbs must be a list.", "herbs"),
        ({"shares": [1.0]}, "shares must be an object.", "shares"),
        (
            {"shares": {"mint": -1.0}},
            "shares.mint must be a number of at least 0.",
            "shares.mint",
        ),
        ({"owner": None}, "owner must be text.", "owner"),
    ],
)
def test_errors_say_what_is_allowed_and_where(given: Any, message: str, field: str) -> None:
    assert refusal(**given) == (message, field)


def test_an_unknown_option_is_refused_with_the_known_ones() -> None:
    message, field = refusal(minuets=3)
    assert field == "minuets"
    assert message.startswith("There is no option “minuets”. There are: kind, minutes, sugar, ")


def test_errors_are_in_the_language_of_the_page() -> None:
    with override("de"):
        message, _field = refusal(minutes=0)
    assert message == "minutes muss eine ganze Zahl von 1 bis 1.000 sein."


def test_plain_data_and_its_place() -> None:
    assert Tea.from_data({"owner": "Alice", "minutes": 3}).minutes == 3
    for data, field in (({"minutes": 0, "owner": "Alice"}, "tea.minutes"), ([], "tea")):
        with pytest.raises(InvalidInput) as caught:
            Tea.from_data(data, at="tea")
        assert caught.value.field == field


def test_a_request_names_options_among_others() -> None:
    tea = Tea.pick({"minutes": 3, "page": 7, "owner": "Bob"}, owner="Alice")
    assert (tea.minutes, tea.owner) == (3, "Alice")


def test_texts_are_read() -> None:
    tea = Tea.from_text({"minutes": "3", "milk": "0", "herbs": ["mint"], "owner": "Alice"})
    assert (tea.minutes, tea.milk, tea.herbs) == (3, False, ("mint",))
    with pytest.raises(InvalidInput, match="minutes must be a whole number"):
        Tea.from_text({"minutes": "many", "owner": "Alice"})


def test_doors_have_what_they_can_take() -> None:
    assert "brewed" not in option_fields(Tea)
    assert "label" not in nested_options(Tea, skip={"label"})
    assert "shares" not in flat_options(Tea)
    assert option_fields(Tea)["sugar"].is_rare
    assert option_fields(Tea)["owner"].is_required


def test_the_api_has_fields_of_the_options_and_its_own() -> None:
    fields = TeaInput().fields
    expected = [*("kind", "minutes", "sugar", "milk", "is_hot", "herbs", "shares", "owner"), "k"]
    assert list(fields) == expected
    assert fields["minutes"].help_text == "How long."
    assert isinstance(fields["sugar"], serializers.IntegerField)
    assert fields["owner"].required
    assert not fields["minutes"].allow_null


def test_the_api_refuses_in_the_same_words() -> None:
    given = {"minutes": 0, "kind": "red", "owner": "Alice", "shares": {"mint": -1}, "label": "x"}
    wrong = TeaInput(data={name: value for name, value in given.items() if name != "label"})
    assert not wrong.is_valid()
    assert wrong.errors["minutes"][0] == "minutes must be a whole number from 1 to 1,000."
    assert wrong.errors["minutes"][0].code == "min_value"
    assert wrong.errors["kind"][0] == "There is no “red” here. There are: green, black."
    assert wrong.errors["kind"][0].code == "invalid_choice"
    assert "mint" in wrong.errors["shares"]
    assert not TeaInput(data={"owner": "Alice", "label": "x"}).is_valid()


def test_the_api_gives_defaults_and_leaves_open_what_is_open() -> None:
    right = TeaInput(data={"owner": "Alice", "shares": '{"mint": 1}'})
    assert right.is_valid(), right.errors
    assert right.validated_data == {
        "kind": "green",
        "milk": None,
        "is_hot": False,
        "shares": {"mint": 1.0},
        "owner": "Alice",
        "k": 3,
    }
    assert Tea.pick(right.validated_data).minutes is None


def parsed(*arguments: str) -> dict[str, Any]:
    parser = ArgumentParser()
    add_options(parser, Tea, skip={"owner"})
    return vars(parser.parse_args(arguments))


def test_a_command_takes_them_as_arguments() -> None:
    options = parsed("--minutes", "3", "--no-milk", "--is-hot", "--herbs", "a", "--herbs", "b")
    tea = Tea.pick(options, owner="Alice")
    assert (tea.minutes, tea.milk, tea.hot, tea.herbs) == (3, False, True, ("a", "b"))
    assert Tea.pick(parsed(), owner="Alice") == Tea(owner="Alice")


def test_the_help_of_a_command_is_plain() -> None:
    parser = ArgumentParser()
    add_options(parser, Tea, only={"kind", "minutes"})
    text = " ".join(parser.format_help().split())
    assert "What leaf. Default: green." in text
    assert "--sugar" not in text


def brew(*, scope: str, strength: int, options: Tea) -> str:
    """Brew."""
    return f"{scope} {strength} {options.minutes} {options.kind}"


def test_a_tool_takes_them_beside_its_own_arguments() -> None:
    tools = tools_by_name("documents", [brew], writing=())
    properties = tools["brew"].parameters["properties"]
    assert properties["minutes"] == {
        "type": "integer",
        "minimum": 1,
        "maximum": 1000,
        "description": "How long.",
    }
    assert properties["kind"]["enum"] == ["green", "black"]
    assert properties["kind"]["default"] == "green"
    assert "shares" not in properties
    assert tools["brew"].parameters["required"] == ["strength", "owner"]
    call = {"strength": 1, "minutes": 9.0, "owner": "Alice"}
    assert run_tool(tools, "brew", call, scope="Bob").text == "Bob 1 9 green"
    wrong = run_tool(tools, "brew", {**call, "minutes": 0}, scope="Bob")
    assert wrong.is_error
    assert "minutes: 0 is less than the minimum of 1. How long." in wrong.text


def test_schemas_say_nothing_of_null() -> None:
    assert option_schemas(Tea)["milk"] == {"type": "boolean"}


def test_a_form_shows_them_translated_when_shown() -> None:
    field = form_field(option_fields(Tea)["minutes"])
    with override("es"):
        assert str(field.label) == "Nombre"
    assert field.widget.attrs == {"min": 1, "max": 1000, "step": 1}
    assert form_field(option_fields(Tea)["is_hot"]).initial is False
    kinds = form_field(option_fields(Tea)["kind"])
    assert kinds.widget.choices == [("green", "green"), ("black", "black")]


class Account(Options):
    password: SecretStr


def test_a_secret_that_is_kept_need_not_be_given_again() -> None:
    option = option_fields(Account)["password"]
    assert form_field(option).required
    assert not form_field(option, has_stored_value=True).required


def test_options_are_written_in_one_line() -> None:
    field = OptionsField(Tea, keys={"mint": "shares", "sage": "shares"})
    text = "minutes=3 mint=0.7, sage=0.3; owner=Alice"
    given = field.parse(text)
    assert given["shares"] == {"mint": 0.7, "sage": 0.3}
    assert given["minutes"] == 3
    assert field.write({"minutes": 3, "shares": {"mint": 0.7}}) == "minutes=3 mint=0.7"
    with pytest.raises(InvalidInput, match="Write name=value"):
        field.parse("minutes:3")
    with pytest.raises(InvalidInput, match="minutes must be a whole number"):
        field.parse("minutes=x owner=Alice")


class Tray(Options):
    tea: Tea


def test_errors_of_options_within_options_name_both() -> None:
    with pytest.raises(InvalidInput, match=r"^minutes must be a whole number") as caught:
        Tray.from_data({"tea": {"owner": "Alice", "minutes": 0}}, at="trays.0")
    assert caught.value.field == "trays.0.tea.minutes"
    with pytest.raises(InvalidInput, match=r"^There is no option “minuets”. There are: kind,"):
        Tray.from_data({"tea": {"owner": "Alice", "minuets": 3}})


@dataclass(frozen=True)
class Part:
    name: Annotated[str, "How it is called."]
    size: int | None = None


@dataclass(frozen=True)
class Whole:
    kind: Literal["new", "old"]
    parts: tuple[Part, ...]
    first: Part | None
    counts: Annotated[Mapping[str, int], "By name."]
    notes: tuple[str, ...]
    at: datetime
    secret: str = "hidden"


class WholeSerializer(ResultSerializer):
    """All of it."""

    result = Whole
    skip = frozenset({"secret"})

    id = serializers.IntegerField()
    number = serializers.IntegerField(source="counts.a")
    remarks = serializers.ListField(child=serializers.CharField(), source="notes")


class Found(BaseModel):
    """What was found."""

    key: str = Field(validation_alias="document_key", description="Of the document.")
    rank: int | None
    extra: dict[str, Any] = Field(default={})


class FoundSerializer(ResultSerializer):
    """What was found."""

    result = Found


def test_the_fields_of_a_dataclass_are_those_of_the_answer() -> None:
    fields = WholeSerializer().fields
    assert list(fields) == ["id", "number", "kind", "parts", "first", "counts", "remarks", "at"]
    assert fields["counts"].help_text == "By name."
    assert list(fields["kind"].choices) == ["new", "old"]
    part = fields["parts"].child
    assert part.fields["name"].help_text == "How it is called."
    assert part.fields["size"].allow_null
    assert not part.fields["name"].allow_null
    assert fields["first"].allow_null


def test_an_answer_has_the_values_of_the_result() -> None:
    whole = Whole(
        "new", (Part("a", 1), Part("b")), None, {"a": 2}, ("x",), datetime(2026, 5, 1, tzinfo=UTC)
    )
    shown = WholeSerializer({"id": 7, **vars(whole)}).data
    assert shown == {
        "id": 7,
        "number": 2,
        "kind": "new",
        "parts": [{"name": "a", "size": 1}, {"name": "b", "size": None}],
        "first": None,
        "counts": {"a": 2},
        "remarks": ["x"],
        "at": "2026-05-01T00:00:00Z",
    }


def test_a_model_says_where_its_fields_come_from_and_which_may_be_missing() -> None:
    fields = FoundSerializer().fields
    assert (fields["key"].source, fields["key"].help_text) == ("document_key", "Of the document.")
    assert fields["rank"].allow_null
    assert [name for name, field in fields.items() if field.required] == ["key", "rank"]
