"""Similarities of several models on one scale, so that their lists can be joined."""

from collections.abc import Mapping

#: A model that finds everything alike tells nothing; dividing by less would only magnify noise.
LEAST_ROOM = 0.05


def closeness(similarity: float, background: float) -> float:
    """0 where a passage is as similar as any, 1 where it is the same text.

    Models differ in what they call near: for one any two texts have 0.05 and a good answer 0.6,
    for another 0.75 and 0.88. `background` is the mean similarity of the question to passages of
    the scope, whatever they say; 1 is the same for every model.
    """
    return (similarity - background) / max(1 - background, LEAST_ROOM)


def on_one_scale(
    similarities: Mapping[int, tuple[int, float]], backgrounds: Mapping[int, float]
) -> dict[int, float]:
    """Closeness by chunk, from (space, similarity) by chunk and each space's background.

    Within one space similarities are comparable as they are, and stay.
    """
    if len(backgrounds) < 2:
        return {chunk_id: similarity for chunk_id, (_, similarity) in similarities.items()}
    return {
        chunk_id: closeness(similarity, backgrounds.get(space_id, 0.0))
        for chunk_id, (space_id, similarity) in similarities.items()
    }
