"""A rate-limited gateway to a language model: requests and tokens per minute, adjusted after each call.

Run it: python examples/llm_gateway.py. It needs no account, server or model.
"""

from __future__ import annotations

import asyncio
from typing import Annotated

import httpx2
from fastapi import Depends, FastAPI, Request
from pydantic import BaseModel

from solotable.systems.limiter import AsyncLease, AsyncLimiter, Limit
from solotable.systems.limiter.http.dependency import limit_problems, rate_limited


def model(prompt: str) -> str:
    """Stand in for a language model; a word is a token."""
    if prompt == "crash":
        raise RuntimeError("the model failed")
    return " ".join(reversed(prompt.split()))


class Prompt(BaseModel):
    """The body of a request."""

    text: str


def limiter_of(request: Request) -> AsyncLimiter:
    """Return the gateway's limiter."""
    found: AsyncLimiter = request.app.state.limiter
    return found


def user_of(request: Request) -> str:
    """Return the user of a request; a real gateway verifies it."""
    return request.headers.get("x-user", "anonymous")


#: The cost of a call is not known in advance: charge 50 tokens, and adjust them afterwards.
Limited = Annotated[
    AsyncLease,
    Depends(rate_limited(limiter_of, entity=user_of, resource="gpt-4", consume={"rpm": 1, "tpm": 50})),
]


def gateway(limiter: AsyncLimiter) -> FastAPI:
    """Return the gateway."""
    app = FastAPI()
    app.state.limiter = limiter
    limit_problems(app)

    @app.post("/v1/complete")
    async def complete(prompt: Prompt, lease: Limited) -> dict[str, str]:
        answer = model(prompt.text)
        used = len(prompt.text.split()) + len(answer.split())
        lease.adjust(tpm=used - 50)
        return {"answer": answer}

    return app


async def main() -> None:
    """Send some requests through the gateway."""
    limiter = AsyncLimiter.open("sqlite://")
    await limiter.create_entity("org-1")
    for user in ("ann", "ben"):
        await limiter.create_entity(user, parent="org-1", cascade=True)
    await limiter.set_limits([Limit.per_minute("rpm", 4), Limit.per_minute("tpm", 1_000)])
    await limiter.set_limits([Limit.per_minute("rpm", 6), Limit.per_minute("tpm", 1_500)], entity="org-1")

    transport = httpx2.ASGITransport(app=gateway(limiter), raise_app_exceptions=False)
    async with httpx2.AsyncClient(transport=transport, base_url="http://gateway.example") as http:

        async def ask(user: str, text: str) -> httpx2.Response:
            answer = await http.post("/v1/complete", headers={"x-user": user}, json={"text": text})
            left = answer.headers.get("x-ratelimit-remaining-rpm", "-")
            print(f"{user}: {text!r:<24} {answer.status_code}, {left} requests left")
            return answer

        await ask("ann", "how are you today")
        print(f"  charged 50 tokens, used 8: {await limiter.available('ann', 'gpt-4')}")
        await ask("ann", "crash")
        print(f"  it failed, so everything was given back: {await limiter.available('ann', 'gpt-4')}")
        for _ in range(3):
            await ask("ann", "again")
        refused = await ask("ann", "once more")
        print(f"  Retry-After: {refused.headers['retry-after']} s")
        for _ in range(3):
            refused = await ask("ben", "hello")
        exceeded = {each["entity"] for each in refused.json()["limits"] if each["exceeded"]}
        print(f"  refused by {exceeded}: its limit for both users is 6 requests")
    await limiter.close()


if __name__ == "__main__":
    asyncio.run(main())
