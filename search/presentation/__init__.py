"""What the search pages show: results and state turned into words, shares and addresses."""

from search.presentation.choices import Choice, chips, modes, sorts
from search.presentation.facets import FacetGroup, facet_group, facet_groups
from search.presentation.grades import GRADES, TAKEN_BACK, GradeButton, grade_buttons
from search.presentation.hits import ArmLine, ShownHit, passage_url, shown_hits
from search.presentation.pages import PageLinks, accuracy, how_it_worked, page_links
from search.presentation.saved import SavedRow, saved_row
from search.presentation.similar import ShownSimilar, shown_similar, similar_to

__all__ = [
    "GRADES",
    "TAKEN_BACK",
    "ArmLine",
    "Choice",
    "FacetGroup",
    "GradeButton",
    "PageLinks",
    "SavedRow",
    "ShownHit",
    "ShownSimilar",
    "accuracy",
    "chips",
    "facet_group",
    "facet_groups",
    "grade_buttons",
    "how_it_worked",
    "modes",
    "page_links",
    "passage_url",
    "saved_row",
    "shown_hits",
    "shown_similar",
    "similar_to",
    "sorts",
]
