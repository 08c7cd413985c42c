"""Names of HTML elements, by what they mean for the text."""

# One string each: a list of words reads better on four lines than on forty.
# ruff: noqa: SIM905

NEVER_TEXT = (
    "script style template noscript svg math iframe object embed applet canvas audio video map "
    "button select textarea input datalist dialog"
).split()
AROUND_ROLES = frozenset("navigation banner contentinfo complementary search".split())

HEADINGS = frozenset("h1 h2 h3 h4 h5 h6".split())
LISTS = frozenset("ul ol menu dir".split())
CODE = frozenset("code kbd samp tt".split())
BLOCKS = LISTS | frozenset(
    "html body div p section article main header footer aside nav address figure figcaption "
    "details summary fieldset legend form dl dt dd hr center table thead tbody tfoot tr td th "
    "caption hgroup label blockquote li".split()
)
#: Elements that make a table a means of layout when one of its cells holds them.
NOT_IN_A_CELL = "h1 h2 h3 h4 h5 h6 ul ol dl pre blockquote table".split()
#: Elements that separate words when everything is written on one line.
SEPARATING = frozenset("br p div li dt dd tr td th h1 h2 h3 h4 h5 h6 section article".split())
