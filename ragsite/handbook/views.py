"""Pages of the documentation. They are public: they say nothing of what the site holds."""

from django.http import FileResponse, Http404, HttpRequest, HttpResponse
from django.shortcuts import render as respond
from django.views.decorators.http import require_safe

from common.policies import CSP, PICTURES
from ragsite.handbook.contents import DOCS, contents
from ragsite.handbook.finding import find
from ragsite.handbook.rendering import render

_LONGEST_QUESTION = 500


@require_safe
def page(request: HttpRequest, name: str = "") -> HttpResponse:
    """One page. Only names in the contents are served, whatever the address says."""
    everything = contents()
    shown = everything.named(name)
    if shown is None:
        raise Http404
    before, after = everything.beside(shown)
    return respond(
        request,
        "handbook/page.html",
        {
            "page": shown,
            "rendered": render(shown),
            "sections": everything.sections(),
            "before": before,
            "after": after,
        },
    )


@require_safe
def results(request: HttpRequest) -> HttpResponse:
    """What a question finds in the documentation."""
    question = request.GET.get("q", "").replace("\x00", "").strip()[:_LONGEST_QUESTION]
    return respond(
        request,
        "handbook/results.html",
        {
            "question": question,
            "found": find(request, question) if question else [],
            "sections": contents().sections(),
        },
    )


@require_safe
def image(request: HttpRequest, name: str) -> FileResponse:
    """A picture of docs/images."""
    files = {file.name: file for file in (DOCS / "images").iterdir() if file.suffix == ".svg"}
    if name not in files:
        raise Http404
    headers = {CSP: PICTURES}
    return FileResponse(files[name].open("rb"), content_type="image/svg+xml", headers=headers)
