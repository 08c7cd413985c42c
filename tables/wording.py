"""Answers computed from tables, in words: the value first, then groups and rows. Begin with
`worded`."""

from collections.abc import Mapping
from dataclasses import dataclass

from tables.asking import TableAnswer
from tables.execute import Group, Result
from tables.questions.plan import Plan, worded_number
from tables.sql.results import Cell, WrittenQuery

_MEASURES: Mapping[str, Mapping[str, str]] = {
    "en": {
        "sum": "Sum of {column}",
        "mean": "Average of {column}",
        "share": "Share of {column}",
        "per": "average of the groups: {measure}",
        "of_rows": "rows",
        "most": "Greatest {column}",
        "least": "Least {column}",
        "count": "Rows",
        "distinct": "Different values of {column}",
        "difference": "Difference: {value}",
        "none": "no value",
        "computed": "Computed from {explanation}.",
        "more": "… and {count} more.",
    },
    "de": {
        "sum": "Summe von {column}",
        "mean": "Durchschnitt von {column}",
        "share": "Anteil an {column}",
        "per": "Durchschnitt der Gruppen: {measure}",
        "of_rows": "Zeilen",
        "most": "Größter Wert von {column}",
        "least": "Kleinster Wert von {column}",
        "count": "Zeilen",
        "distinct": "Verschiedene Werte von {column}",
        "difference": "Unterschied: {value}",
        "none": "kein Wert",
        "computed": "Berechnet aus: {explanation}.",
        "more": "… und {count} mehr.",
    },
    "es": {
        "sum": "Suma de {column}",
        "mean": "Promedio de {column}",
        "share": "Porcentaje de {column}",
        "per": "promedio de los grupos: {measure}",
        "of_rows": "filas",
        "most": "Máximo de {column}",
        "least": "Mínimo de {column}",
        "count": "Filas",
        "distinct": "Valores distintos de {column}",
        "difference": "Diferencia: {value}",
        "none": "sin valor",
        "computed": "Calculado con: {explanation}.",
        "more": "… y {count} más.",
    },
}
#: Groups that are listed.
MAX_SHOWN_GROUPS = 20


@dataclass(frozen=True, slots=True)
class WordedAnswer:
    """`head` is the answer as Markdown, `more` the line about rows that are not listed."""

    head: str
    more: str


def format_value(value: float | str | None, unit: str, language: str) -> str:
    """A number as the language writes it, with its unit; at most two decimals of money, else as
    many as tell."""
    says = _MEASURES.get(language, _MEASURES["en"])
    if value is None:
        return says["none"]
    if isinstance(value, str):
        return value
    decimals = 2 if len(unit) == 3 and unit.isupper() else 4
    text = f"{value:,.{decimals}f}"
    if decimals == 4 or text.endswith(".00"):
        text = text.rstrip("0").rstrip(".")
    return f"{worded_number(text, language)} {unit}".strip()


def worded(answer: TableAnswer, *, language: str = "", shown_rows: int) -> WordedAnswer:
    """The answer to a sure question in `language`, by default the question's. `shown_rows` is how
    many of its rows the caller lists below it."""
    if answer.written is not None and answer.result is not None:
        return _worded_query(answer.written, answer.result, language[:2])
    plan, result = answer.plan, answer.result
    if plan is None or result is None:
        raise ValueError("Only a computed answer is put into words.")
    language = language[:2] or plan.language
    says = _MEASURES.get(language, _MEASURES["en"])
    column = plan.columns[plan.column] if plan.column is not None else ""
    if plan.measure == "share":
        column = column or says["of_rows"]
    kind = "distinct" if plan.measure == "count" and column else plan.measure
    measure = column if plan.measure == "list" else says[kind].format(column=column)

    def shown(value: float | str | None) -> str:
        return format_value(value, result.unit, language)

    if result.groups:
        lines = _group_lines(plan, result.groups[:MAX_SHOWN_GROUPS], measure, shown)
        if plan.is_averaged:
            average = f"**{shown(result.value)}** ({says['per'].format(measure=measure)})\n"
            lines.insert(0, average)
        if plan.compared:
            difference = abs(result.value) if isinstance(result.value, float) else None
            lines.append(f"\n{says['difference'].format(value=shown(difference))}")
    elif plan.measure == "list" and result.value is None:
        lines = [f"**{shown(float(result.count))}** {says['count']}"]
    else:
        lines = [f"**{shown(result.value)}** ({measure})"]
    lines.append(f"\n{says['computed'].format(explanation=result.explanation)}")
    hidden = result.count - shown_rows
    is_extreme = plan.measure in ("most", "least")
    more = says["more"].format(count=hidden) if hidden > 0 and not is_extreme else ""
    return WordedAnswer("\n".join(lines), more)


def _worded_query(written: WrittenQuery, result: Result, language: str) -> WordedAnswer:
    """What a query gave, as a value or a small table, with its SQL."""
    language = language or written.language
    says = _MEASURES.get(language, _MEASURES["en"])

    def shown(cell: Cell, unit: str = "") -> str:
        text = str(cell).lower() if isinstance(cell, bool) else format_value(cell, unit, language)
        return " ".join(text.replace("|", "\\|").split())

    rows, width = written.rows[:MAX_SHOWN_GROUPS], len(written.columns)
    if len(written.rows) == 1 and width == 1:
        lines = [f"**{shown(written.rows[0][0], result.unit)}**"]
    elif rows:
        names = " | ".join(map(shown, written.columns))
        lines = [f"| {names} |", f"|{' --- |' * width}"]
        units = [""] * (width - 1) + [result.unit]
        lines += [f"| {' | '.join(map(shown, row, units))} |" for row in rows]
        if (hidden := len(written.rows) - len(rows)) > 0:
            count = f"{hidden}+" if written.is_cut else hidden
            lines.append(f"\n{says['more'].format(count=count)}")
    else:
        lines = [f"**{says['none']}**"]
    computed = says["computed"].format(explanation=result.explanation) if result.explanation else ""
    lines.append(f"\n{computed}\n\n```sql\n{written.sql.replace('```', '')}\n```")
    return WordedAnswer("\n".join(lines), "")


def _group_lines(plan: Plan, groups: tuple[Group, ...], measure: str, shown: object) -> list[str]:
    """The groups as a Markdown table; a single best one also as a sentence before it."""
    assert callable(shown)
    head = plan.columns[plan.group] if plan.group is not None else ""
    lines = []
    if plan.order and plan.limit == 1:
        names = ", ".join(group.name for group in groups)
        lines.append(f"**{names}**: {shown(groups[0].value)}\n")
    lines += [f"| {head} | {measure} |", "| --- | --- |"]
    cells = ((group.name.replace("|", "\\|"), shown(group.value)) for group in groups)
    return lines + [f"| {name} | {value} |" for name, value in cells]
