"""What a mail says, who wrote it, and what is attached; hostile mails are bounded."""

from email.message import EmailMessage
from email.mime.multipart import MIMEMultipart

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reading.parsers import Heading, ParseError, parse
from reading.parsers.mail import MAX_ATTACHMENTS, unpack_mail
from reading.parsers.mail_quotes import fold_quotes
from reading.parsers.outlook import decompressed_rtf
from reading.tests.factories_mail import broken_part, mail, many_attachments, outlook


def test_a_mail_has_its_subject_people_and_date_as_metadata_and_in_its_text() -> None:
    written = mail(
        "Grüße aus Köln.", attached={"report.pdf": b"%PDF-"}, subject="Kessel: läuft", cc="d@x.org"
    )
    document = parse(written.as_bytes(), name="a.eml")
    assert (document.media_type, document.title) == ("message/rfc822", "Kessel: läuft")
    assert document.metadata == {
        "subject": "Kessel: läuft",
        "from": "ada@example.com",
        "from_name": "Ada Lovelace",
        "to": ["bob@example.com", "carol@example.com"],
        "cc": ["d@x.org"],
        "date": "2026-03-03T10:00:00+01:00",
        "message_id": "m1@example.com",
        "attachments": ["report.pdf"],
    }
    assert document.text == (
        "From: Ada Lovelace (ada@example.com)\nTo: Bob (bob@example.com), carol@example.com\n"
        "Cc: d@x.org\nDate: 2026-03-03\nAttachments: report.pdf\n\nGrüße aus Köln.\n"
    )


def test_the_day_of_a_mail_is_that_of_its_sender() -> None:
    written = b"From: a@example.org\nDate: Sun, 1 Mar 2026 00:30:00 +0900\n\nAll quiet."
    document = parse(written, name="a.eml")
    assert "Date: 2026-03-01\n" in document.text
    assert document.metadata["date"] == "2026-03-01T00:30:00+09:00"


def test_spaces_and_comments_in_headers_are_borne() -> None:
    written = (
        b"From  : Ann <ann@example.org>\r\nTo    : Bob\r\n__\r\n   <bob@example.org>\r\n"
        b"Subject     : Hello\r\nDate  : Fri, 21 Nov 1997 09(comment):   55  :  06 -0600\r\n\r\n"
        b"Note : this is text."
    )
    document = parse(written, name="a.eml")
    assert document.title == "Hello"
    assert document.metadata["date"] == "1997-11-21T09:55:06-06:00"
    assert document.metadata["to"] == ["bob@example.org"]
    assert document.text.endswith("\n\nNote : this is text.\n")


def test_of_two_alternatives_the_page_is_read_unless_it_lacks_half_of_the_words() -> None:
    page = "<h2>Plan</h2><p>We meet at noon.</p><table><tr><th>a<th>b<tr><td>1<td>2</table>"
    document = parse(mail("Plan: we meet at noon.", html=page).as_bytes(), name="a.eml")
    assert "## Plan\n\nWe meet at noon.\n\n| a | b |" in document.text
    assert document.headings == (Heading(document.text.index("## Plan"), 2, "Plan"),)
    assert document.rendering == "markdown"
    short = parse(mail("All of it stands here, not there.", html="<p>Hi").as_bytes(), name="a.eml")
    assert "All of it stands here" in short.text
    assert short.rendering == "plain"


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


def test_addresses_in_brackets_without_end_are_left_out() -> None:
    data = b"From: a@x.org\nTo: " + b"(" * 9_000 + b"\n\nText."
    assert parse(data, name="a.eml").metadata == {"from": "a@x.org"}


def test_what_is_no_mail_is_refused() -> None:
    with pytest.raises(ParseError, match="no header") as caught:
        parse(b"\nJust words.", name="a.eml")
    assert caught.value.code == "malformed"
    with pytest.raises(ParseError, match=r"named \.msg"):
        parse(b"Just words.", name="a.msg")
    with pytest.raises(ParseError, match="mailbox of many mails"):
        parse(b"From a\nSubject: x\n\nx", name="a.mbox")


def test_an_outlook_file_is_read_like_a_mail() -> None:
    sent = struct_time()
    data = outlook(
        {
            0x0037: "Kessel",
            0x1000: "Der Kessel läuft.",
            0x0042: "Ada Lovelace",
            0x5D02: "ada@example.com",
            0x1035: "<m2@example.com>",
        },
        {
            "__recip_version1.0_#00000000": {0x3001: "Bob", 0x39FE: "bob@example.com", 0: sent},
            "__attach_version1.0_#00000000": {0x3707: "notes.txt", 0x3701: b"Some notes."},
        },
    )
    document = parse(data, name="a.msg")
    assert (document.media_type, document.title) == ("application/vnd.ms-outlook", "Kessel")
    assert document.metadata["from"] == "ada@example.com"
    assert document.metadata["to"] == ["bob@example.com"]
    assert "Der Kessel läuft." in document.text
    (part,) = unpack_mail(data, name="a.msg").parts
    assert (part.path, part.data) == ("notes.txt", b"Some notes.")
    with pytest.raises(ParseError, match="damaged"):
        unpack_mail(data[:900], name="a.msg")


def struct_time() -> bytes:
    """The properties of a recipient: of the kind “to”."""
    return b"\0" * 8 + b"\x03\x00\x15\x0c" + b"\0" * 4 + b"\x01" + b"\0" * 7


@settings(max_examples=60, deadline=None)
@given(st.binary(max_size=300), st.integers(0, 3000), st.sampled_from(["eml", "msg"]))
def test_damaged_mails_raise_nothing_else(noise: bytes, at: int, kind: str) -> None:
    whole = (
        mail(attached={"a.txt": b"A", "m.eml": mail()}, html="<p>x").as_bytes()
        if kind == "eml"
        else outlook({0x0037: "Kessel", 0x1000: "Text"}, {"__attach_version1.0_#0": {0x3701: b"x"}})
    )
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


def test_an_outlook_mail_that_has_its_text_as_rtf_alone_is_read() -> None:
    assert decompressed_rtf(HELLO) == b"{\\rtf1\\ansi\\ansicpg1252\\pard hello world}\r\n"
    document = parse(outlook({0x0037: "Boiler", 0x1009: HELLO}), name="a.msg")
    assert "hello world" in document.text
    both = parse(outlook({0x0037: "Boiler", 0x1000: "Plain.", 0x1009: HELLO}), name="a.msg")
    assert "hello" not in both.text
    for end in range(len(HELLO)):
        assert decompressed_rtf(HELLO)[:20].startswith(decompressed_rtf(HELLO[:end])[:20])
