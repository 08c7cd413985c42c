"""Plans as short texts that programs and pages send back: signed, so that only plans that the
grammar made are computed. They give no access: a plan is computed over what its reader may see."""

from datetime import date
from itertools import accumulate, pairwise
from typing import Any

from django.core import signing
from django.utils.translation import gettext
from pydantic import ValidationError

from common.errors import InvalidInput
from tables.questions.plan import Plan

_SALT = "tables.plan"
#: Of a token. Ids of a thousand tables take a few hundred.
MAX_TOKEN_CHARACTERS = 8_000


def plan_token(plan: Plan) -> str:
    """The plan as letters, digits, `-`, `_`, `.` and `:`."""
    data = _without_dates(plan.model_dump(exclude_defaults=True))
    tables = sorted(plan.tables)
    # Differences of ids, most of them 1, take next to no room.
    data["tables"] = [*tables[:1], *(after - before for before, after in pairwise(tables))]
    return signing.dumps(data, salt=_SALT, compress=True)


def read_plan_token(token: str, *, field: str = "reading") -> Plan:
    """The plan of a token. Raises InvalidInput for a text that is none."""
    try:
        data = _with_dates(signing.loads(token[:MAX_TOKEN_CHARACTERS], salt=_SALT))
        return Plan.model_validate(data | {"tables": list(accumulate(data["tables"]))})
    except (signing.BadSignature, ValidationError, TypeError, KeyError, ValueError) as error:
        raise InvalidInput(
            gettext("This reading is none of this site, or too old. Ask the question again."),
            field=field,
        ) from error


def _without_dates(value: Any) -> Any:
    """Dates as objects: in JSON they would be texts, which a filter may compare, too."""
    if isinstance(value, dict):
        return {key: _without_dates(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_without_dates(each) for each in value]
    return {"day": value.isoformat()} if isinstance(value, date) else value


def _with_dates(value: Any) -> Any:
    if isinstance(value, dict):
        if value.keys() == {"day"}:
            return date.fromisoformat(value["day"])
        return {key: _with_dates(each) for key, each in value.items()}
    return [_with_dates(each) for each in value] if isinstance(value, list) else value
