"""The documentation: a page with everything in it, its start, what a search finds and does not."""

from tests.matrix.states import State

STATES = [
    State("home", lambda world: "/docs/", "article h1", login=False),
    State("page", lambda world: "/docs/reference/filters/", "article table", login=False),
    State("architecture", lambda world: "/docs/architecture/", "article img"),
    State("found", lambda world: "/docs/search/?q=parser", ".docsfound li", login=False),
    State("nothing", lambda world: "/docs/search/?q=xylophone+quagga", "main p", login=False),
]
