"""Chat: conversations, listed, read, continued, renamed, deleted."""

from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_http_methods, require_safe

from common.errors import NotFound, RagsiteError
from common.web import page
from documents.models import Document
from documents.views.paging import page_by_id
from memory.views.paging import page_by_time
from rag.context import RagContext
from rag.forms import MAX_QUESTION, QuestionForm, TitleForm
from rag.models import Conversation, Message
from rag.services import conversations
from rag.views.asking import (
    answered,
    choices,
    chosen_collections,
    collection_names,
    context_of,
)
from rag.views.turns import shown_turns
from search.examples import examples_for

#: Questions on a page; the latest are shown first.
TURNS = 20
LISTED = 20


@require_http_methods(["GET", "HEAD", "POST"])
@page
def index(request: HttpRequest) -> HttpResponse:
    """The box for a new question, which may come with the address, and former conversations."""
    if request.method == "POST":
        return _ask(request, None)
    return _page(request, None)


@require_http_methods(["GET", "HEAD", "POST"])
@page
def detail(request: HttpRequest, pk: int) -> HttpResponse:
    """A conversation; a POST asks on."""
    conversation = _conversation(request, pk)
    if request.method == "POST":
        return _ask(request, conversation)
    return _page(request, conversation)


@require_safe
@page
def turn(request: HttpRequest, pk: int, message: int) -> HttpResponse:
    """One answer with its question, as a part for the page that watched it being made."""
    conversation = _conversation(request, pk)
    rows = list(conversation.messages.filter(pk__lte=message).order_by("-pk")[:2])[::-1]
    if not rows or rows[-1].pk != message or rows[-1].role != Message.Role.ASSISTANT:
        raise NotFound("There is no such answer in this conversation.")
    last = conversation.messages.order_by("-pk").values_list("pk", flat=True).first()
    turns = _turns(request, conversation, rows, has_last=last == message)
    return _private(render(request, "rag/part.html", {"turn": turns[-1]}))


@require_http_methods(["GET", "HEAD", "POST"])
@page
def rename(request: HttpRequest, pk: int) -> HttpResponse:
    """Another title."""
    conversation = _conversation(request, pk)
    form = TitleForm(
        request.POST if request.method == "POST" else None, initial={"title": conversation.title}
    )
    if form.is_valid():
        title = form.cleaned_data["title"]
        conversations.rename_conversation(conversation=conversation, title=title)
        return redirect("conversation", pk=pk)
    context = {"conversation": conversation, "form": form}
    status = 400 if form.errors else 200
    return render(request, "rag/conversation_rename.html", context, status=status)


@require_http_methods(["GET", "HEAD", "POST"])
@page
def delete(request: HttpRequest, pk: int) -> HttpResponse:
    """Show what goes; delete on POST."""
    conversation = _conversation(request, pk)
    if request.method == "POST":
        conversations.delete_conversation(conversation=conversation)
        messages.success(request, f"“{conversation.title}” is deleted.")
        return redirect("chat")
    context = {
        "conversation": conversation,
        "questions": conversation.messages.filter(role=Message.Role.USER).count(),
        "runs": conversation.messages.exclude(trace=None).count(),
    }
    return _private(render(request, "rag/conversation_delete.html", context))


@require_safe
@page
def connect(request: HttpRequest) -> HttpResponse:
    """How a language model is connected, for whoever runs the site."""
    return render(request, "rag/connect.html")


def _ask(request: HttpRequest, conversation: Conversation | None) -> HttpResponse:
    """Without JavaScript: the whole answer, then the page with it."""
    again = request.POST.get("again", "")
    asked = _asked_before(conversation, again) if conversation and again else ""
    given = request.POST.copy()
    if asked:
        given["question"] = asked
    form = QuestionForm(given)
    if not form.is_valid():
        return _page(request, conversation, problem="Write a question first.", status=400)
    try:
        context = context_of(request, collections=_collections(request))
        answer = answered(
            form.cleaned_data,
            context=context,
            conversation=conversation,
            replaces=int(again) if asked else None,
        )
    except RagsiteError as error:
        return _page(request, conversation, problem=str(error), status=error.status)
    return redirect(f"{reverse('conversation', args=[answer.conversation_id])}#turn-{answer.pk}")


def _asked_before(conversation: Conversation, answer: str) -> str:
    """The question that was answered so."""
    if not (answer.isascii() and answer.isdigit() and len(answer) < 19):
        return ""
    questions = conversation.messages.filter(role=Message.Role.USER, pk__lte=int(answer))
    return questions.order_by("-pk").values_list("content", flat=True).first() or ""


def _collections(request: HttpRequest) -> list[str]:
    names = collection_names(context_of(request))
    return chosen_collections(request.POST, names)


def _page(
    request: HttpRequest,
    conversation: Conversation | None,
    *,
    problem: str = "",
    status: int = 200,
) -> HttpResponse:
    context = choices(request, conversation) | {
        "conversation": conversation,
        "problem": problem,
        "question": request.POST.get("question", "") or request.GET.get("q", ""),
        "asks": bool(request.GET.get("q")),
        "here_url": request.path,
        "max_question": MAX_QUESTION,
    }
    context |= _thread(request, conversation) if conversation else _former(request)
    return _private(render(request, "rag/chat.html", context, status=status))


def _former(request: HttpRequest) -> dict[str, Any]:
    context = context_of(request)
    own = Conversation.objects.visible_to(context.user).filter(workspace=context.workspace)
    found = page_by_time(own, request.GET, size=LISTED, field="updated_at")
    return {
        "former": found.rows,
        "examples": [] if found.rows else _examples(context),
        "newer_url": f"?after={found.newer}" if found.newer else "",
        "older_url": f"?before={found.older}" if found.older else "",
    }


def _examples(context: RagContext) -> list[str]:
    """Questions to begin with, for who has not asked anything yet."""
    documents = Document.objects.visible_to(context.user).filter(workspace=context.workspace)
    return examples_for(documents.filter(status=Document.Status.READY).current())


def _thread(request: HttpRequest, conversation: Conversation) -> dict[str, Any]:
    """The last questions with their answers, or those around `?before=` and `?after=`."""
    questions = conversation.messages.filter(role=Message.Role.USER)
    found = page_by_id(questions, request.GET, size=TURNS)
    if not found.rows:
        return {"turns": []}
    rows = conversation.messages.filter(pk__gte=found.rows[-1].pk).order_by("pk")
    if found.newer:
        following = questions.filter(pk__gt=found.rows[0].pk).order_by("pk").first()
        rows = rows.filter(pk__lt=following.pk) if following else rows
    return {
        "turns": _turns(request, conversation, list(rows), has_last=not found.newer),
        "earlier_url": f"?{found.older}" if found.older else "",
        "later_url": f"?{found.newer}" if found.newer else "",
    }


def _turns(
    request: HttpRequest, conversation: Conversation, rows: list[Message], *, has_last: bool
) -> list[Any]:
    context = context_of(request)
    return shown_turns(
        conversations.shown_messages(rows=rows, context=context),
        collections=collection_names(context),
        asked=conversation.collections,
        has_last=has_last,
    )


def _conversation(request: HttpRequest, pk: int) -> Conversation:
    return conversations.get_conversation(context=context_of(request), id=pk)


def _private(response: HttpResponse) -> HttpResponse:
    """A browser keeps no copy: what quotes a deleted document must not come back."""
    response["Cache-Control"] = "private, no-store"
    return response
