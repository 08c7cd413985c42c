"""Number formats of Excel."""

import pytest

from reading.parsers.office_content import format_number


@pytest.mark.parametrize(
    ("number", "code", "shown"),
    [
        (1067, "00000", "01067"),
        (5550173, r"000\-0000", "555-0173"),
        (1234, r"000\-0000", "000-1234"),
        (40012345678, r"0000\ 0000\ 0000", "0400 1234 5678"),
        (4711, '"WB-"000000', "WB-004711"),
        (3415550173, r"[<=9999999]###\-####;\(###\)\ ###\-####", "(341) 555-0173"),
        (5550173, r"[<=9999999]###\-####;\(###\)\ ###\-####", "555-0173"),
        (0, "00000", "00000"),
        (-7, "000", "-007"),
        (1234567, "#,##0", "1234567"),
        (7.5, "00.00", "07.50"),
        (123456789012, r"000\-0000", "12345678-9012"),
        (0.5, "# ?/?", "0.5"),
        (1.5, r"000\-000", "1.5"),
    ],
)
def test_zeros_and_masks_are_shown_as_excel_shows_them(
    number: float, code: str, shown: str
) -> None:
    assert format_number(number, code) == shown
