"""What tables say in answers, in English, German and Spanish: `phrases_of` gives the phrases of a
language, `worded_number` and `worded_value` write what stands in them. Without Django."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date


@dataclass(frozen=True, slots=True)
class Phrases:
    """Phrases of one language. Those with `{…}` are filled in with `str.format`."""

    # What is computed
    sum: str
    mean: str
    share: str
    averaged: str
    most: str
    least: str
    count: str
    distinct: str
    difference: str
    none: str
    # Which rows
    row: str
    rows: str
    files: str
    where: str
    and_: str
    or_: str
    yes: str
    no: str
    between: str
    within: str
    empty: str
    filled: str
    of_all: str
    corrected: str
    # Groups and their order
    by: str
    by_period: Mapping[str, str]
    most_first: str
    least_first: str
    first: str
    compared: str
    # Sentences around them
    computed: str
    more: str
    did_you_mean: str
    not_understood: str


_PHRASES: Mapping[str, Phrases] = {
    "en": Phrases(
        sum="Sum of {column}",
        mean="Average of {column}",
        share="Share of {column}",
        averaged="average of the groups: {measure}",
        most="Greatest {column}",
        least="Least {column}",
        count="Rows",
        distinct="Different values of {column}",
        difference="Difference: {value}",
        none="no value",
        row="{count} row of {source}",
        rows="{count} rows of {source}",
        files="{count} files",
        where="where",
        and_="and",
        or_="or",
        yes="yes",
        no="no",
        between="{name} from {first} to {last}",
        within="{name} from {first} before {last}",
        empty="{name} is empty",
        filled="{name} is not empty",
        of_all="of {count}",
        corrected="“{written}” read as “{meant}”",
        by="by {column}",
        by_period={
            "day": "by day of {column}",
            "week": "by week of {column}",
            "month": "by month of {column}",
            "quarter": "by quarter of {column}",
            "year": "by year of {column}",
        },
        most_first="greatest first",
        least_first="least first",
        first="the first {count}",
        compared="{first} compared with {second}",
        computed="Computed from {explanation}.",
        more="… and {count} more.",
        did_you_mean="Did you mean: {readings}?",
        not_understood="Not understood: {words}.",
    ),
    "de": Phrases(
        sum="Summe von {column}",
        mean="Durchschnitt von {column}",
        share="Anteil an {column}",
        averaged="Durchschnitt der Gruppen: {measure}",
        most="Größter Wert von {column}",
        least="Kleinster Wert von {column}",
        count="Zeilen",
        distinct="Verschiedene Werte von {column}",
        difference="Unterschied: {value}",
        none="kein Wert",
        row="{count} Zeile aus {source}",
        rows="{count} Zeilen aus {source}",
        files="{count} Dateien",
        where="mit",
        and_="und",
        or_="oder",
        yes="ja",
        no="nein",
        between="{name} von {first} bis {last}",
        within="{name} ab {first} vor {last}",
        empty="{name} ist leer",
        filled="{name} ist nicht leer",
        of_all="von {count}",
        corrected="„{written}“ gelesen als „{meant}“",
        by="nach {column}",
        by_period={
            "day": "nach Tag von {column}",
            "week": "nach Woche von {column}",
            "month": "nach Monat von {column}",
            "quarter": "nach Quartal von {column}",
            "year": "nach Jahr von {column}",
        },
        most_first="größte zuerst",
        least_first="kleinste zuerst",
        first="die ersten {count}",
        compared="{first} im Vergleich mit {second}",
        computed="Berechnet aus: {explanation}.",
        more="… und {count} mehr.",
        did_you_mean="Meinst du: {readings}?",
        not_understood="Nicht verstanden: {words}.",
    ),
    "es": Phrases(
        sum="Suma de {column}",
        mean="Promedio de {column}",
        share="Porcentaje de {column}",
        averaged="promedio de los grupos: {measure}",
        most="Máximo de {column}",
        least="Mínimo de {column}",
        count="Filas",
        distinct="Valores distintos de {column}",
        difference="Diferencia: {value}",
        none="sin valor",
        row="{count} fila de {source}",
        rows="{count} filas de {source}",
        files="{count} archivos",
        where="con",
        and_="y",
        or_="o",
        yes="sí",
        no="no",
        between="{name} de {first} a {last}",
        within="{name} desde {first} antes de {last}",
        empty="{name} está vacío",
        filled="{name} no está vacío",
        of_all="de {count}",
        corrected="«{written}» leído como «{meant}»",
        by="por {column}",
        by_period={
            "day": "por día de {column}",
            "week": "por semana de {column}",
            "month": "por mes de {column}",
            "quarter": "por trimestre de {column}",
            "year": "por año de {column}",
        },
        most_first="de mayor a menor",
        least_first="de menor a mayor",
        first="los primeros {count}",
        compared="{first} comparado con {second}",
        computed="Calculado con: {explanation}.",
        more="… y {count} más.",
        did_you_mean="¿Quieres decir: {readings}?",
        not_understood="No se entiende: {words}.",
    ),
}
LANGUAGES = tuple(_PHRASES)


def phrases_of(language: str) -> Phrases:
    """The phrases of a language, such as `de` or `de-AT`; English if there are none."""
    return _PHRASES.get(language[:2], _PHRASES["en"])


def worded_number(text: str, language: str) -> str:
    """A number that is written as in English, as the language writes it."""
    is_swapped = language[:2] in ("de", "es")
    return text.translate(str.maketrans(",.", ".,")) if is_swapped else text


def worded_value(value: bool | float | date | str, language: str = "en") -> str:
    """A value in an explanation: `4,000`, `2026-03-01`, `yes`."""
    if isinstance(value, bool):
        phrases = phrases_of(language)
        return phrases.yes if value else phrases.no
    if isinstance(value, float):
        number = f"{value:,.10g}" if abs(value) < 1e10 else f"{value:,.0f}"
        return worded_number(number, language)
    return str(value)
