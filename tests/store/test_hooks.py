"""Lifecycle hooks: what they may change, when they run, and how often."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Callable, Iterator
from typing import Annotated, Any, Self

import pytest
from pydantic import Field

from solotable import ANY, Database, Entity, Key, Table, Version, flow, hook
from solotable._protocol.requests import PutItem, TransactWriteItems
from solotable.errors import AlreadyExists, ConditionFailed, DataError, DeclarationError, TransactionCancelled
from solotable.testing import seed

from .opening import Opening

wiki = Table("Wiki")
calls: list[str] = []


class Page(Entity, table=wiki):
    key = Key("PAGE#{page_id}", "PAGE")
    page_id: str
    title: str
    slug: str = ""
    tags: list[str] = Field(default_factory=list)
    version: Annotated[int, Version()] = 0

    @hook("before_create", "before_put")
    def _fill_slug(self) -> None:
        calls.append("before")
        self.slug = self.title.lower()
        self.tags.append("seen")
        if not self.title:
            raise ValueError("a page needs a title")

    @hook("before_update")
    @classmethod
    def _follow(cls, changes: dict[str, Any]) -> None:
        calls.append("before_update")
        if "title" in changes["set"]:
            changes["set"]["slug"] = changes["set"]["title"].lower()

    @hook("before_delete")
    @classmethod
    def _keep_home(cls, key: dict[str, Any]) -> None:
        calls.append(f"before_delete {key}")
        if key["page_id"] == "home":
            raise PermissionError("the home page stays")

    @hook("after_create", "after_put")
    def _after(self) -> None:
        calls.append(f"after {self.title} v{self.version}")
        if self.title == "Broken":
            raise RuntimeError("the index is down")


class Note(Entity, table=wiki):
    key = Key("NOTE#{note_id}", "NOTE")
    note_id: str
    text: str = ""

    @hook("after_update", "after_delete")
    def _after(self) -> None:
        calls.append(f"after {self.text}")

    @hook("before_put")
    def _other(self) -> Self:
        return self.model_copy(update={"text": self.text + "!"})


@pytest.fixture(autouse=True)
def _clear() -> Iterator[None]:
    calls.clear()
    yield
    calls.clear()


@pytest.fixture
def store(opening: Opening) -> Database:
    return opening(wiki)


def test_a_hook_before_a_write_changes_what_is_stored_and_not_the_object_of_the_caller(
    store: Database,
) -> None:
    mine = Page(page_id="p", title="Hello")
    stored = store.create(mine)
    assert (stored.slug, stored.tags, stored.version) == ("hello", ["seen"], 1)
    assert (mine.slug, mine.tags) == ("", [])
    assert store.get(Page, page_id="p") == stored
    assert store.put(Note(note_id="n", text="a")).text == "a!"
    assert calls == ["before", "after Hello v1"]


def test_a_hook_before_a_write_rejects_it(store: Database) -> None:
    with pytest.raises(ValueError, match="a page needs a title"):
        store.put(Page(page_id="p", title=""))
    assert store.get(Page, page_id="p") is None
    store.put(Page(page_id="home", title="Home"))
    with pytest.raises(PermissionError):
        store.delete(Page, page_id="home", version=ANY)
    assert store.get(Page, page_id="home") is not None


def test_hooks_of_updates_see_the_changes_and_the_stored_result(store: Database) -> None:
    store.put(Page(page_id="p", title="A"))
    changes = {"title": "B"}
    assert store.update(Page, page_id="p", version=ANY, set=changes).slug == "b"
    assert changes == {"title": "B"}
    assert store.upsert(Page, page_id="q", set={"title": "C"}).slug == "c"
    store.put(Note(note_id="n", text="a"))
    store.update(Note, note_id="n", set={"text": "b"})
    store.delete(Note, note_id="n")
    assert store.delete(Note, note_id="n") is None
    assert calls == ["before", "after A v1", "before_update", "before_update", "after b", "after b"]


def test_a_hook_after_a_write_cannot_undo_it(store: Database) -> None:
    with pytest.raises(RuntimeError, match="the index is down"):
        store.put(Page(page_id="p", title="Broken"))
    assert store.require(Page, page_id="p").title == "Broken"


def test_no_hook_runs_after_a_write_that_failed(store: Database) -> None:
    store.create(Page(page_id="p", title="A"))
    with pytest.raises(AlreadyExists):
        store.create(Page(page_id="p", title="B"))
    assert calls == ["before", "after A v1", "before"]


def test_modify_runs_hooks_before_each_attempt_and_after_the_last(store: Database, opening: Opening) -> None:
    store.put(Page(page_id="p", title="A"))
    calls.clear()
    beside = opening.beside(wiki)

    def interfere() -> None:
        before = list(calls)
        beside.update(Page, page_id="p", version=ANY, add={}, set={"tags": ["x"]})
        calls[:] = before

    opening.spy.once(PutItem, interfere)
    store.modify(Page, lambda page: page.model_copy(update={"title": "B"}), page_id="p")
    assert calls == ["before", "before", "after B v3"]
    assert store.modify(Page, lambda _: None, page_id="p").title == "B"
    assert len(calls) == 3


def test_modify_does_not_repeat_a_failed_condition_of_a_hook(opening: Opening) -> None:
    table = Table("Quotas")

    class Job(Entity, table=table):
        key = Key("JOB#{job_id}", "JOB")
        job_id: str
        left: int = 0
        version: Annotated[int, Version()] = 0

        @hook("before_put")
        def _take_quota(self) -> None:
            calls.append("take")
            beside.update(Job, job_id="q", version=ANY, add={"left": -1}, where=lambda job: job.left > 0)

    store, beside = opening(table), opening.beside(table)
    store.create(Job(job_id="q"))
    store.create(Job(job_id="j"))
    with pytest.raises(ConditionFailed, match="left > 0 was required"):
        store.modify(Job, lambda job: job.model_copy(update={"left": 1}), job_id="j")
    assert calls == ["take"]


class Tagged(Entity, table=wiki):
    key = Key("TAGGED#{tagged_id}", "TAGGED")
    tagged_id: str
    tags: list[str] = Field(default_factory=list)

    @hook("before_update")
    @classmethod
    def _audit(cls, changes: dict[str, Any]) -> dict[str, Any] | None:
        if "wrong" in changes["append"].get("tags", ()):
            changes["sett"] = {}
        changes["append"]["tags"].append("audit")
        return changes if "returned" in changes["append"]["tags"] else None

    @hook("before_delete")
    @classmethod
    def _keep(cls, key: dict[str, Any]) -> bool:
        return False

    @hook("after_put", "after_create", "after_update")
    def _after(self) -> None:
        self.tags.append("after")


def test_hooks_change_neither_the_lists_of_the_caller_nor_the_result_of_the_call(store: Database) -> None:
    mine = Tagged(tagged_id="t")
    assert store.put(mine).tags == []
    new = ["a"]
    assert store.update(Tagged, tagged_id="t", append={"tags": new}).tags == ["a", "audit"]
    assert new == ["a"]
    with store.transaction() as tx:
        added = tx.put(Tagged(tagged_id="u", tags=["b"]))
    assert (mine.tags, added.tags) == ([], ["b"])


def test_hooks_that_answer_or_change_what_has_no_effect_are_rejected(store: Database) -> None:
    store.put(Tagged(tagged_id="t"))
    with pytest.raises(DataError, match=r"Tagged\._audit: a hook before update got .*, and added 'sett'"):
        store.update(Tagged, tagged_id="t", append={"tags": ["wrong"]})
    with pytest.raises(DataError, match=r"Tagged\._audit: this hook returns None, got dict; change the ch"):
        store.update(Tagged, tagged_id="t", append={"tags": ["returned"]})
    with pytest.raises(DataError, match=r"Tagged\._keep: this hook returns None, got bool; raise an error"):
        store.delete(Tagged, tagged_id="t")
    assert store.require(Tagged, tagged_id="t").tags == []


def test_all_hooks_after_a_transaction_run_and_the_first_error_is_raised(store: Database) -> None:
    def write() -> None:
        with store.transaction() as tx:
            tx.put(Page(page_id="p", title="Broken"))
            tx.put(Page(page_id="q", title="Broken"))
            tx.put(Page(page_id="r", title="C"))

    with pytest.raises(RuntimeError, match="the index is down") as raised:
        write()
    assert calls[3:] == ["after Broken v1", "after Broken v1", "after C v1"]
    assert raised.value.__notes__ == [
        "Page._after, which ran next, raised RuntimeError('the index is down')."
    ]


def test_a_transaction_runs_hooks_once_before_and_after_its_commit(store: Database, opening: Opening) -> None:
    store.put(Page(page_id="q", title="Q"))
    calls.clear()

    def committed() -> None:
        calls.append("commit")

    opening.spy.once(TransactWriteItems, committed)
    with store.transaction() as tx:
        tx.put(Page(page_id="p", title="A"))
        tx.create(Page(page_id="r", title="B"))
        tx.update(Page, page_id="q", version=ANY, set={"title": "C"})
        assert calls == []
    assert calls == ["before", "before", "before_update", "commit", "after A v1", "after B v1"]
    assert [store.require(Page, page_id=each).slug for each in "prq"] == ["a", "b", "c"]


def test_a_transaction_that_is_planned_again_does_not_repeat_its_hooks(
    store: Database, opening: Opening
) -> None:
    def conflict() -> None:
        raise TransactionCancelled([{"Code": "TransactionConflict"}])

    opening.spy.once(TransactWriteItems, conflict)
    with store.transaction() as tx:
        tx.put(Page(page_id="p", title="A"))
    assert calls == ["before", "after A v1"]
    assert len(opening.spy.of(TransactWriteItems)) == 2


def test_what_cannot_run_hooks_rejects_the_entity(store: Database) -> None:
    with pytest.raises(DataError, match="Note has an after_update hook, which needs the stored entity"):
        store.transaction().update(Note, note_id="n", set={"text": "b"})
    with pytest.raises(DataError, match="Note has an after_delete hook"):
        store.transaction().delete(Note, note_id="n")
    with pytest.raises(DataError, match="Page has hooks, which a batch does not run; use a transaction"):
        store.batch().put(Page(page_id="p", title="A"))


def test_seed_runs_the_hooks_of_create(opening: Opening) -> None:
    store = opening.beside(wiki)
    pages = seed(store, Page, count=2, title="A")
    assert [page.slug for page in pages] == ["a", "a"]
    assert [store.require(Page, page_id=page.page_id) for page in pages] == pages
    assert calls == ["before", "before", "after A v1", "after A v1"]
    assert seed(store, Page, count=1, seed=1, title="B")[0].slug == "b"


def test_flows_run_hooks(opening: Opening) -> None:
    beside = opening.beside(wiki)
    flow.run(flow.put(flow.scope_of(beside), Page(page_id="p", title="A")), beside)
    assert calls == ["before", "after A v1"]


@pytest.mark.in_process
def test_an_async_hook_is_awaited_and_needs_an_async_store(opening: Opening) -> None:
    table = Table("Mails")

    class Mail(Entity, table=table):
        key = Key("MAIL#{mail_id}", "MAIL")
        mail_id: str
        text: str = ""

        @hook("before_put")
        async def _before(self) -> None:
            await asyncio.sleep(0)
            self.text = "changed"

        @hook("after_put", "after_delete")
        async def _after(self) -> None:
            await asyncio.sleep(0)
            calls.append(self.text)

    db = table.open("sqlite://")
    with pytest.raises(
        DeclarationError, match=r"Mail\._\w+ is an async hook, which a blocking store cannot run"
    ):
        db.delete(Mail, mail_id="m")
    with pytest.raises(DeclarationError, match="async hook"):
        db.put(Mail(mail_id="m"))
    assert db.get(Mail, mail_id="m") is None
    db.close()

    async def main() -> None:
        opened = table.open_async("sqlite://")
        assert (await opened.put(Mail(mail_id="m"))).text == "changed"
        async with opened.transaction() as tx:
            tx.put(Mail(mail_id="n"))
        await opened.delete(Mail, mail_id="m")
        await opened.close()

    asyncio.run(main())
    assert calls == ["changed", "changed", "changed"]


def _traced(function: Any) -> Any:
    @functools.wraps(function)
    def call(*arguments: Any) -> Any:
        return function(*arguments)

    return call


@pytest.mark.in_process
def test_an_async_hook_behind_a_plain_decorator_is_awaited_or_rejected(opening: Opening) -> None:
    table = Table("Mails")

    class Mail(Entity, table=table):
        key = Key("MAIL#{mail_id}", "MAIL")
        mail_id: str

        @hook("before_delete")
        @classmethod
        @_traced
        async def _keep(cls, key: dict[str, Any]) -> None:
            raise PermissionError("mails stay")

        @hook("after_put")
        @_traced
        async def _after(self) -> None:
            calls.append(f"after {self.mail_id}")

    db = table.open("sqlite://")
    # Only the call shows that the hook is async, so this write is done.
    with pytest.raises(DeclarationError, match=r"Mail\._after is an async hook"):
        db.put(Mail(mail_id="m"))
    with pytest.raises(DeclarationError, match=r"Mail\._keep is an async hook"):
        db.delete(Mail, mail_id="m")
    assert db.get(Mail, mail_id="m") is not None
    db.close()

    async def main() -> None:
        async with table.open_async("sqlite://") as opened:
            await opened.put(Mail(mail_id="n"))
            with pytest.raises(PermissionError):
                await opened.delete(Mail, mail_id="n")

    asyncio.run(main())
    assert calls == ["after n"]


def test_wrong_hooks_are_rejected_when_the_class_is_declared() -> None:
    with pytest.raises(DeclarationError, match=r"hook\(\) takes events, got \['after_save'\]"):
        hook("after_save")  # type: ignore[arg-type]  # the point of the test
    with pytest.raises(DeclarationError, match=r"Draft\._f: a before_update hook must be a class method"):

        class Draft(Entity, table=Table("Drafts")):
            key = Key("DRAFT#{draft_id}", "DRAFT")
            draft_id: str

            @hook("before_update")
            def _f(self) -> None: ...


def _unwrapped(function: Callable[..., Any]) -> Callable[..., Any]:
    def call(*arguments: Any) -> Any:
        return function(*arguments)

    return call


def _wrapped(function: Callable[..., Any]) -> Callable[..., Any]:
    return functools.wraps(function)(_unwrapped(function))


@pytest.mark.parametrize("outer", [classmethod, staticmethod, property, functools.cache, _unwrapped])
def test_a_hook_below_another_decorator_is_rejected(outer: Callable[[Any], Any]) -> None:
    with pytest.raises(
        DeclarationError, match=r"Draft\._f: @hook is below another decorator; write @hook as"
    ):

        class Draft(Entity, table=Table("Drafts")):
            key = Key("DRAFT#{draft_id}", "DRAFT")
            draft_id: str

            @outer
            @hook("before_delete")
            def _f(self, key: Any) -> None: ...


def test_a_decorator_that_keeps_the_mark_may_be_above_or_below_a_hook() -> None:
    class Draft(Entity, table=Table("Drafts")):
        key = Key("DRAFT#{draft_id}", "DRAFT")
        draft_id: str

        @_wrapped
        @hook("before_put")
        def _f(self) -> None: ...

        @hook("before_put")
        @_unwrapped
        def _g(self) -> None: ...

    hooks = Draft.plan().hooks
    assert hooks is not None
    assert hooks.at("before_put") == ("_f", "_g")


@pytest.mark.parametrize("inner", [staticmethod, property, functools.cache])
def test_a_hook_takes_methods_and_class_methods(inner: Any) -> None:
    with pytest.raises(DeclarationError, match="@hook takes a method or a class method, got"):
        hook("before_delete")(inner(lambda key: None))


def test_a_subclass_inherits_replaces_and_removes_hooks() -> None:
    class Base(Entity):
        @hook("after_put")
        def _first(self) -> None: ...

        @hook("after_put")
        def _second(self) -> None: ...

    class Child(Base, table=Table("Children")):
        key = Key("CHILD#{child_id}", "CHILD")
        child_id: str

        def _second(self) -> None: ...

        @hook("after_put")
        def _third(self) -> None: ...

    hooks = Child.plan().hooks
    assert hooks is not None
    assert hooks.at("after_put") == ("_first", "_third")
    assert Note.plan().hooks is not None
