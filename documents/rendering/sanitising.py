"""The allow-list behind everything that is rendered from a document."""

import nh3

#: Keeps the ids of a document apart from those of the page around it.
ANCHOR_PREFIX = "h-"

_PHRASING = {
    *("b", "br", "code", "del", "em", "i", "ins", "kbd", "s", "small", "strong", "sub", "sup", "u")
}
_TAGS = _PHRASING | {
    *("a", "blockquote", "div", "h2", "h3", "h4", "h5", "h6", "hr", "li", "ol", "p", "pre", "span"),
    *("table", "tbody", "td", "th", "thead", "tr", "ul"),
}
_ATTRIBUTES = {
    "*": {"class", "id", "tabindex"},
    "a": {"href", "title"},
    "div": {"role", "aria-label"},
    "ol": {"start"},
}
_SCHEMES = {"http", "https", "mailto"}


def sanitise(html: str) -> str:
    """Only what the renderer may produce; links leave the site without a referrer."""
    return nh3.clean(
        html,
        tags=_TAGS,
        attributes=_ATTRIBUTES,
        url_schemes=_SCHEMES,
        url_relative=_own_link,
        link_rel="noopener noreferrer nofollow",
    )


def keep_phrasing(html: str) -> str:
    """The text of raw HTML, with the tags that style words and none of their attributes."""
    return nh3.clean(html, tags=_PHRASING, attributes={})


def _own_link(url: str) -> str | None:
    """A link inside the document stays one; a path has no meaning here, so it is no link."""
    return f"#{ANCHOR_PREFIX}{url[1:]}" if len(url) > 1 and url.startswith("#") else None
