"""Answers computed from tables, in words: the value first, then groups and rows. Begin with
`worded`."""

from collections.abc import Sequence
from dataclasses import dataclass

from common.text import truncated
from tables.asking import TableAnswer
from tables.execute import Result
from tables.phrases import phrases_of, worded_number
from tables.questions.plan import Plan
from tables.sql.results import Cell, WrittenQuery

#: Groups that are listed.
MAX_SHOWN_GROUPS = 20
#: Columns of rows that are shown below an answer.
MAX_SHOWN_COLUMNS = 5
#: Rows that have the least or the most, and are named beside it.
MAX_NAMED_ROWS = 3
#: Of a cell in an answer.
MAX_CELL_CHARACTERS = 200


@dataclass(frozen=True, slots=True)
class WordedAnswer:
    """`value` is the answer in short, empty where there are groups only, and `measure` what it is.
    `groups` are the names and values of groups below `group_head`. `head` is all of it as Markdown,
    `more` the line about rows that are not listed."""

    value: str
    measure: str
    group_head: str
    groups: tuple[tuple[str, str], ...]
    head: str
    more: str


def format_value(value: float | str | None, unit: str, language: str) -> str:
    """A number as the language writes it, with its unit; at most two decimals of money, else as
    many as tell."""
    if value is None:
        return phrases_of(language).none
    if isinstance(value, str):
        return value
    decimals = 2 if len(unit) == 3 and unit.isupper() else 4
    text = f"{value:,.{decimals}f}"
    if decimals == 4 or text.endswith(".00"):
        text = text.rstrip("0").rstrip(".")
    return f"{worded_number(text, language)} {unit}".strip()


def worded(answer: TableAnswer, *, language: str = "", listed_rows: int) -> WordedAnswer:
    """The answer to a sure question in `language`, by default the question's. `listed_rows` is how
    many of its rows the caller lists below it."""
    if answer.written is not None and answer.result is not None:
        return _worded_query(answer.written, answer.result, language[:2])
    plan, result = answer.plan, answer.result
    if plan is None or result is None:
        raise ValueError("Only a computed answer is put into words.")
    language = language[:2] or plan.language
    phrases = phrases_of(language)
    measure = _measure(plan, language)
    groups = tuple(
        (group.name, format_value(group.value, result.unit, language))
        for group in result.groups[:MAX_SHOWN_GROUPS]
    )
    value = format_value(result.value, result.unit, language)
    names = _named_rows(plan, result)
    lines = [f"**{value}** ({measure}){f': {names}' if names else ''}"]
    measure = f"{measure}: {names}" if names else measure
    if plan.compared and isinstance(result.value, float):
        value = format_value(abs(result.value), result.unit, language)
        lines = [*_group_lines("", measure, groups), "", phrases.difference.format(value=value)]
        measure = phrases.difference.format(value="").strip(" :")
    elif groups and plan.order and plan.limit == 1:
        value = ", ".join(name for name, _ in groups)
        lines = [f"**{value}**: {groups[0][1]}", "", *_group_lines(_head(plan), measure, groups)]
        measure = f"{measure}: {groups[0][1]}"
    elif plan.is_averaged:
        measure = phrases.averaged.format(measure=measure)
        lines = [f"**{value}** ({measure})", "", *_group_lines(_head(plan), measure, groups)]
    elif result.groups:
        value, lines = "", _group_lines(_head(plan), measure, groups)
    elif plan.measure == "list" and result.value is None:
        value, measure = format_value(float(result.count), "", language), phrases.count
        lines = [f"**{value}** {measure}"]
    if len(result.groups) > len(groups):
        lines += ["", phrases.more.format(count=len(result.groups) - len(groups))]
    hidden = result.count - listed_rows
    is_extreme = plan.measure in ("most", "least")
    return WordedAnswer(
        value,
        measure,
        _head(plan),
        groups,
        "\n".join([*lines, "", phrases.computed.format(explanation=result.explanation)]),
        phrases.more.format(count=hidden) if hidden > 0 and not is_extreme else "",
    )


