"""Options, declared once: a pydantic model in the domain, from which each door is derived.

Begin with `Options`. The doors: `common.options.drf` (API), `.forms` (pages and admin),
`.commandline` (commands) and `.schema` (tools). None of Django here: domain modules that know none
declare options too.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import MISSING, dataclass, fields, replace
from functools import cache
from types import UnionType
from typing import Any, Literal, Self, Union, get_args, get_origin, get_type_hints

from pydantic import BaseModel, ConfigDict, ValidationError
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from common.errors import InvalidInput
from common.translation import format_number, gettext, gettext_noop

#: Of options that most people leave as they are: `Field(json_schema_extra=RARE)`.
RARE: dict[str, Any] = {"is_rare": True}
#: Of options that only code sets: no door has them.
INTERNAL: dict[str, Any] = {"is_internal": True}


class Options(BaseModel):
    """Base of options. Titles and descriptions are in English, marked with `gettext_noop` where
    pages show them: the door translates. A description may have `code` in backticks.

    Creating one raises InvalidInput with the name of the option as `field`. An option has one name
    at all doors: its alias, or else the name of its field.
    """

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        strict=True,
        allow_inf_nan=False,
        arbitrary_types_allowed=True,
        validate_by_name=True,
        validate_by_alias=True,
    )

    def __init__(self, /, **given: Any) -> None:
        try:
            super().__init__(**given)
        except ValidationError as error:
            raise invalid_inputs(error, type(self))[0] from error

    # As of `RootModel`: `model_validate` and nested models do not go by it.
    __init__.__pydantic_base_init__ = True  # type: ignore[attr-defined]

    @classmethod
    def pick(cls, given: Mapping[str, Any], **options: Any) -> Self:
        """From the parameters of a request or a command by name; other names are passed over, lists
        become tuples. `options` go first. Raises InvalidInput.
        """
        found = {
            name: tuple(given[name]) if isinstance(given[name], list) else given[name]
            for name in option_fields(cls)
            if name in given
        }
        return cls(**{**found, **options})

    @classmethod
    def from_data(cls, given: Any, *, at: str = "") -> Self:
        """From plain data, such as JSON, that is in the field `at`. Raises InvalidInput."""
        try:
            return cls.model_validate(given)
        except (InvalidInput, ValidationError) as error:
            known = error if isinstance(error, InvalidInput) else invalid_inputs(error, cls)[0]
            field = ".".join(filter(None, (at, known.field)))
            raise InvalidInput(str(known), field=field) from error

    @classmethod
    def from_text(cls, given: Mapping[str, Any]) -> Self:
        """From texts, as a query string has them, or lists of texts. Raises InvalidInput."""
        try:
            return cls.model_validate(given, strict=False)
        except ValidationError as error:
            raise invalid_inputs(error, cls)[0] from error

    def given(self) -> dict[str, Any]:
        """The options that were given and are not None, by their names at the doors."""
        return self.model_dump(by_alias=True, exclude_none=True, exclude_unset=True)


@dataclass(frozen=True, slots=True)
class OptionField:
    """What a door needs to know of an option.

    `kind` is `bool`, `int`, `float`, `str`, `list` (of `item`), `dict` (with values like `item`),
    or a class such as `date` that the door writes as text. `default` is None for options that may
    be left open, and for those that `is_required`.
    """

    name: str
    kind: type[Any]
    title: str = ""
    description: str = ""
    default: Any = None
    is_required: bool = False
    is_rare: bool = False
    choices: tuple[Any, ...] = ()
    least: float | None = None
    most: float | None = None
    max_length: int | None = None
    min_length: int | None = None
    item: "OptionField | None" = None

    @property
    def plain_description(self) -> str:
        """Without the backticks."""
        return self.description.replace("`", "")

    def number_error(self) -> str:
        """What a number must be."""
        is_whole = self.kind is int
        if self.least is not None and self.most is not None:
            sentence = (
                gettext("{name} must be a whole number from {least} to {most}.")
                if is_whole
                else gettext("{name} must be a number from {least} to {most}.")
            )
        elif self.least is not None:
            sentence = (
                gettext("{name} must be a whole number of at least {least}.")
                if is_whole
                else gettext("{name} must be a number of at least {least}.")
            )
        else:
            sentence = (
                gettext("{name} must be a whole number.")
                if is_whole
                else gettext("{name} must be a number.")
            )
        least, most = (
            "" if bound is None else format_number(bound, 0 if float(bound).is_integer() else 2)
            for bound in (self.least, self.most)
        )
        return sentence.format(name=self.name, least=least.replace("-", "−"), most=most)


@cache
def declared_fields(model: Any) -> Mapping[str, FieldInfo]:
    """The fields of a model, or of a dataclass whose annotations declare the same."""
    if issubclass(model, BaseModel):
        described: Mapping[str, FieldInfo] = model.model_fields
        return described
    hints = get_type_hints(model, include_extras=True)
    return {
        field.name: FieldInfo.from_annotation(hints[field.name])
        if field.default is MISSING
        else FieldInfo.from_annotated_attribute(hints[field.name], field.default)
        for field in fields(model)
    }


@cache
def option_fields(model: Any) -> Mapping[str, OptionField]:
    """All options of the model by their names at the doors, in the order declared."""
    found = {}
    for field, info in declared_fields(model).items():
        if info.json_schema_extra is INTERNAL:
            continue
        name, is_required = info.alias or field, info.is_required()
        found[name] = OptionField(
            name=name,
            title=info.title or "",
            description=info.description or "",
            default=None if is_required or info.default is PydanticUndefined else info.default,
            is_required=is_required,
            is_rare=info.json_schema_extra is RARE,
            **_read_type(name, info.annotation, info.metadata),
        )
    return found


def nested_options(model: Any, *, skip: Collection[str] = ()) -> Mapping[str, OptionField]:
    """The options for a door that takes JSON: without those to `skip`."""
    return _without(option_fields(model), skip)


def flat_options(
    model: type[BaseModel], *, skip: Collection[str] = ()
) -> Mapping[str, OptionField]:
    """The options for a door that takes single values and lists: without mappings and those to
    `skip`."""
    fields = option_fields(model)
    mappings = {name for name, field in fields.items() if field.kind is dict}
    return _without(fields, {*mappings, *skip})


def _without(
    fields: Mapping[str, OptionField], names: Collection[str]
) -> Mapping[str, OptionField]:
    return {name: field for name, field in fields.items() if name not in names}


#: Errors of values that are of another kind.
_KIND_ERRORS = {
    bool: gettext_noop("{name} must be true or false."),
    str: gettext_noop("{name} must be text."),
    list: gettext_noop("{name} must be a list."),
    dict: gettext_noop("{name} must be an object."),
}
_BOUNDS = {"least": "ge", "most": "le", "max_length": "max_length", "min_length": "min_length"}


def _read_type(name: str, hint: Any, metadata: Sequence[Any]) -> dict[str, Any]:
    """The parts of an OptionField that a type and its annotations say."""
    metadata = [
        part
        for each in metadata
        for part in (each.metadata if isinstance(each, FieldInfo) else (each,))
    ]
    bounds = {
        part: bound
        for part, bound_name in _BOUNDS.items()
        for each in metadata
        if (bound := getattr(each, bound_name, None)) is not None
    }
    if hasattr(hint, "__metadata__"):  # Annotated
        return {**_read_type(name, hint.__origin__, hint.__metadata__), **bounds}
    origin, arguments = get_origin(hint), get_args(hint)
    if origin in (Union, UnionType):
        hints = [each for each in arguments if each is not type(None)]
        return {**_read_type(name, hints[0], ()), **bounds}
    if origin is Literal:
        return {"kind": type(arguments[0]), "choices": arguments}
    if isinstance(origin, type) and issubclass(origin, Mapping):
        item = OptionField(name, **_read_type(name, arguments[1], ()))
        return {"kind": dict, "item": item, **bounds}
    if isinstance(origin, type) and issubclass(origin, Sequence):
        item = OptionField(name, **_read_type(name, arguments[0], ()))
        return {"kind": list, "item": item, **bounds}
    return {"kind": hint if isinstance(hint, type) else object, **bounds}


def invalid_inputs(error: ValidationError, model: type[BaseModel]) -> list[InvalidInput]:
    """pydantic's errors in our words, with the paths of the values as `field`."""
    return [_invalid_input(each, model) for each in error.errors(include_url=False)]


