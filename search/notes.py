"""What a person should know of an answer."""

from common.wording import counted
from search.listing import Listing


def notes_on(listing: Listing, *, shown: int) -> tuple[str, ...]:
    """Sentences on a listing of which so many hits are shown."""
    query, retrieved, ranking = listing.parsed, listing.retrieved, listing.ranking
    notes = []
    if shown < len(listing.hits):
        notes.append(
            f"Sorted by {'title' if listing.query.sort == 'title' else 'date'}: the {shown} best of"
            f" {counted(len(listing.hits), 'hit')}. The others fit less than half as well as"
            " the best."
        )
    if query.named:
        notes.append(
            f"In a sentence, quotation marks only name something. To find nothing but passages that"
            f" hold it word for word, write +“{query.named[0]}”."
        )
    if "vector" in retrieved.degraded:
        partly = any(report.name == "vector" for report in retrieved.arms)
        notes.append(
            "Search by meaning reaches only some of the passages just now: a model does not answer."
            if partly
            else "Search by meaning is out of order just now: these passages were found by their"
            " words."
        )
    if "rerank" in ranking.degraded:
        notes.append(
            "The reranker does not answer just now: the order is that of words and meaning alone."
        )
    methods = {report.name: report.method for report in retrieved.arms}
    if methods.get("lexical") == "trigram":
        notes.append(f"No passage holds these words. This was searched for: {query.text}")
    elif retrieved.candidates and "lexical" in methods and not retrieved.listed("lexical"):
        notes.append("No passage holds these words: these were found by meaning.")
    return tuple(notes)
