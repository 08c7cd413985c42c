"""What a mail says, who wrote it, and what is attached; hostile mails are bounded."""

from email.message import EmailMessage
from email.mime.multipart import MIMEMultipart

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reading.parsers import ParseError, parse
from reading.parsers.mail import MAX_ATTACHMENTS, unpack_mail
from reading.parsers.mail_quotes import fold_quotes
from reading.parsers.outlook import decompressed_rtf
from reading.tests.factories_mail import broken_part, mail, many_attachments
from reading.tests.test_parsers_cases import CASES

QUOTED = """Yes, on Friday.

On Tue, 3 Mar 2026 at 10:00, Ada Lovelace
<ada@example.com> wrote:

> Can you repair the boiler?
>
>> Older words.

--\x20
Bob
"""
OUTLOOK_REPLY = """Ja, am Freitag.

Von: Ada Lovelace <ada@example.com>
Gesendet: Dienstag, 3. März 2026 10:00
An: Bob
Betreff: Kessel

Können Sie den Kessel reparieren?
"""


def test_the_mail_that_is_answered_is_left_out() -> None:
    assert fold_quotes(QUOTED) == "Yes, on Friday.\n\n\n-- \nBob"
    assert fold_quotes(OUTLOOK_REPLY) == "Ja, am Freitag."
    assert fold_quotes("Yes.\n\n-----Original Message-----\nFrom: Ada\n\nCan you?") == "Yes."
    page = "<p>Yes.</p><p>Am 3. März 2026 schrieb Ada:</p><blockquote>Can you?</blockquote>"
    assert "Can you" not in parse(mail("", html=page).as_bytes(), name="a.eml").text


def test_of_a_passage_with_an_answer_below_the_first_words_stay() -> None:
    text = f"> When?\n\nOn Friday.\n\n> {'long ' * 100}\n\nNo."
    folded = fold_quotes(text)
    assert folded.startswith("> When?\n\n\nOn Friday.\n\n> long long")
    assert (len(folded) < 200, folded.endswith("…\n\n\nNo.")) == (True, True)


def test_what_is_only_quoted_or_forwarded_is_kept() -> None:
    assert fold_quotes("> All of it.") == "> All of it."
    assert fold_quotes("A poem:\n\n> Roses are red.") == "A poem:\n> Roses are red."
    document = parse(mail(OUTLOOK_REPLY, subject="WG: Kessel").as_bytes(), name="a.eml")
    assert "Können Sie den Kessel reparieren?" in document.text


def test_a_long_signature_is_cut() -> None:
    divided = "Above.\n--\n" + "\n".join(["Below."] * 40)
    assert fold_quotes(divided) == divided
    signature = "\n".join(f"line {number}" for number in range(20))
    assert fold_quotes(f"Yes.\n-- \n{signature}").endswith("Yes.\nline 0\nline 1\nline 2\nline 3")


def test_attachments_are_taken_out_under_names_of_their_own() -> None:
    inner = mail("Inner.", attached={"b.txt": b"B"}, subject="Inner one", date="")
    whole = mail(attached={"../a.txt": b"A", "a.txt": b"2", "fwd.eml": inner})
    unpacked = unpack_mail(whole.as_bytes(), name="a.eml")
    assert unpacked.message_id == "m1@example.com"
    assert unpacked.about["subject"] == "Boiler"
    parts = {part.path: part.data or b"" for part in unpacked.parts}
    assert (parts["a.txt"], parts["a (2).txt"]) == (b"A", b"2")
    (attached,) = unpack_mail(parts["fwd.eml"], name="fwd.eml").parts
    assert (attached.path, attached.data) == ("b.txt", b"B")


def test_a_picture_that_the_text_shows_is_no_attachment() -> None:
    written = EmailMessage()
    written["From"] = "a@example.com"
    written.set_content("<p>Hello <img src='cid:logo'></p>", subtype="html")
    written.add_related(b"\x89PNG", "image", "png", cid="<logo>")
    assert unpack_mail(written.as_bytes(), name="a.eml").parts == ()


@pytest.mark.nightly
def test_of_five_thousand_attachments_the_first_thousand_are_read() -> None:
    data = many_attachments(5_000)
    parts = unpack_mail(data, name="a.eml").parts
    assert len(parts) == MAX_ATTACHMENTS + 1
    assert "more than 1,000 attachments" in parts[-1].problem
    assert len(parse(data, name="a.eml").metadata["attachments"]) == MAX_ATTACHMENTS


@pytest.mark.parametrize("depth", [100, 5_000])
def test_parts_of_parts_without_end_are_refused(depth: int) -> None:
    head = "".join(
        f'Content-Type: multipart/mixed; boundary="b{level}"\n\n--b{level}\n'
        for level in range(depth)
    )
    with pytest.raises(ParseError, match="nested more than 30 levels deep"):
        parse(f"From: a@example.com\n{head}".encode(), name="a.eml")


def test_broken_mails_are_read_as_far_as_they_go() -> None:
    written = MIMEMultipart()
    written["Subject"] = "=?no-such?Q?K=E4se?= " + "x" * 200_000
    written["Date"] = "yesterday"
    written["From"] = "=?utf-8?B?%%%?= <<a@@"
    written.attach(broken_part("Käse".encode("cp1252")))
    document = parse(written.as_bytes()[:-20], name="a.eml")
    assert "Käse" in document.text
    assert len(document.title) <= 500
    assert "date" not in document.metadata
    eight_bit = parse(b"From: J\xfcrgen <j@x.org>\nSubject: Gr\xfc\xdfe\n\nText.", name="a.eml")
    assert (eight_bit.title, eight_bit.metadata["from_name"]) == ("Grüße", "Jürgen")
    unclosed = b'From: a@x.org\nContent-Type: multipart/mixed; boundary="b"\n\n--b\n\nText.'
    assert "Text." in parse(unclosed, name="a.eml").text


OUTLOOK = (CASES / "mail" / "outlook.msg").read_bytes()


def test_an_outlook_file_is_unpacked_like_a_mail() -> None:
    (part,) = unpack_mail(OUTLOOK, name="a.msg").parts
    assert (part.path, part.data) == ("notes.txt", b"Some notes.")
    with pytest.raises(ParseError, match="damaged"):
        unpack_mail(OUTLOOK[:900], name="a.msg")


@settings(max_examples=60, deadline=None)
@given(st.binary(max_size=300), st.integers(0, 3000), st.sampled_from(["eml", "msg"]))
def test_damaged_mails_raise_nothing_else(noise: bytes, at: int, kind: str) -> None:
    written = mail(attached={"a.txt": b"A", "m.eml": mail()}, html="<p>x")
    whole = written.as_bytes() if kind == "eml" else OUTLOOK
    data = whole[:at] + noise + whole[at + len(noise) :]
    for read in (parse, unpack_mail):
        try:
            outcome = repr(read(data, name=f"a.{kind}"))
        except ParseError as error:
            outcome = str(error)
        assert outcome


#: The example of [MS-OXRTFCP].
HELLO = bytes.fromhex(
    "2d0000002b0000004c5a4675f1c5c7a703000a00726370673132354232"
    "0af32068656c090020627705b06c647d0a800fa0"
)


def test_packed_rtf_is_unpacked_as_far_as_it_goes() -> None:
    assert decompressed_rtf(HELLO) == b"{\\rtf1\\ansi\\ansicpg1252\\pard hello world}\r\n"
    for end in range(len(HELLO)):
        assert decompressed_rtf(HELLO)[:20].startswith(decompressed_rtf(HELLO[:end])[:20])