def _invalid_input(error: Mapping[str, Any], model: type[BaseModel]) -> InvalidInput:
    path: list[str] = []
    option: OptionField | None = None
    for part in map(str, error["loc"]):
        if option is not None and issubclass(option.kind, Options):
            model, option = option.kind, None
        if option is not None:
            option = replace(option.item or option, name=f"{option.name}.{part}")
            path.append(part)
            continue
        info = model.model_fields.get(part)
        path.append((info and info.alias) or part)
        option = option_fields(model).get(path[-1])
    names = ", ".join(option_fields(model))
    match error["type"]:
        case "extra_forbidden":
            message = gettext("There is no option “{name}”. There are: {names}.")
        case "model_type":
            message = gettext("These options are an object of {names}.")
        case "missing" | "string_too_short":
            message = gettext("{name} is missing.")
        case "value_error":
            return InvalidInput(str(error["ctx"]["error"]), field=".".join(path))
        case kind if option is not None:
            return InvalidInput(_value_error(option, kind, error), field=".".join(path))
        case _:
            message = str(error["msg"]).replace("{", "{{").replace("}", "}}")
    name = path[-1] if path else ""
    return InvalidInput(message.format(name=name, names=names), field=".".join(path))


def _value_error(option: OptionField, kind: str, error: Mapping[str, Any]) -> str:
    """What the value of an option must be, for one that pydantic refused so."""
    given = error["input"]
    if option.choices:
        return gettext("There is no {field} “{value}”. Use {names}.").format(
            field=option.name, value=given, names=", ".join(map(str, option.choices))
        )
    if option.kind in (int, float):
        return option.number_error()
    if kind == "string_too_long":
        return gettext("{name} has {length} characters; {limit} are allowed. Shorten it.").format(
            name=option.name,
            length=format_number(len(given)),
            limit=format_number(option.max_length or 0),
        )
    if kind == "too_long":
        return gettext("The list has {length} entries; the limit is {most}.").format(
            length=format_number(len(given)), most=format_number(option.max_length or 0)
        )
    if kind.endswith("_type") and option.kind in _KIND_ERRORS:
        return gettext(_KIND_ERRORS[option.kind]).format(name=option.name)
    return str(error["msg"])