def _worded_query(written: WrittenQuery, result: Result, language: str) -> WordedAnswer:
    """What a query gave, as a value or a small table, with its SQL."""
    language = language or written.language
    phrases = phrases_of(language)

    def in_words(cell: Cell, unit: str = "") -> str:
        return str(cell).lower() if isinstance(cell, bool) else format_value(cell, unit, language)

    rows, width = written.rows[:MAX_SHOWN_GROUPS], len(written.columns)
    value, groups = "", tuple[tuple[str, str], ...]()
    if len(written.rows) == 1 and width == 1:
        value = in_words(written.rows[0][0], result.unit)
        lines = [f"**{value}**"]
    elif rows:
        units = [""] * (width - 1) + [result.unit]
        cells = [list(map(in_words, row, units)) for row in rows]
        lines = [*table_lines(written.columns), *map(row_line, cells)]
        if result.groups:
            groups = tuple((name, number) for name, number in cells)
        if (hidden := len(written.rows) - len(rows)) > 0:
            count = f"{hidden}+" if written.is_cut else hidden
            lines += ["", phrases.more.format(count=count)]
    else:
        value = phrases.none
        lines = [f"**{value}**"]
    if result.explanation:
        lines += ["", phrases.computed.format(explanation=result.explanation)]
    lines += ["", "```sql", written.sql.replace("```", ""), "```"]
    head, *_, measure = (*written.columns, "") if not groups else written.columns
    return WordedAnswer(value, measure, head, groups, "\n".join(lines), "")


def worded_reading(plan: Plan, *, language: str = "") -> str:
    """What a plan computes, for people to choose it: “Sum of Amount where Category = Travel, by
    month of Date”."""
    language = language[:2] or plan.language
    phrases = phrases_of(language)
    text = _measure(plan, language)
    if condition := plan.condition(language=language):
        text += f" {phrases.where} {condition}"
    if plan.compared:
        first, second = (plan.worded_filter(each, language) for each in plan.compared)
        text += f", {phrases.compared.format(first=first, second=second)}"
    if plan.group is not None:
        by = phrases.by_period[plan.period] if plan.period else phrases.by
        text += f", {by.format(column=_head(plan))}"
    if plan.order:
        text += f", {phrases.most_first if plan.order == 'most' else phrases.least_first}"
    if plan.limit and plan.limit > 1:
        text += f", {phrases.first.format(count=plan.limit)}"
    return text


def displayed_columns(answer: TableAnswer) -> list[int]:
    """Which columns of the rows are shown, in their order: those that the answer is about, and the
    first others that there is room for."""
    named = list[int | None]()
    if plan := answer.plan:
        named = [plan.label, plan.group, plan.column, *sorted(plan.used_columns)]
    wanted = [each for each in named if each is not None]
    count = len(answer.result.columns) if answer.result else 0
    return sorted(list(dict.fromkeys([*wanted, *range(count)]))[:MAX_SHOWN_COLUMNS])


def table_lines(names: Sequence[str]) -> list[str]:
    """The two lines above the rows of a Markdown table."""
    return [row_line(names), f"|{' --- |' * len(names)}"]


def row_line(cells: Sequence[str]) -> str:
    """A row of a Markdown table."""
    shown = (truncated(" ".join(cell.split()), MAX_CELL_CHARACTERS) for cell in cells)
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in shown)} |"


def _named_rows(plan: Plan, result: Result) -> str:
    """The names of the rows that have the least or the most; "" for any other answer."""
    if plan.label is None or plan.group is not None or plan.measure not in ("most", "least"):
        return ""
    if plan.limit and plan.limit > 1:
        return ""
    names = [row.cells[plan.label] for row in result.rows if row.cells[plan.label]]
    shown = ", ".join(truncated(name, MAX_CELL_CHARACTERS) for name in names[:MAX_NAMED_ROWS])
    return f"{shown} …" if len(names) > MAX_NAMED_ROWS else shown


def _measure(plan: Plan, language: str) -> str:
    phrases = phrases_of(language)
    column = plan.columns[plan.column] if plan.column is not None else ""
    if plan.measure == "list":
        return column or phrases.count
    if plan.measure == "count":
        return phrases.distinct.format(column=column) if column else phrases.count
    column = column or phrases.count
    of_column: str = getattr(phrases, plan.measure)
    return of_column.format(column=column)


def _head(plan: Plan) -> str:
    return plan.columns[plan.group] if plan.group is not None else ""


def _group_lines(head: str, measure: str, groups: Sequence[tuple[str, str]]) -> list[str]:
    return [*table_lines((head, measure)), *map(row_line, groups)]
