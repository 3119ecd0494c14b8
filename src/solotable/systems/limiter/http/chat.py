"""`POST /v1/chat/completions` for the demo: an echo with the shape of a language model's API, and its limits.

A word is a token. A call is charged one request and what it may cost at most, before it runs; afterwards the
lease is adjusted to what it did cost. Whom it is for is the `user` of the body.
"""

from __future__ import annotations

from typing import Annotated, Literal

from fastapi import APIRouter, Response
from pydantic import BaseModel, Field

from solotable.ids import new_id

from .http_errors import headers_of
from .identity import entity_of
from .routes.access import APPS, allow
from .routes.bodies import answered, sent
from .routes.dependencies import RESOURCE, LimiterDep

router = APIRouter(tags=["chat"])


class ChatMessage(BaseModel):
    """What somebody said."""

    model_config = sent({"role": "user", "content": "Say hello."})

    role: Literal["system", "user", "assistant"]
    content: Annotated[str, Field(max_length=20_000)]


class ChatBody(BaseModel):
    """A conversation that is to go on."""

    model_config = sent(
        {"model": "echo-1", "user": "user-1", "messages": [{"role": "user", "content": "Say hello."}]}
    )

    model: Annotated[str, Field(pattern=RESOURCE)] = "echo-1"
    user: Annotated[str, Field(min_length=1, max_length=200)]
    messages: Annotated[list[ChatMessage], Field(min_length=1, max_length=50)]
    max_tokens: Annotated[int, Field(ge=1, le=4000)] = 100


class ChatUsage(BaseModel):
    """What a call cost, in tokens."""

    model_config = answered({"prompt_tokens": 2, "completion_tokens": 2, "total_tokens": 4})

    prompt_tokens: int
    completion_tokens: int
    total_tokens: int


class ChatChoice(BaseModel):
    """An answer."""

    model_config = answered(
        {"index": 0, "message": {"role": "assistant", "content": "Say hello."}, "finish_reason": "stop"}
    )

    index: int
    message: ChatMessage
    finish_reason: Literal["stop", "length"]


class ChatOut(BaseModel):
    """What the model said, and what that cost."""

    model_config = answered(
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
async def complete(body: ChatBody, limiter: LimiterDep, response: Response) -> ChatOut:
    """Echo the last message; 429 with Retry-After when requests or tokens are used up."""
    prompt = sum(len(each.content.split()) for each in body.messages)
    estimate = {"rpm": 1, "tpm": prompt + body.max_tokens}
    async with limiter.acquire(entity_of(body.user), body.model, estimate) as lease:
        words = body.messages[-1].content.split()
        told = words[: body.max_tokens]
        total = prompt + len(told)
        lease.adjust(tpm=total - estimate["tpm"])
    response.headers.update(headers_of(lease.statuses))
    answer = ChatMessage(role="assistant", content=" ".join(told))
    finished: Literal["stop", "length"] = "stop" if told == words else "length"
    return ChatOut(
        id=f"chat-{new_id()}",
        model=body.model,
        choices=[ChatChoice(index=0, message=answer, finish_reason=finished)],
        usage=ChatUsage(prompt_tokens=prompt, completion_tokens=len(told), total_tokens=total),
    )
