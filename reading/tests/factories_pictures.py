"""Pictures of pages whose words are known, as a scanner or a camera would make them."""

import base64
import io
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw, ImageFilter, ImageFont

#: With umlauts, accents, ñ, ß, €, capitals and figures.
TEXTS = {
    "en": (
        "Employees are entitled to twenty-five days of annual leave; unused days expire on 31 March"
        " of the following year. Please send the signed form (No. 47-B) to office@example.org"
        " before Friday. The quick brown fox jumps over the lazy dog, whose kennel costs $1,249.50."
        " HOUSE RULES: nobody is to leave the workshop without locking the eastern gate."
    ),
    "de": (
        "Die Größe des Gebäudes überraschte die Besucher: „Schöne Straße“, rief Frau Müller,"
        " während sie ihre Einkäufe für 12,50 € bezahlte. ÄÖÜ sind Großbuchstaben; Fußgänger müssen"
        " zwölf Übungen machen. Der Vertrag läuft am 31.12.2026 aus und verlängert sich um zwölf"
        " Monate, sofern er nicht mit einer Frist von drei Monaten gekündigt wird."
    ),
    "es": (
        "El niño pequeño preguntó cuántos años tiene la señora Núñez. ¿Quién lo sabe? La reunión"
        " comenzará mañana a las 10:30 en el salón de actos, según informó la dirección. Además, el"
        " pingüino recibió 1.250,75 € de compensación. ÑANDÚ y CIGÜEÑA son aves; ¡qué difícil es"
        " contarlas! El señor Ibáñez pidió café, azúcar y un jamón."
    ),
    "fr": (
        "L’élève français a déjà reçu sa leçon à l’école où naît l’espoir. « Voilà », s’écria-t-il,"
        " ça coûte 35 € ! Le cœur du garçon était rempli de joie ; il fêtait Noël dès l’été. Les"
        " œuvres complètes sont prêtes à être expédiées à la fenêtre du théâtre. ÉCOLE, FORÊT et"
        " GARÇON s’écrivent avec des accents, même en capitales."
    ),
}
_FOLDERS = ("/usr/share/fonts/truetype/dejavu", "/usr/share/fonts/dejavu", "/Library/Fonts")
_INCHES = (8.27, 11.69)
_MARGIN = 0.9


def font(pixels: int, name: str = "DejaVuSerif.ttf") -> ImageFont.FreeTypeFont:
    """The font if it is installed, else Pillow's own."""
    paths = [Path(folder, name) for folder in _FOLDERS]
    found = next((path for path in paths if path.exists()), None)
    if found is not None:
        return ImageFont.truetype(found, pixels)
    own = ImageFont.load_default(pixels)
    assert isinstance(own, ImageFont.FreeTypeFont)
    return own


def broken_into_lines(text: str, face: ImageFont.FreeTypeFont, width: int) -> list[str]:
    lines = [""]
    for word in text.split():
        longer = f"{lines[-1]} {word}".strip()
        if face.getlength(longer) > width:
            lines.append(word)
        else:
            lines[-1] = longer
    return lines


def page_picture(text: str, *, dpi: int = 200, points: float = 11) -> tuple[Image.Image, list[str]]:
    """An A4 page with the text, and its lines as far as they find room."""
    width, height = (round(inches * dpi) for inches in _INCHES)
    face = font(round(points * dpi / 72))
    margin = round(_MARGIN * dpi)
    step = round(1.45 * points * dpi / 72)
    room = (height - 2 * margin) // step
    lines = broken_into_lines(text, face, width - 2 * margin)[:room]
    picture = Image.new("L", (width, height), 255)
    draw = ImageDraw.Draw(picture)
    for index, line in enumerate(lines):
        draw.text((margin, margin + index * step), line, font=face, fill=15)
    return picture, lines


def columns_picture(columns: Sequence[str], *, heading: str) -> Image.Image:
    """A page at 200 dpi with a heading across and columns of text below it."""
    picture = Image.new("L", (1654, 1100), 255)
    draw = ImageDraw.Draw(picture)
    face = font(30)
    draw.text((160, 90), heading, font=font(44), fill=15)
    width = 1334 // len(columns) - 60
    for column, text in enumerate(columns):
        x = 160 + column * (width + 60)
        for index, line in enumerate(broken_into_lines(text, face, width)):
            draw.text((x, 220 + index * 44), line, font=face, fill=15)
    return picture


