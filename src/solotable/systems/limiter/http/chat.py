"""`POST /v1/chat/completions` for the demo: an echo with the API of a language model, and its limits.

A word is a token. A call is charged one request and its highest possible cost before it runs; then the lease
is adjusted to the actual cost. The limited entity is the `user` of the body.
"""

from __future__ import annotations

from typing import Annotated, Literal

from fastapi import APIRouter, Response
from pydantic import BaseModel, Field

from solotable.ids import new_id

from .identity import entity_of
from .limit_responses import headers_of
from .routes.access import APPS, allow
from .routes.dependencies import RESOURCE, LimiterDep
from .routes.limit_bodies import request, response

router = APIRouter(tags=["chat"])


class ChatMessage(BaseModel):
    """One message."""

    model_config = request({"role": "user", "content": "Say hello."})

    role: Literal["system", "user", "assistant"]
    content: Annotated[str, Field(max_length=20_000)]


class ChatBody(BaseModel):
    """A conversation to complete."""

    model_config = request(
        {"model": "echo-1", "user": "user-1", "messages": [{"role": "user", "content": "Say hello."}]}
    )

    model: Annotated[str, Field(pattern=RESOURCE)] = "echo-1"
    user: Annotated[str, Field(min_length=1, max_length=200)]
    messages: Annotated[list[ChatMessage], Field(min_length=1, max_length=50)]
    max_tokens: Annotated[int, Field(ge=1, le=4000)] = 100


class ChatUsage(BaseModel):
    """The cost of a call in tokens."""

    model_config = response({"prompt_tokens": 2, "completion_tokens": 2, "total_tokens": 4})

    prompt_tokens: int
    completion_tokens: int
    total_tokens: int


class ChatChoice(BaseModel):
    """A completion."""

    model_config = response(
        {"index": 0, "message": {"role": "assistant", "content": "Say hello."}, "finish_reason": "stop"}
    )

    index: int
    message: ChatMessage
    finish_reason: Literal["stop", "length"]


class ChatOut(BaseModel):
    """The completion, and its cost."""

    model_config = response(
        {
            "id": "chat-1",
            "object": "chat.completion",
            "model": "echo-1",
            "choices": [],
            "usage": {"prompt_tokens": 2, "completion_tokens": 2, "total_tokens": 4},
        }
    )

    id: str
    object: Literal["chat.completion"] = "chat.completion"
    model: str
    choices: list[ChatChoice]
    usage: ChatUsage


@router.post("/v1/chat/completions", **allow(*APPS))
async def complete(body: ChatBody, limiter: LimiterDep, http_response: Response) -> ChatOut:
    """Echo the last message; 429 with Retry-After when requests or tokens are used up."""
    prompt = sum(len(each.content.split()) for each in body.messages)
    estimate = {"rpm": 1, "tpm": prompt + body.max_tokens}
    async with limiter.acquire(entity_of(body.user), body.model, estimate) as lease:
        words = body.messages[-1].content.split()
        echoed = words[: body.max_tokens]
        total = prompt + len(echoed)
        lease.adjust(tpm=total - estimate["tpm"])
    http_response.headers.update(headers_of(lease.statuses))
    answer = ChatMessage(role="assistant", content=" ".join(echoed))
    finished: Literal["stop", "length"] = "stop" if echoed == words else "length"
    return ChatOut(
        id=f"chat-{new_id()}",
        model=body.model,
        choices=[ChatChoice(index=0, message=answer, finish_reason=finished)],
        usage=ChatUsage(prompt_tokens=prompt, completion_tokens=len(echoed), total_tokens=total),
    )
