"""Answers that are remembered: for a while, so many, and never one that was asked before a change."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from solotable.web.ttl_cache import Kept


class Source:
    """Counts how often it was asked, and answers when it is let."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.let = asyncio.Event()
        self.let.set()
        self.now = 0.0

    def of(self, key: str) -> Callable[[], Coroutine[Any, Any, str]]:
        async def ask() -> str:
            self.asked.append(key)
            number = len(self.asked)
            await self.let.wait()
            if key == "bad":
                raise LookupError(key)
            return f"{key}{number}"

        return ask


def run(work: Callable[[Source], Coroutine[Any, Any, None]]) -> None:
    async def main() -> None:
        await work(Source())

    asyncio.run(main())


def test_an_answer_is_remembered_until_its_time_is_over() -> None:
    async def work(source: Source) -> None:
        kept: Kept[str, str] = Kept(ttl_seconds=10, most=2, clock=lambda: source.now)
        assert await kept.get("a", source.of("a")) == "a1"
        source.now = 9.9
        assert await kept.get("a", source.of("a")) == "a1"
        source.now = 10.0
        assert await kept.get("a", source.of("a")) == "a2"

    run(work)


def test_what_was_asked_for_longest_ago_goes_first_and_what_is_too_heavy_never_stays() -> None:
    async def work(source: Source) -> None:
        kept: Kept[str, str] = Kept(ttl_seconds=10, most=4, weigh=len, clock=lambda: source.now)
        for key in ("a", "b", "a", "c"):
            await kept.get(key, source.of(key))
        assert source.asked == ["a", "b", "c"]
        await kept.get("a", source.of("a"))
        assert source.asked == ["a", "b", "c"]
        await kept.get("b", source.of("b"))
        assert source.asked == ["a", "b", "c", "b"]
        for _ in range(2):
            await kept.get("heavy", source.of("heavy"))
        assert source.asked[-2:] == ["heavy", "heavy"]

    run(work)


def test_a_crowd_asks_once_and_one_that_gives_up_takes_nothing_from_it() -> None:
    async def work(source: Source) -> None:
        kept: Kept[str, str] = Kept(ttl_seconds=10, most=2)
        source.let.clear()
        waiting = [asyncio.create_task(kept.get("a", source.of("a"))) for _ in range(3)]
        await asyncio.sleep(0)
        waiting[0].cancel()
        await asyncio.sleep(0)
        source.let.set()
        assert await asyncio.gather(*waiting[1:]) == ["a1", "a1"]
        assert source.asked == ["a"]

    run(work)


def test_an_error_is_for_those_who_waited_and_is_not_remembered() -> None:
    async def work(source: Source) -> None:
        kept: Kept[str, str] = Kept(ttl_seconds=10, most=2)
        for _ in range(2):
            with pytest.raises(LookupError):
                await kept.get("bad", source.of("bad"))
        assert source.asked == ["bad", "bad"]

    run(work)


def test_what_was_asked_before_a_change_is_not_remembered_after_it() -> None:
    async def work(source: Source) -> None:
        kept: Kept[str, str] = Kept(ttl_seconds=10, most=2)
        source.let.clear()
        early = asyncio.create_task(kept.get("a", source.of("a")))
        await asyncio.sleep(0)
        kept.forget(lambda key: key == "a")
        late = asyncio.create_task(kept.get("a", source.of("a")))
        await asyncio.sleep(0)
        source.let.set()
        assert (await early, await late) == ("a1", "a2")
        assert await kept.get("a", source.of("a")) == "a2"
        await kept.get("b", source.of("b"))
        kept.forget(lambda key: key == "b")
        assert await kept.get("a", source.of("a")) == "a2"

    run(work)
