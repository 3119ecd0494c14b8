"""The TTL cache: bounded in time and size, one load per key, nothing stored that was read before a change."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from solotable.cache import CacheStats, TTLCache
from tests.waiting import HANG_SECONDS, wait_until


class Source:
    """Counts its loads, and answers while `open` is set."""

    def __init__(self) -> None:
        self.loaded: list[str] = []
        self.open = asyncio.Event()
        self.open.set()
        self.now = 0.0

    def cache(self, max_size: int = 2, **options: Any) -> TTLCache[str, str]:
        return TTLCache(ttl_seconds=10, max_size=max_size, clock=lambda: self.now, **options)

    def of(self, key: str) -> Callable[[], Coroutine[Any, Any, str]]:
        async def load() -> str:
            self.loaded.append(key)
            number = len(self.loaded)
            await self.open.wait()
            if key == "bad":
                raise LookupError(key)
            return f"{key}{number}"

        return load


def run(work: Callable[[Source], Coroutine[Any, Any, None]]) -> None:
    async def main() -> None:
        await work(Source())

    asyncio.run(main())


def test_a_value_is_fresh_until_its_time_is_over() -> None:
    async def work(source: Source) -> None:
        cache = source.cache()
        assert await cache.load_async("a", source.of("a")) == "a1"
        source.now = 9.9
        assert await cache.load_async("a", source.of("a")) == "a1"
        assert cache.expires("a") == 10.0
        source.now = 10.0
        assert cache.get("a", "stale") == "stale"
        assert cache.expires("a") is None
        assert await cache.load_async("a", source.of("a")) == "a2"

    run(work)


def test_the_least_recently_used_is_evicted_and_what_is_too_large_is_not_stored() -> None:
    async def work(source: Source) -> None:
        cache = source.cache(4, size_of=len)
        for key in ("a", "b", "a", "c"):
            await cache.load_async(key, source.of(key))
        await cache.load_async("a", source.of("a"))
        assert source.loaded == ["a", "b", "c"]
        await cache.load_async("b", source.of("b"))
        assert source.loaded == ["a", "b", "c", "b"]
        for _ in range(2):
            await cache.load_async("heavy", source.of("heavy"))
        assert source.loaded[-2:] == ["heavy", "heavy"]

    run(work)


def test_concurrent_tasks_load_once_and_a_cancelled_one_takes_nothing_from_the_others() -> None:
    async def work(source: Source) -> None:
        cache = source.cache()
        source.open.clear()
        waiting = [asyncio.create_task(cache.load_async("a", source.of("a"))) for _ in range(3)]
        await asyncio.sleep(0)
        waiting[0].cancel()
        await asyncio.sleep(0)
        source.open.set()
        assert await asyncio.gather(*waiting[1:]) == ["a1", "a1"]
        assert source.loaded == ["a"]

    run(work)


def test_an_error_is_raised_to_those_that_waited_and_is_not_cached() -> None:
    async def work(source: Source) -> None:
        cache = source.cache()
        for _ in range(2):
            with pytest.raises(LookupError):
                await cache.load_async("bad", source.of("bad"))
        assert source.loaded == ["bad", "bad"]

    run(work)


@pytest.mark.parametrize("forget", ["forget", "forget_group", "forget_where", "clear"])
def test_what_was_read_before_a_forget_is_not_stored_after_it(forget: str) -> None:
    async def work(source: Source) -> None:
        cache = source.cache(group_of=lambda key: key)
        source.open.clear()
        early = asyncio.create_task(cache.load_async("a", source.of("a")))
        await asyncio.sleep(0)
        argument: list[Any] = {"clear": [], "forget_where": [lambda key: key == "a"]}.get(forget, ["a"])
        getattr(cache, forget)(*argument)
        late = asyncio.create_task(cache.load_async("a", source.of("a")))
        await asyncio.sleep(0)
        source.open.set()
        assert (await early, await late) == ("a1", "a2")
        assert await cache.load_async("a", source.of("a")) == "a2"
        await cache.load_async("b", source.of("b"))
        cache.forget("b")
        assert (cache.get("a"), cache.get("b")) == ("a2", None)

    run(work)


def test_a_value_of_an_older_generation_is_not_stored() -> None:
    cache = Source().cache()
    before = cache.generation
    cache.forget("anything")
    cache.put("a", "old", generation=before)
    assert cache.get("a") is None
    cache.put("a", "new", generation=cache.generation)
    assert cache.get("a") == "new"


def test_a_value_is_not_fresh_longer_than_what_it_was_made_of() -> None:
    source = Source()
    cache = source.cache()
    cache.put("a", "value", expires=3.0)
    source.now = 2.9
    assert cache.get("a") == "value"
    source.now = 3.0
    assert cache.get("a") is None


def test_the_time_to_live_may_depend_on_the_value() -> None:
    now = 0.0
    cache: TTLCache[str, str | None] = TTLCache(
        ttl_seconds=lambda value: 0 if value == "never" else 1 if value is None else 10,
        max_size=9,
        clock=lambda: now,
    )
    cache.put("unknown", None)
    cache.put("known", "value")
    cache.put("not stored", "never")
    assert cache.get("unknown", "default") is None
    now = 1.0
    assert (cache.get("unknown", "default"), cache.get("known")) == ("default", "value")
    assert len(cache) == 2


def test_a_group_is_forgotten_and_the_others_stay() -> None:
    cache: TTLCache[tuple[str, int], str] = TTLCache(
        ttl_seconds=10, max_size=3, group_of=lambda key: key[0], clock=lambda: 0.0
    )
    for number in range(3):
        cache.put(("a", number), "a")
    cache.put(("b", 0), "b")
    assert [cache.get(("a", number)) for number in range(3)] == [None, "a", "a"]
    cache.forget_group("a")
    cache.forget_group("none")
    assert (len(cache), cache.get(("b", 0))) == (1, "b")


def test_lookups_are_counted() -> None:
    cache = Source().cache()
    cache.get("a")
    cache.put("a", "value")
    cache.get("a")
    cache.get("a")
    assert cache.stats() == CacheStats(hits=2, misses=1, entries=1)


def test_concurrent_threads_load_once() -> None:
    cache = Source().cache()
    entered, loaded, go_ahead = threading.Semaphore(0), [], threading.Event()

    def load() -> str:
        loaded.append(threading.get_ident())
        assert go_ahead.wait(HANG_SECONDS)
        return "value"

    def ask() -> str:
        entered.release()
        return cache.load("a", load)

    with ThreadPoolExecutor(4) as pool:
        waiting = [pool.submit(ask) for _ in range(4)]
        for _ in range(4):
            assert entered.acquire(timeout=HANG_SECONDS)
        wait_until(lambda: loaded)
        go_ahead.set()
        assert [each.result(HANG_SECONDS) for each in waiting] == ["value"] * 4
    assert len(loaded) == 1
    assert cache.load("a", load) == "value"


@pytest.mark.parametrize("error", [LookupError("bad"), KeyboardInterrupt()])
def test_a_thread_that_waited_gets_the_error_but_not_an_interrupt(error: BaseException) -> None:
    cache = Source().cache()
    loading, go_ahead = threading.Event(), threading.Event()

    def fail() -> str:
        loading.set()
        assert go_ahead.wait(HANG_SECONDS)
        raise error

    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(cache.load, "a", fail)
        assert loading.wait(HANG_SECONDS)
        load = cache._loads["a"]
        second = pool.submit(cache.load, "a", lambda: "loaded")
        waiters = load.done._cond._waiters  # type: ignore[attr-defined]  # the event's own list
        wait_until(lambda: len(waiters) == 1)
        go_ahead.set()
        assert first.exception(HANG_SECONDS) is error
        if isinstance(error, Exception):
            assert second.exception(HANG_SECONDS) is error
        else:
            assert second.result(HANG_SECONDS) == "loaded"
    assert cache.load("a", lambda: "again") in ("again", "loaded")


_FORKED = """
import os, threading
from solotable.cache import TTLCache

