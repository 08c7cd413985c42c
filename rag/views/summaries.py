"""Pages of summaries: of one document, whose page shows them in its panel, and of the documents
that the filters of a search leave. Begin with `document_summary`."""

from collections.abc import Mapping
from typing import Any
from urllib.parse import urlencode

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from django.views.decorators.http import require_http_methods

from accounts.current_workspace import request_workspace
from common.errors import InvalidInput, RagsiteError
from common.text import strip_markdown
from common.web import login_required_page
from documents.models import Document
from documents.services import get_collection
from inference.chat_models import chat_model
from rag.models import Summary
from rag.services.summaries import cancel_summary, get_summary
from rag.tasks import request_summary
from rag.tools.summaries import (
    TextToSummarize,
    document_text_of,
    find_document,
    scope_text_of,
)
from rag.views.chat import context_of_request, no_store
from rag.views.turns import render_answer
from search.forms import SearchState

MAX_HEADINGS = 2


@require_http_methods(["GET", "HEAD", "POST"])
@login_required_page
def document_summary(request: HttpRequest, pk: int) -> HttpResponse:
    """What one document is about: `?kind=about` or `summary`."""
    document = find_document(context_of_request(request), pk)
    versions = Document.objects.visible_to(request.user).filter(
        collection=document.collection_id, key=document.key
    )
    address = reverse("document", args=[document.collection.slug, document.pk])
    context = {
        "document": document,
        "title": str(document),
        "back_url": address,
        "back_label": str(document),
        "compare_url": f"{address}compare/"
        if versions.filter(version__lt=document.version).exists()
        else "",
    }
    return _respond(request, document_text_of(document), context)


@require_http_methods(["GET", "HEAD", "POST"])
@login_required_page
def set_summary(request: HttpRequest) -> HttpResponse:
    """What the documents are about that the filters of a search leave: `?collection=`, `type` and
    `filter` as the search page has them."""
    params = request.GET.copy()
    for own in ("kind", "q"):
        params.pop(own, None)
    state = SearchState.read(params)
    text = scope_text_of(state.scope(user=request.user, workspace=request_workspace(request)))
    number = len(text.document_ids)
    context = {
        "title": ngettext("%(number)d document", "%(number)d documents", number)
        % {"number": number},
        "filters": [
            *(state.collections if len(state.collections) > 1 else ()),
            *state.types,
            *filter(None, [state.filter]),
        ],
        "query_string": params.urlencode(),
        "back_url": f"{reverse('search')}?{params.urlencode()}",
        "back_label": _("Search"),
    }
    if len(state.collections) == 1:
        (slug,) = state.collections
        name = get_collection(workspace=request_workspace(request), slug=slug).name
        context |= {"back_url": reverse("collection", args=[slug]), "back_label": name}
    return _respond(request, text, context)


def _respond(
    request: HttpRequest, text: TextToSummarize, context: Mapping[str, Any]
) -> HttpResponse:
    """The summary as a page, or for its script the panel alone; a POST has a model write it
    (`act=write`) or stops that (`act=stop`)."""
    kind = request.POST.get("kind") or request.GET.get("kind", Summary.Kind.ABOUT)
    query = str(context.get("query_string", ""))
    here = f"{request.path}?{query}{'&' if query else ''}"
    shown: dict[str, Any] = {
        **context,
        "kind": kind,
        "here_url": f"{here}{urlencode({'kind': kind})}",
        "kinds": [
            (Summary.Kind.ABOUT, _("What is this about?"), f"{here}kind={Summary.Kind.ABOUT}"),
            (Summary.Kind.SUMMARY, _("Summarize"), f"{here}kind={Summary.Kind.SUMMARY}"),
        ],
        "can_write": chat_model(workspace_id=text.workspace_id) is not None,
    }
    status = 200
    try:
        if request.method == "POST" and request.POST.get("act") == "stop":
            cancel_summary(text, kind)
        elif request.method == "POST":
            request_summary(text, kind, user=request.user)
        shown |= _summary_context(get_summary(text, kind), is_set="document" not in context)
    except InvalidInput as error:
        status, shown["error"] = (200 if not text.passages else error.status), str(error)
    except RagsiteError as error:
        status, shown["error"] = error.status, str(error)
    is_part = request.htmx  # type: ignore[attr-defined]  # django_htmx's middleware sets it
    if request.method == "POST" and not is_part and status == 200:
        return redirect(shown["here_url"])
    template = "rag/summary.html" if is_part else "rag/summary_page.html"
    # The script shows no answers with an error status.
    return no_store(render(request, template, shown, status=200 if is_part else status))


def _summary_context(row: Summary, *, is_set: bool) -> dict[str, Any]:
    sources = [_source(cited, is_set=is_set) for cited in row.citations]
    context = {"summary": row, "sources": sources}
    if not row.model:
        return context
    titles = {source["number"]: source["place"] for source in sources}
    return context | {
        "sources": list({source["number"]: source for source in sources}.values()),
        "html": render_answer(
            row.text,
            turn=row.pk,
            sources=titles,
            citations=[(cited["at"], cited["number"]) for cited in row.citations],
        ),
    }


def _source(cited: Mapping[str, Any], *, is_set: bool) -> dict[str, Any]:
    """A cited sentence and where it stands."""
    path = [heading for heading in cited["heading_path"] if heading != cited["title"]]
    title = cited["title"] or cited["document_key"]
    place = [*([title] if is_set or not path else []), " › ".join(path[-MAX_HEADINGS:])]
    address, mark, anchor = cited["url"].partition("#")
    return {
        "number": cited["number"],
        "quote": " ".join(strip_markdown(cited["quote"]).split()),
        "place": " · ".join(filter(None, [*place, cited["location"]])),
        "url": f"{address}&quote={cited['start']}-{cited['end']}{mark}{anchor}",
    }
