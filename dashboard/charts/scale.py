"""Axes that end at round numbers, and numbers in few characters. Pure."""

from math import ceil, floor, log10

#: Steps that are easy to read.
STEPS = (1.0, 2.0, 2.5, 5.0, 10.0)
#: Less is nothing.
LEAST = 1e-6
THOUSANDS = ((1e9, "B"), (1e6, "M"), (1e3, "k"))


def ticks(most: float, *, whole: bool = True, count: int = 3) -> tuple[float, ...]:
    """From 0 in even, round steps to the first one that is not below `most`; at most `count` steps.

    `whole` leaves out steps between whole numbers.
    """
    if most < LEAST:
        return (0.0, 1.0)
    power = 10.0 ** floor(log10(most / count))
    sizes = [size * power * scale for scale in (1, 10) for size in STEPS]
    if whole:
        sizes = [size for size in sizes if size >= 1 and size == int(size)] or [1.0]
    step = next((size for size in sizes if size * count >= most - 1e-9), sizes[-1])
    return tuple(round(step * number, 9) for number in range(ceil(most / step - 1e-9) + 1))


def short(value: float) -> str:
    """At most three digits: 950, 1.2k, 34k, 1.5M."""
    for size, letter in THOUSANDS:
        if value >= size * 0.9995:
            scaled = value / size
            return _trimmed(scaled, 1 if scaled < 99.95 else 0) + letter
    return _trimmed(value, 2 if value < 1 else 1 if value < 10 else 0)


def milliseconds(value: float) -> str:
    """In the unit that fits: 8.5 ms, 120 ms, 1.4 s."""
    if value >= 999.5:
        return f"{_trimmed(value / 1000, 1)} s"
    return f"{_trimmed(value, 1 if value < 10 else 0)} ms"


def score(value: float) -> str:
    """Of 0 to 1, with as many digits as mean something."""
    return f"{value:.2f}"


def _trimmed(value: float, digits: int) -> str:
    text = f"{value:.{digits}f}"
    return text.rstrip("0").removesuffix(".") if "." in text else text
