"""Fields of requests about memory."""

from rest_framework import serializers

from common.serializers import TextField
from memory.scopes import MAX_USER_ID_CHARACTERS


class UserIdField(TextField):
    """Whose memory. Blank is a value of its own: nobody."""

    def __init__(self) -> None:
        super().__init__(
            required=False,
            allow_blank=True,
            max_length=MAX_USER_ID_CHARACTERS,
            validators=[check_encoding],
            help_text="A user of your program's own making, whose memory is meant: for editors."
            " Compared to the letter. Default: your own memory. Of nobody, which is `unknown` or"
            " empty, nothing is kept or found; answers then say null.",
        )


def check_encoding(text: str) -> None:
    """Raise ValidationError for what came out of broken UTF-8: it would make one user of two."""
    if "\ufffd" in text:
        raise serializers.ValidationError("This is not UTF-8. Percent-encode it as UTF-8.")