cache, loading = TTLCache(ttl_seconds=10, max_size=2), threading.Event()

def load():
    loading.set()
    threading.Event().wait()

threading.Thread(target=cache.load, args=("a", load), daemon=True).start()
loading.wait()
child = os.fork()
if child == 0:
    os._exit(0 if cache.load("a", lambda: "child") == "child" else 1)
os._exit(os.waitpid(child, 0)[1] != 0)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this platform has no fork()")
def test_a_forked_child_does_not_wait_for_a_load_of_its_parent() -> None:
    done = subprocess.run(  # noqa: S603
        [sys.executable, "-c", _FORKED], capture_output=True, text=True, check=False, timeout=HANG_SECONDS
    )
    assert done.returncode == 0, done.stderr


def test_value_without_a_time_to_live_removes_the_stored_one() -> None:
    cache: TTLCache[str, float] = TTLCache(ttl_seconds=lambda value: value, max_size=2)
    cache.put("a", 5)
    cache.put("a", 0)
    assert cache.get("a") is None
    assert len(cache) == 0


def test_value_of_an_old_generation_leaves_the_stored_one() -> None:
    cache: TTLCache[str, float] = TTLCache(ttl_seconds=lambda value: value, max_size=2)
    read = cache.generation
    cache.forget("other")
    cache.put("a", 5)
    cache.put("a", 0, generation=read)
    assert cache.get("a") == 5


@pytest.mark.parametrize(
    "options",
    [{"max_size": -1}, {"max_size": float("nan")}, {"ttl_seconds": -1}, {"ttl_seconds": float("nan")}],
)
def test_negative_bounds_and_nan_are_rejected(options: dict[str, Any]) -> None:
    [name] = options
    with pytest.raises(ValueError, match=f"{name} is a number of at least 0"):
        TTLCache(**{"ttl_seconds": 1, "max_size": 1, **options})


def test_load_whose_value_cannot_be_measured_does_not_stay() -> None:
    async def work(source: Source) -> None:
        errors: list[Any] = []
        asyncio.get_running_loop().set_exception_handler(lambda _loop, context: errors.append(context))
        cache = source.cache(size_of=int)
        assert await cache.load_async("a", source.of("a")) == "a1"
        await asyncio.sleep(0)
        assert await cache.load_async("a", source.of("a")) == "a2"
        await asyncio.sleep(0)
        assert [type(context["exception"]) for context in errors] == [ValueError, ValueError]

    run(work)


def test_value_that_was_stored_since_the_lookup_is_not_loaded_again() -> None:
    class Late(TTLCache[str, str]):
        """Stores the value right after the first lookup."""

        def get(self, key: str, default: Any = None) -> Any:
            found = super().get(key, default)
            self.put(key, "stored")
            return found

    cache = Late(ttl_seconds=10, max_size=2)
    assert cache.load("a", lambda: "loaded again") == "stored"
