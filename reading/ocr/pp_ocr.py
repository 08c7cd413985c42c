"""PP-OCRv6 by onnxruntime: text is found by a segmentation network (DB, arXiv:1911.08947), and each
line is read by a network with CTC. Begin with `PaddleOcr.read`.

The weights are those in the wheel of `rapidocr` (Apache 2.0, PaddlePaddle), of which nothing else
is used: its pipeline imports much, keeps no word's place without a second pass, and calls networks
in batches that need a gigabyte.
"""

import hashlib
import importlib.util
from functools import cached_property
from pathlib import Path

import cv2
import numpy as np
from numpy.typing import NDArray

from common.onnx import onnxruntime
from reading.ocr.lines import Corners, Line, Picture, Word
from reading.parsers.boxes import Box, enclosing_box

NAME = "PP-OCRv6"
#: Files in `rapidocr/models` and their SHA-256: other weights may read other things.
DETECTION, RECOGNITION, DIRECTION = (
    "PP-OCRv6_det_small.onnx",
    "PP-OCRv6_rec_small.onnx",
    "ch_ppocr_mobile_v2.0_cls_mobile.onnx",
)
SHA256 = {
    DETECTION: "090f04abcd9d9a7498bc4ebf677e4cb9bdce1fe4197ddb7e529f1ef44e1ff94f",
    RECOGNITION: "6f327246b50388f3c176ae304bd95767ea6dc0c9ae92153ef8cbe210b3c14884",
    DIRECTION: "e47acedf663230f8863ff1ab0e64dd2d82b838fceb5957146dab185a89d6215c",
}

#: The longer side of the picture in which text is looked for, and that for pages of small print.
DETECTION_SIDE = 1344
SMALL_PRINT_SIDE = 2016
#: Pixels of a line's height in the former, below which it is looked for again in the latter.
SMALL_PRINT_HEIGHT = 11.0
#: Small pictures, as of a screen, are enlarged.
MAX_ENLARGEMENT = 2.0
_STEP = 32

#: Of the network's map: a pixel is text; a region is; how far a region is smaller than its text.
TEXT_PIXEL, TEXT_REGION, UNCLIP_RATIO = 0.3, 0.5, 1.6
MAX_LINES = 2000
_MIN_SIDE = 3.0

LINE_HEIGHT = 48
#: In heights of a line, on its left and right: without it a full stop at the end may be lost.
SIDE_MARGIN = 0.2
#: Most lines can be read when they are squeezed to this share of their width, in as much less time;
#: those that are read with less confidence are read again as they are.
SQUEEZE, SURE_ENOUGH = 0.65, 0.96
#: A line is read in pieces of this width at most, which bounds the memory.
MAX_LINE_WIDTH, MAX_PIECES = 2400, 4
#: Below this confidence it is no text: grain, ornaments, handwriting.
MIN_CONFIDENCE = 0.5
_DIRECTION_SHAPE = (48, 192)
_DIRECTION_LINES = 8

Array = NDArray[np.float32]


class MissingWeights(Exception):
    """The weights are not installed, or are others."""