def receipt_picture(rows: Sequence[tuple[str, str]]) -> Image.Image:
    """Labels at the left, amounts at the right, on narrow paper."""
    picture = Image.new("L", (760, 80 + 56 * len(rows)), 248)
    draw = ImageDraw.Draw(picture)
    face = font(32, "DejaVuSansMono.ttf")
    for index, (label, amount) in enumerate(rows):
        y = 40 + 56 * index
        draw.text((40, y), label, font=face, fill=30)
        draw.text((720 - face.getlength(amount), y), amount, font=face, fill=30)
    return picture


def copied(picture: Image.Image, *, skew: float = 0.8, seed: int = 1) -> Image.Image:
    """As a worn copier would scan it: askew by `skew` degrees, blurred, grey, with noise."""
    turned = picture.rotate(skew, resample=Image.Resampling.BICUBIC, fillcolor=255)
    grey = np.asarray(turned.filter(ImageFilter.GaussianBlur(0.6)), np.float64) * 0.85 + 25
    grey += np.random.default_rng(seed).normal(0, 18, grey.shape)
    return Image.fromarray(grey.clip(0, 255).astype(np.uint8))


def picture_file(picture: Image.Image, kind: str = "png", **options: object) -> bytes:
    """The bytes of an image file; further pages by `append_images`."""
    buffer = io.BytesIO()
    picture.save(buffer, kind, **options)
    return buffer.getvalue()


def edit_distance(left: str, right: str) -> int:
    """Levenshtein's, row by row."""
    letters = np.array([ord(letter) for letter in right])
    places = np.arange(len(right) + 1)
    row = places.copy()
    for index, letter in enumerate(left, start=1):
        best = np.concatenate(
            ([index], np.minimum(row[:-1] + (letters != ord(letter)), row[1:] + 1))
        )
        row = np.minimum.accumulate(best - places) + places
    return int(row[-1])


#: "Pier 7" on 64 by 48 pixels: nothing that is installed writes such files.
HEIC = base64.b64decode(
    "AAAAHGZ0eXBoZWljAAAAAG1pZjFoZWljbWlhZgAAAX1tZXRhAAAAAAAAACFoZGxyAAAAAAAAAABwaWN0AAAAAAAAAA"
    "AAAAAAAAAAACJpbG9jAAAAAERAAAEAAQAAAAABoQABAAAAAAAAAL0AAAAjaWluZgAAAAAAAQAAABVpbmZlAgAAAAAB"
    "AABodmMxAAAAAA5waXRtAAAAAAABAAAA/WlwcnAAAADdaXBjbwAAAHZodmNDAQNwAAAAkAAAAAAAHvAA/P34+AAADw"
    "NgAAEAGEABDAH//wNwAAADAJAAAAMAAAMAHroCQGEAAQAqQgEBA3AAAAMAkAAAAwAAAwAeoCCBBZbq5Ka5uAhoMCAA"
    "AAMDIAAAAwAhYgABAAZEAcFzwIkAAAATY29scm5jbHgAAQANAAaAAAAAFGlzcGUAAAAAAAAAQAAAAEAAAAAoY2xhcA"
    "AAAEAAAAABAAAAMAAAAAEAAAAAAAAAAv////AAAAACAAAAEHBpeGkAAAAAAwgICAAAABhpcG1hAAAAAAAAAAEAAQWB"
    "AgMFhAAAAMVtZGF0AAAAuSgBrxmArRqVTtOuBU7ZH4AXLEdr4Hys31KdWD5tHqa9ewbLJPPa9kFIlZYgeNA9H4SUhM"
    "NfqNg5sIPD2Q4Yciu0sL0wbX2Jw2KHneB3QpSRRv+KYEaJXKdFt5ePBqw+q7I4CZXPdgQ4bG9Q+kXhxzwByCtzn4zp"
    "97LqmnbBIK4oBIfJpvoasOHuWTv2ThoY9m+jYVsCK24zC70vHc6Wq0En252GuTNRl3cQp2JnFhby0HLWZ3+oCKrw"
)
