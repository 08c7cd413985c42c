"""Chat pages: list, read, continue, rename and delete conversations; what the question form
offers."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from django.conf import settings
from django.contrib import messages
from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.translation import gettext
from django.views.decorators.http import require_http_methods, require_safe

from accounts.current_workspace import request_workspace
from common.errors import NotFound, RagsiteError
from common.pagination import newest_first
from common.text import parse_integer
from common.web import login_required_page
from documents.models import Collection, Document
from inference.chat_models import chat_model, chat_models
from rag.context import RagContext
from rag.events import Metadata
from rag.forms import MAX_QUESTION_CHARACTERS, QuestionForm, TitleForm
from rag.models import Conversation, Message
from rag.services import conversations
from rag.services.chat import chat
from rag.services.pipelines import list_pipelines
from rag.services.questions import Question
from rag.views.turns import degraded_texts, failure_texts, turn_views
from search.presentation import example_questions, example_table_questions
from tables.plan_tokens import read_plan_token
from tables.wording import worded_reading

#: Script modules to preload in parallel.
SCRIPT_MODULES = [
    f"js/chat/{name}.js" for name in ("composer", "live", "sources", "stream", "turn")
]


def context_of_request(request: HttpRequest, *, collections: Sequence[str] = ()) -> RagContext:
    """The context of a page: the logged-in user in the current workspace."""
    workspace = request_workspace(request)
    return RagContext(user=request.user, workspace=workspace, collections=tuple(collections))


def collection_names(context: RagContext) -> dict[str, str]:
    """Names by slug of the collections the user sees."""
    rows = Collection.objects.visible_to(context.user).filter(workspace=context.workspace)
    return dict(rows.order_by("name").values_list("slug", "name"))


def chosen_collections(params: QueryDict, names: Mapping[str, str]) -> list[str]:
    """The collections ticked in the request that exist."""
    return [slug for slug in dict.fromkeys(params.getlist("collection")) if slug in names]


def composer_context(request: HttpRequest, conversation: Conversation | None) -> dict[str, Any]:
    """Template context of the question form: the choices, and what is selected by the request, else
    as in the last answer."""
    context = context_of_request(request)
    names = collection_names(context)
    given = request.POST if request.method == "POST" else request.GET
    chosen = chosen_collections(given, names)
    if conversation and not chosen and request.method != "POST":
        chosen = [slug for slug in conversation.collections if slug in names]
    if len(chosen) == len(names):
        chosen = []
    last = None
    if conversation:
        answers = conversation.messages.filter(role=Message.Role.ASSISTANT)
        last = answers.order_by("-pk").first()
    if request.method == "POST":
        uses_memory = request.POST.get("memory") == "1"
    else:
        uses_memory = settings.MEMORY_INJECTION if last is None else last.memory is not None
    label = names[chosen[0]] if chosen else gettext("All collections")
    if len(chosen) > 1:
        label = gettext("{name} and {number} more").format(name=label, number=len(chosen) - 1)
    return {
        "names": json.dumps(names),
        "degraded": json.dumps(degraded_texts()),
        "failures": json.dumps(failure_texts()),
        "modules": [*SCRIPT_MODULES, "js/chat/copying.js"],
        "collections": [{"slug": slug, "name": name} for slug, name in names.items()],
        "chosen": chosen,
        "chosen_label": label,
        "pipelines": list_pipelines(context=context),
        "pipeline_chosen": given.get("pipeline") or (conversation.pipeline if conversation else ""),
        "models": chat_models(workspace_id=context.workspace.pk),
        "model_chosen": given.get("model") or (last.model if last else ""),
        "uses_memory": uses_memory,
        "is_extractive": chat_model(workspace_id=context.workspace.pk) is None,
        "connect_url": reverse("models"),
        "api_url": reverse("api:chat"),
    }


def ask_and_wait(
    values: Mapping[str, Any],
    *,
    context: RagContext,
    conversation: Conversation | None,
    replaces: int | None = None,
) -> Message:
    """Ask and wait for the answer, which may have failed. It replaces the answer `replaces`. Raises
    RagsiteError if the question could not be asked at all."""
    if conversation and not context.collections:
        # Named explicitly, or the conversation's last collections would be used.
        context = replace(context, collections=tuple(collection_names(context)))
    pipeline = "" if values["reading"] else values["pipeline"]
    question = Question(
        message=values["question"],
        pipeline=pipeline,
        reading=values["reading"],
        model="" if pipeline else values["model"],
        memory=None if pipeline else values["memory"],
    )
    events = chat(
        question,
        context=context,
        conversation=conversation.pk if conversation else None,
        replaces=replaces,
    )
    metadata_events = [event for event in events if isinstance(event, Metadata)]
    return Message.objects.visible_to(context.user).get(pk=metadata_events[0].message or 0)


#: Questions on a page; the latest are shown first.
TURNS_PER_PAGE = 20
CONVERSATIONS_PER_PAGE = 20


@require_http_methods(["GET", "HEAD", "POST"])
@login_required_page
def index(request: HttpRequest) -> HttpResponse:
    """The form for a new question, which may come in the URL, and recent conversations."""
    if request.method == "POST":
        return _ask(request, None)
    return _page(request, None)


@require_http_methods(["GET", "HEAD", "POST"])
@login_required_page
def detail(request: HttpRequest, pk: int) -> HttpResponse:
    """A conversation; a POST asks the next question."""
    conversation = _conversation(request, pk)
    if request.method == "POST":
        return _ask(request, conversation)
    return _page(request, conversation)


@require_safe
@login_required_page
def turn(request: HttpRequest, pk: int, message: int) -> HttpResponse:
    """One answer with its question, as a fragment for the page that streamed it."""
    conversation = _conversation(request, pk)
    rows = list(conversation.messages.filter(pk__lte=message).order_by("-pk")[:2])[::-1]
    if not rows or rows[-1].pk != message or rows[-1].role != Message.Role.ASSISTANT:
        raise NotFound(gettext("This answer is not part of this conversation."))
    last = conversation.messages.order_by("-pk").values_list("pk", flat=True).first()
    turns = _turns(request, conversation, rows, has_last=last == message)
    return no_store(render(request, "rag/part.html", {"turn": turns[-1]}))


@require_http_methods(["GET", "HEAD", "POST"])
@login_required_page
def rename(request: HttpRequest, pk: int) -> HttpResponse:
    """Show and process the rename form."""
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
@login_required_page
def delete(request: HttpRequest, pk: int) -> HttpResponse:
    """Show what is deleted; delete on POST."""
    conversation = _conversation(request, pk)
    if request.method == "POST":
        conversations.delete_conversation(conversation=conversation)
        messages.success(request, gettext("“{title}” is deleted.").format(title=conversation.title))
        return redirect("chat")
    context = {
        "conversation": conversation,
        "questions": conversation.messages.filter(role=Message.Role.USER).count(),
        "runs": conversation.messages.exclude(trace=None).count(),
    }
    return no_store(render(request, "rag/conversation_delete.html", context))


@require_safe
@login_required_page
def connect(request: HttpRequest) -> HttpResponse:
    """Former address of the page of models."""
    return redirect("models", permanent=True)


def _ask(request: HttpRequest, conversation: Conversation | None) -> HttpResponse:
    """Without JavaScript: wait for the whole answer, then show the page with it."""
    again = parse_integer(request.POST.get("again", ""))
    earlier_question = ""
    if conversation and again is not None:
        questions = conversation.messages.filter(role=Message.Role.USER, pk__lte=again)
        texts = questions.order_by("-pk").values_list("content", flat=True)
        earlier_question = texts.first() or ""
    given = request.POST.copy()
    if earlier_question:
        given["question"] = earlier_question
    try:
        if reading := given.get("reading"):
            given["question"] = worded_reading(read_plan_token(reading))
        elif earlier_question and conversation:
            given["reading"] = _chosen_reading(conversation, again or 0)
    except RagsiteError as error:
        return _page(request, conversation, problem=str(error), status=error.status)
    form = QuestionForm(given)
    if not form.is_valid():
        return _page(request, conversation, problem=gettext("Write a question first."), status=400)
    try:
        names = collection_names(context_of_request(request))
        context = context_of_request(request, collections=chosen_collections(request.POST, names))
        answer = ask_and_wait(
            form.cleaned_data,
            context=context,
            conversation=conversation,
            replaces=again if earlier_question else None,
        )
    except RagsiteError as error:
        return _page(request, conversation, problem=str(error), status=error.status)
    return redirect(f"{reverse('conversation', args=[answer.conversation_id])}#turn-{answer.pk}")


def _chosen_reading(conversation: Conversation, answer: int) -> str:
    """The reading that an answer computed, if its user chose it; else ""."""
    stored = conversation.messages.filter(pk=answer).values_list("tables", flat=True).first()
    computed = (stored or {}).get("computed") or {}
    return str(computed["reading"]) if computed.get("is_chosen") else ""


def _page(
    request: HttpRequest,
    conversation: Conversation | None,
    *,
    problem: str = "",
    status: int = 200,
) -> HttpResponse:
    context = composer_context(request, conversation) | {
        "conversation": conversation,
        "problem": problem,
        "question": request.POST.get("question", "") or request.GET.get("q", ""),
        "asks": bool(request.GET.get("q")),
        "here_url": request.path,
        "max_question": MAX_QUESTION_CHARACTERS,
    }
    if conversation:
        context |= _thread(request, conversation)
    else:
        of = context_of_request(request)
        own = Conversation.objects.visible_to(of.user).filter(workspace=of.workspace)
        found = newest_first(own, request.GET, size=CONVERSATIONS_PER_PAGE, field="updated_at")
        documents = Document.objects.visible_to(of.user).filter(
            workspace=of.workspace, status=Document.Status.READY
        )
        context |= {
            "former": found.rows,
            "examples": [] if found.rows else example_questions(documents.current()),
            "table_examples": [] if found.rows else example_table_questions(documents.current()),
            "newer_url": f"?after={found.newer}" if found.newer else "",
            "older_url": f"?before={found.older}" if found.older else "",
        }
    return no_store(render(request, "rag/chat.html", context, status=status))


def _thread(request: HttpRequest, conversation: Conversation) -> dict[str, Any]:
    """The latest questions with their answers, or those around `?before=` and `?after=`."""
    questions = conversation.messages.filter(role=Message.Role.USER)
    found = newest_first(questions, request.GET, size=TURNS_PER_PAGE)
    if not found.rows:
        return {"turns": []}
    rows = conversation.messages.filter(pk__gte=found.rows[-1].pk).order_by("pk")
    if found.newer:
        following = questions.filter(pk__gt=found.rows[0].pk).order_by("pk").first()
        rows = rows.filter(pk__lt=following.pk) if following else rows
    return {
        "turns": _turns(request, conversation, list(rows), has_last=not found.newer),
        "earlier_url": f"?before={found.older}" if found.older else "",
        "later_url": f"?after={found.newer}" if found.newer else "",
    }


def _turns(
    request: HttpRequest, conversation: Conversation, rows: list[Message], *, has_last: bool
) -> list[Any]:
    context = context_of_request(request)
    return turn_views(
        conversations.visible_messages(rows=rows, context=context),
        collections=collection_names(context),
        selected=conversation.collections,
        has_last=has_last,
    )


def _conversation(request: HttpRequest, pk: int) -> Conversation:
    return conversations.get_conversation(context=context_of_request(request), id=pk)


def no_store(response: HttpResponse) -> HttpResponse:
    """Forbid caching: text of a deleted document must not come back from a browser's cache."""
    response["Cache-Control"] = "private, no-store"
    return response
