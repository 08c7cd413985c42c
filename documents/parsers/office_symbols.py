"""Characters that Word writes as places in the font `Symbol`: Greek letters and operators."""

_GREEK = "αβχδεφγηιϕκλμνοπθρστυϖωξψζ"
_CAPITALS = "ΑΒΧΔΕΦΓΗΙϑΚΛΜΝΟΠΘΡΣΤΥςΩΞΨΖ"
_OPERATORS = {
    0xA3: "≤", 0xA5: "∞", 0xAB: "↔", 0xAC: "←", 0xAD: "↑", 0xAE: "→", 0xAF: "↓", 0xB0: "°",
    0xB1: "±", 0xB3: "≥", 0xB4: "×", 0xB5: "∝", 0xB7: "•", 0xB8: "÷", 0xB9: "≠", 0xBA: "≡",
    0xBB: "≈", 0xC5: "⊕", 0xC6: "∅", 0xCE: "∈", 0xD5: "∏", 0xD6: "√", 0xE5: "∑", 0xF2: "∫",
}  # fmt: skip


def symbol(font: str, code: str) -> str:
    """The character for `w:sym`; of pictorial fonts such as Wingdings nothing."""
    try:
        place = int(code, 16)
    except ValueError:
        return ""
    private = 0xF000 <= place <= 0xF0FF
    place -= 0xF000 if private else 0
    if font.lower() != "symbol":
        return "" if private or not 0x20 <= place < 0xD800 else chr(place)
    if 0x61 <= place <= 0x7A:
        return _GREEK[place - 0x61]
    if 0x41 <= place <= 0x5A:
        return _CAPITALS[place - 0x41]
    return _OPERATORS.get(place, chr(place) if 0x20 <= place < 0x7F else "")