class PaddleOcr:
    """The networks, loaded when they are first needed. `threads` are those of one network."""

    def __init__(self, threads: int = 1) -> None:
        self._threads = threads

    @cached_property
    def _detection(self) -> onnxruntime.InferenceSession:
        return self._load(DETECTION)

    @cached_property
    def _recognition(self) -> onnxruntime.InferenceSession:
        return self._load(RECOGNITION)

    @cached_property
    def _direction(self) -> onnxruntime.InferenceSession:
        return self._load(DIRECTION)

    @cached_property
    def _characters(self) -> list[str]:
        """By class: the first is CTC's blank, the last the space."""
        known = self._recognition.get_modelmeta().custom_metadata_map["character"]
        return ["", *known.splitlines(), " "]

    def _load(self, name: str) -> onnxruntime.InferenceSession:
        spec = importlib.util.find_spec("rapidocr")
        folders = spec.submodule_search_locations if spec else None
        if not folders:
            raise MissingWeights("rapidocr is not installed: pip install -r requirements.txt")
        path = Path(folders[0], "models", name)
        weights = path.read_bytes()
        if hashlib.sha256(weights).hexdigest() != SHA256[name]:
            raise MissingWeights(f"{name} is not that of the pinned rapidocr: install it again")
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = self._threads
        options.inter_op_num_threads = 1
        # The arena keeps the most that any page needed.
        options.enable_cpu_mem_arena = False
        options.log_severity_level = 3
        return onnxruntime.InferenceSession(weights, options, providers=["CPUExecutionProvider"])

    def read(self, picture: Picture) -> tuple[list[Line], int]:
        """The lines, and the degrees by which the picture must be turned clockwise to be upright;
        the boxes are those of the turned one."""
        found = self._find(picture)
        rotation = self._rotation(picture, found)
        if rotation:
            height, width = picture.shape
            found = [_turned_corners(each, rotation, width, height) for each in found]
            picture = np.ascontiguousarray(np.rot90(picture, -rotation // 90))
        return self._read_lines(picture, found), rotation

    def _read_lines(self, picture: Picture, found: list[Corners]) -> list[Line]:
        lines: list[Line] = []
        tries = repeats = 0
        for corners in found:
            line = None
            if 2 * repeats <= tries + 3:
                tries += 1
                line = self._read_line(picture, corners, SQUEEZE)
            if line is None or line.confidence < SURE_ENOUGH:
                repeats += 1
                whole = self._read_line(picture, corners)
                line = max((line, whole), key=lambda each: each.confidence if each else 0.0)
            if line is not None and line.confidence >= MIN_CONFIDENCE:
                lines.append(line)
        return lines

    def _find(self, picture: Picture) -> list[Corners]:
        """Corners of the text lines."""
        found = self._find_at(picture, DETECTION_SIDE)
        scale = min(1.0, DETECTION_SIDE / max(picture.shape))
        if scale < 1.0 and found:
            heights = [min(_sides(corners)) * scale for corners in found]
            if float(np.median(heights)) < SMALL_PRINT_HEIGHT:
                return self._find_at(picture, SMALL_PRINT_SIDE)
        return found

    def _find_at(self, picture: Picture, side: int) -> list[Corners]:
        height, width = picture.shape
        scale = min(MAX_ENLARGEMENT, side / max(height, width))
        rows, columns = (max(_STEP, round(n * scale / _STEP) * _STEP) for n in (height, width))
        small = cv2.resize(picture, (columns, rows), interpolation=cv2.INTER_AREA)
        (scores,) = self._detection.run(None, {"x": _network_input(np.asarray(small, np.uint8))})
        text: Array = scores[0, 0]
        mask = cv2.dilate((text > TEXT_PIXEL).astype(np.uint8), np.ones((2, 2), np.uint8))
        contours, _ = cv2.findContours(mask, cv2.RETR_LIST, cv2.CHAIN_APPROX_SIMPLE)
        lines: list[Corners] = []
        for contour in contours[:MAX_LINES]:
            center, (long, short), angle = cv2.minAreaRect(contour)
            if (
                min(long, short) < _MIN_SIDE
                or _mean_score(text, np.asarray(contour, np.int32)) < TEXT_REGION
            ):
                continue
            grown = UNCLIP_RATIO * long * short / (long + short)
            corners = cv2.boxPoints((center, (long + grown, short + grown), angle))
            scales = np.array([width / columns, height / rows])
            lines.append(_from_top_left(np.asarray(corners * scales, np.float32)))
        return lines

    def _rotation(self, picture: Picture, lines: list[Corners]) -> int:
        """By which multiple of 90 degrees the picture must be turned clockwise."""
        if not lines:
            return 0
        sides = [_sides(corners) for corners in lines]
        upright = sum(width for width, height in sides if width >= height)
        sideways = sum(height for width, height in sides if height > 1.5 * width)
        rotation = 90 if sideways > upright else 0
        height, width = picture.shape
        longest = sorted(lines, key=lambda corners: -max(_sides(corners)))[:_DIRECTION_LINES]
        if rotation:
            picture = np.ascontiguousarray(np.rot90(picture, -1))
            longest = [_turned_corners(each, rotation, width, height) for each in longest]
        rows, columns = _DIRECTION_SHAPE
        upside_down = 0.0
        for corners in longest:
            wide, high = _sides(corners)
            crop = _crop(picture, corners, min(columns, max(8, round(rows * wide / high))), rows)
            padded = np.zeros((1, 3, rows, columns), np.float32)
            padded[..., : crop.shape[1]] = _network_input(crop)
            (scores,) = self._direction.run(None, {"x": padded})
            upside_down += float(scores[0, 1]) / len(longest)
        if 0.2 < upside_down < 0.8:
            upside_down = self._reads_better_upside_down(picture, longest[:3])
        return rotation + (180 if upside_down > 0.5 else 0)

    def _reads_better_upside_down(self, picture: Picture, lines: list[Corners]) -> float:
        balance = 0.0
        for corners in lines:
            upright = self._read_line(picture, corners)
            turned = self._read_line(picture, np.roll(corners, 2, axis=0))
            balance += (turned.confidence if turned else 0) - (upright.confidence if upright else 0)
        return 1.0 if balance > 0 else 0.0

    def _read_line(self, picture: Picture, corners: Corners, squeeze: float = 1.0) -> Line | None:
        wide, high = _sides(corners)
        if high > 1.5 * wide:  # it runs down or up the page
            corners, wide, high = np.roll(corners, 1, axis=0), high, wide
        margin = (corners[1] - corners[0]) / wide * SIDE_MARGIN * high
        corners = np.asarray(corners + np.stack([-margin, margin, margin, -margin]), np.float32)
        wide += 2 * SIDE_MARGIN * high
        width = max(16, round(squeeze * LINE_HEIGHT * wide / high))
        pieces = -(-width // MAX_LINE_WIDTH)
        indices: list[NDArray[np.int64]] = []
        sureness: list[Array] = []
        crop = _crop(picture, corners, min(width, MAX_PIECES * MAX_LINE_WIDTH), LINE_HEIGHT)
        for part in np.array_split(crop, min(pieces, MAX_PIECES), axis=1):
            (scores,) = self._recognition.run(None, {"x": _network_input(part)})
            indices.append(scores[0].argmax(axis=1))
            sureness.append(scores[0].max(axis=1))
        return self._decode(np.concatenate(indices), np.concatenate(sureness), corners)

    def _decode(self, classes: NDArray[np.int64], sureness: Array, corners: Corners) -> Line | None:
        """A line of the classes by column, with words where they lie between the corners."""
        changes = np.ones(len(classes), bool)
        changes[1:] = classes[1:] != classes[:-1]
        columns = np.flatnonzero(changes & (classes != 0))
        if not len(columns):
            return None
        words: list[Word] = []
        letters: list[str] = []
        start = last = 0

        def end_word() -> None:
            if letters:
                place = ((start - 0.5) / len(classes), (last + 1.5) / len(classes))
                words.append(Word("".join(letters), _part_box(corners, *place)))
                letters.clear()

        for column in columns.tolist():
            character = self._characters[classes[column]]
            if character.isspace():
                end_word()
                continue
            if not letters:
                start = column
            letters.append(character)
            last = column
        end_word()
        if not words:
            return None
        (x0, y0), (x1, y1) = corners[0], corners[1]
        tilt = float(y1 - y0) / float(x1 - x0) if x1 - x0 > 1 else 0.0
        return Line(tuple(words), float(sureness[columns].mean()), tilt)


def _network_input(picture: Picture) -> Array:
    """Values from -1 to 1, as 1 × 3 × rows × columns."""
    values = picture.astype(np.float32) / np.float32(127.5) - np.float32(1.0)
    return np.repeat(values[None, None], 3, axis=1)


def _mean_score(text: Array, contour: NDArray[np.int32]) -> float:
    x, y, width, height = cv2.boundingRect(contour)
    mask = np.zeros((height, width), np.uint8)
    cv2.fillPoly(mask, [contour - np.array([x, y], contour.dtype)], 1)
    return float(cv2.mean(text[y : y + height, x : x + width], mask)[0])


def _from_top_left(corners: Corners) -> Corners:
    """Clockwise from the corner at the top left, for a line that is turned less than 45 degrees."""
    left = corners[np.argsort(corners[:, 0], kind="stable")]
    a, b = left[:2][np.argsort(left[:2, 1])]
    c, d = left[2:][np.argsort(left[2:, 1])]
    return np.array([a, c, d, b], np.float32)


def _sides(corners: Corners) -> tuple[float, float]:
    """Width and height of a line's rectangle."""
    width, height = np.linalg.norm(corners[1] - corners[0]), np.linalg.norm(corners[3] - corners[0])
    return max(float(width), 1.0), max(float(height), 1.0)


def _crop(picture: Picture, corners: Corners, width: int, height: int) -> Picture:
    """The line's rectangle, stretched to `width` × `height`."""
    target = np.array([[0, 0], [width, 0], [width, height], [0, height]], np.float32)
    matrix = cv2.getPerspectiveTransform(corners, target)
    return np.asarray(
        cv2.warpPerspective(
            picture,
            matrix,
            (width, height),
            flags=cv2.INTER_CUBIC,
            borderMode=cv2.BORDER_REPLICATE,
        ),
        np.uint8,
    )


def _turned_corners(corners: Corners, degrees: int, width: int, height: int) -> Corners:
    """The corners in the picture that was turned clockwise."""
    x, y = corners[:, 0], corners[:, 1]
    match degrees:
        case 90:
            turned = np.stack([height - y, x], axis=1)
        case 180:
            turned = np.stack([width - x, height - y], axis=1)
        case _:
            turned = np.stack([y, width - x], axis=1)
    return _from_top_left(turned)


def _part_box(corners: Corners, start: float, end: float) -> Box:
    """The box around a part of a line, given as fractions of its width."""
    top, bottom = corners[1] - corners[0], corners[2] - corners[3]
    points = [
        corner + side * min(max(place, 0.0), 1.0)
        for corner, side in ((corners[0], top), (corners[3], bottom))
        for place in (start, end)
    ]
    return enclosing_box([Box(float(x), float(y), float(x), float(y)) for x, y in points])
