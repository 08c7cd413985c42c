"""Similarities of several models on one scale, so that their lists can be joined."""

from collections.abc import Mapping
from typing import TypeVar

import numpy as np

from common.bm25 import Ids
from common.fusion import Numbers

Number = TypeVar("Number", float, Numbers)

#: A model that finds everything alike tells nothing; dividing by less would only magnify noise.
LEAST_ROOM = 0.05


def closeness(similarity: Number, background: float) -> Number:
    """0 where a passage is as similar as any, 1 where it is the same text.

    Models differ in what they call near: for one any two texts have 0.05 and a good answer 0.6,
    for another 0.75 and 0.88. `background` is the mean similarity of the question to passages of
    the scope, whatever they say; 1 is the same for every model.
    """
    return (similarity - background) / max(1 - background, LEAST_ROOM)


def on_one_scale(similarities: Numbers, spaces: Ids, backgrounds: Mapping[int, float]) -> Numbers:
    """Closeness of hits of these spaces, from each space's background.

    Within one space similarities are comparable as they are, and stay.
    """
    if len(backgrounds) < 2:
        return similarities
    usual = np.array([backgrounds.get(space, 0.0) for space in spaces.tolist()])
    close: Numbers = (similarities - usual) / np.maximum(1 - usual, LEAST_ROOM)
    return close
