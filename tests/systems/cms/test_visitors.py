"""Comments, leads, consents, and the results of an erasure: S0.7, S0.8, S0.11, C0.4, C0.13, C0.14."""

from __future__ import annotations

import asyncio
import base64
from datetime import timedelta

import pytest

from solotable._protocol.requests import Query, TransactWriteItems
from solotable.errors import DataError, NotFound
from solotable.systems.cms import Comment, CommentStatus, Consent, Lead, Message

from .site import Site


def test_s0_7_the_comments_of_a_page_are_one_query_in_the_order_of_time(site: Site) -> None:
    page, other = site.page("/a"), site.page("/b")
    for number in range(3):
        site.clock.seconds += 1
        site.run(site.acme.comments.post(page.node_id, author_name="Vi", body=f"{number}"))
    site.run(site.acme.comments.post(other.node_id, author_name="Vi", body="elsewhere"))
    site.sent()
    found = site.run(site.acme.comments.of_page(page.node_id))
    assert site.sent() == ["Query"]
    assert [comment.body for comment in found] == ["0", "1", "2"]
    (first, *_) = site.keys(f"COMMENT#{page.node_id}#")
    assert first.startswith(f"COMMENT#{page.node_id}#2035-01-01T00:00:01.000Z#")


def test_s0_7_only_approved_comments_are_shown_and_without_addresses(site: Site) -> None:
    page = site.page("/a")
    made = [
        site.run(
            site.acme.comments.post(page.node_id, author_name="Vi", body=body, author_email="vi@example.org")
        )
        for body in ("good", "bad", "<script>alert(1)</script>")
    ]
    assert site.run(site.acme.comments.shown(page.node_id)).items == []
    assert len(site.run(site.acme.comments.inbox())) == 3
    statuses: list[CommentStatus] = ["approved", "rejected", "approved"]
    for comment, status in zip(made, statuses, strict=True):
        site.run(site.acme.comments.moderate(page.node_id, comment.at, comment.comment_id, status))
    site.sent()
    shown = site.run(site.acme.comments.shown(page.node_id))
    assert [each.body for each in shown] == ["good", "<script>alert(1)</script>"]
    assert "vi@example.org" not in repr(shown)
    (query,) = site.journal.requests()
    assert isinstance(query, Query)
    assert query.index == "GSI_Status"
    assert site.run(site.acme.comments.inbox()).items == []


def test_s0_7_unpublished_pages_take_no_comments(site: Site) -> None:
    draft = site.page("/soon", status="draft")
    for page_id in (draft.node_id, "nothing"):
        with pytest.raises(NotFound):
            site.run(site.acme.comments.post(page_id, author_name="Vi", body="?"))


def test_c0_4_comments_and_consents_of_one_millisecond_are_all_stored(site: Site) -> None:
    page = site.page("/a")

    async def flood() -> None:
        comments = [site.acme.comments.post(page.node_id, author_name="Vi", body=f"{n}") for n in range(8)]
        consents = [
            site.acme.consents.record("v1", choices={"ads": bool(n % 2)}, policy_version="1")
            for n in range(8)
        ]
        await asyncio.gather(*comments, *consents)

    site.run(flood())
    assert {each.body for each in site.run(site.acme.comments.of_page(page.node_id))} == {
        f"{n}" for n in range(8)
    }
    assert len(site.run(site.acme.consents.of_visitor("v1"))) == 8


def test_c0_4_the_time_of_a_consent_is_the_servers_and_nothing_overwrites_it(site: Site) -> None:
    claimed = site.now() - timedelta(days=700)
    first = site.run(
        site.acme.consents.record("v1", choices={"ads": True}, policy_version="1", claimed_at=claimed)
    )
    again = site.run(
        site.acme.consents.record("v1", choices={"ads": False}, policy_version="1", claimed_at=claimed)
    )
    assert first.at == site.now()
    assert first.claimed_at == claimed
    assert set(site.run(site.acme.consents.of_visitor("v1")).items[0].choices) == {"ads"}
    assert {first.consent_id, again.consent_id} == {
        each.consent_id for each in site.run(site.acme.consents.of_visitor("v1"))
    }
    public = {name for name in dir(site.acme.consents) if not name.startswith("_")}
    assert public == {"record", "of_visitor", "current"}  # nothing that changes or removes one


def test_s0_8_there_is_one_lead_for_an_address(site: Site) -> None:
    first = site.run(site.acme.leads.capture("ann@example.org", name="Ann", source="home"))
    site.run(site.acme.leads.set_status(first.lead_id, "contacted"))
    site.clock.seconds += 60
    again = site.run(site.acme.leads.capture("ann@example.org", name="Other", source="blog", data={"q": 1}))
    assert len(site.keys("LEAD#")) == 1
    assert (again.lead_id, again.status, again.created) == (first.lead_id, "contacted", first.created)
    assert (again.name, again.source, again.submissions) == ("Ann", "home", 2)
    assert again.last_submitted == site.now()
    assert again.data == {"q": 1}
    site.sent()
    assert site.run(site.acme.leads.find("Ann@Example.org")) == again
    assert site.sent() == ["GetItem"]
    assert site.run(site.zeta.leads.find("ann@example.org")) is None


def test_c0_13_another_spelling_is_the_same_lead_and_no_address_is_in_a_key(site: Site) -> None:
    for spelling in ("A@Example.org", " a@example.ORG", "ａ@example.org"):
        site.run(site.acme.leads.capture(spelling))
    (only,) = site.run(site.acme.leads.list())
    assert (only.email, only.submissions) == ("a@example.org", 3)
    for number in range(3):
        site.run(site.acme.leads.capture(f"b{number}@example.org"))
    assert len(site.keys("LEAD#")) == 4
    for item in site.raw():
        for name, value in item.items():
            if name in ("PK", "SK") or name.startswith("GSI_"):
                assert "@" not in value["S"]
                assert "example.org" not in value["S"]
    page = site.run(site.acme.leads.list(limit=2))
    assert page.cursor is not None
    padded = page.cursor + "=" * (-len(page.cursor) % 4)
    assert b"example.org" not in base64.urlsafe_b64decode(padded.replace(".", "A"))
    for wrong in ("", "a", "a@b", "a b@example.org", "a@@example.org", "x" * 250 + "@example.org"):
        with pytest.raises(DataError):
            site.run(site.acme.leads.capture(wrong))


def test_c0_13_racing_submissions_make_one_lead_and_count_all(site: Site) -> None:
    async def race() -> list[object]:
        given = [site.acme.leads.capture("ann@example.org") for _ in range(4)]
        return await asyncio.gather(*given, return_exceptions=True)

    results = site.run(race())
    assert all(isinstance(each, Lead) for each in results), results
    assert len(site.keys("LEAD#")) == 1
    (lead,) = site.run(site.acme.leads.list())
    assert lead.submissions == 4
    (waiting,) = site.run(site.acme.leads.inbox())
    assert waiting.label == "a***@example.org"


def test_c0_4_c0_14_messages_are_separate_items_and_none_is_lost(site: Site) -> None:
    async def flood() -> None:
        sent = [site.acme.leads.message("Ann@example.org", body=f"{n}" * 3000) for n in range(4)]
        await asyncio.gather(*sent)

    site.run(flood())
    for number in range(4, 8):
        site.clock.seconds += 1
        site.run(site.acme.leads.message("ann@example.org", name="Ann", body=f"{number}" * 3000))
    (lead,) = site.run(site.acme.leads.list())
    assert (lead.submissions, lead.name, lead.source) == (8, "Ann", "contact")
    assert site.run(site.acme.leads.get(lead.lead_id)).data == {}
    site.sent()
    found = site.run(site.acme.leads.messages_of(lead.lead_id))
    assert site.sent() == ["Query"]
    assert [each.body[0] for each in found][:4] == ["7", "6", "5", "4"]
    assert {each.body[0] for each in found} == set("01234567")
    listed = site.run(site.acme.leads.messages(limit=3))
    assert site.sent() == ["Query"]
    assert [each.body[0] for each in listed] == ["7", "6", "5"]
    assert {each.label for each in listed} == {"a***@example.org"}
    assert all(key.startswith(f"MESSAGE#{lead.lead_id}#2035-") for key in site.keys("MESSAGE#"))
    assert site.run(site.zeta.leads.messages()).items == []
    assert site.run(site.zeta.leads.messages_of(lead.lead_id)).items == []


def test_c0_14_a_message_that_slips_into_an_erasure_is_erased_with_the_rest(site: Site) -> None:
    site.run(site.acme.leads.message("ann@example.org", body="first"))
    beside = site.beside()

    def slip_in() -> None:
        (row,) = beside.all(Lead.of_tenant())
        lead = beside.require(Lead, lead_id=row.lead_id)
        with beside.transaction() as tx:
            tx.update(lead, add={"submissions": 1})
            tx.create(Message(lead_id=lead.lead_id, at=site.now(), label="a***", body="second"))

    site.watched.slip_in(TransactWriteItems, slip_in)
    done = site.run(site.acme.erasures.erase_person("ann@example.org"))
    assert done.removed == {"leads": 1, "messages": 2, "comments": 0}
    assert site.keys("MESSAGE#") == site.keys("LEAD#") == []
    assert len(site.run(site.acme.erasures.list())) == 1


def test_s0_11_the_consents_of_a_visitor_are_one_query_latest_first(site: Site) -> None:
    for number in range(3):
        site.clock.seconds += 1
        site.run(site.acme.consents.record("v1", choices={"ads": number == 2}, policy_version=f"{number}"))
    site.run(site.acme.consents.record("v10", choices={}, policy_version="1"))
    site.sent()
    found = site.run(site.acme.consents.of_visitor("v1"))
    assert site.sent() == ["Query"]
    assert [each.policy_version for each in found] == ["2", "1", "0"]
    current = site.run(site.acme.consents.current("v1"))
    assert current is not None
    assert current.choices == {"ads": True}
    assert site.keys("CONSENT#v1#")[0].startswith("CONSENT#v1#2035-01-01T00:00:01.000Z#")
    assert site.run(site.acme.consents.current("v2")) is None


def test_c0_14_nothing_of_an_address_is_left_after_its_erasure(site: Site) -> None:
    page = site.page("/a")
    comments = site.acme.comments
    site.run(comments.post(page.node_id, author_name="Vera", body="Hello", author_email="Vera@example.org"))
    site.run(comments.post(page.node_id, author_name="Other", body="Hi", author_email="o@example.org"))
    lead = site.run(site.acme.leads.capture("vera@example.org", name="Vera"))
    for body in ("Is this Vera?", "Vera again"):
        site.run(site.acme.leads.message("Vera@example.org", name="Vera", body=body))
    site.run(site.acme.leads.message("o@example.org", body="Not hers"))
    site.run(site.acme.leads.set_status(lead.lead_id, "qualified"))
    site.deliver()
    done = site.run(site.acme.erasures.erase_person("VERA@example.org"))
    assert done.removed == {"leads": 1, "messages": 2, "comments": 1}
    site.deliver()
    left = repr(site.raw())
    assert "vera@" not in left.lower()
    assert "Vera" not in left
    assert "o@example.org" in left
    bodies = {each.body: each.author_name for each in site.run(comments.of_page(page.node_id))}
    assert bodies == {"Hello": "Deleted", "Hi": "Other"}
    nothing = {"leads": 0, "messages": 0, "comments": 0}
    assert site.run(site.acme.erasures.erase_person("vera@example.org")).removed == nothing
    assert [each.body for each in site.run(site.acme.leads.messages())] == ["Not hers"]
    assert len(site.run(site.acme.erasures.list())) == 2


def test_c0_14_the_consents_of_a_visitor_are_erased_and_the_erasure_is_on_record(site: Site) -> None:
    for _ in range(30):
        site.run(site.acme.consents.record("v1", choices={"ads": True}, policy_version="1"))
    site.run(site.acme.consents.record("v2", choices={"ads": True}, policy_version="1"))
    site.clock.seconds += 1
    done = site.run(site.acme.erasures.erase_visitor("v1"))
    assert done.removed == {"consents": 30}
    assert len(site.keys("CONSENT#")) == 1
    assert "v1" not in repr([item for item in site.raw() if item["_type"]["S"] == "Erasure"])
    site.deliver()
    (latest, *_) = site.run(site.acme.trail.list())
    assert latest.target.entity == "Erasure"


def test_c0_14_a_consent_and_a_comment_know_their_limits(site: Site) -> None:
    with pytest.raises(ValueError, match="at most"):
        Comment(page_id="p", at=site.now(), author_name="x", body="y" * 4001)
    with pytest.raises(ValueError, match="at least"):
        Consent(visitor_id="", at=site.now(), choices={}, policy_version="1")


def test_invalid_values_are_rejected_without_being_repeated(site: Site) -> None:
    page = site.page("/a")
    acme, long = site.acme, "needle" * 900
    for attempt in (
        acme.comments.post(page.node_id, author_name="Vi", body=long),
        acme.comments.post(page.node_id, author_name=long, body="x"),
        acme.leads.capture("a@example.org", name=long),
        acme.leads.message("a@example.org", body=long),
        acme.leads.capture("a@example.org", data={"x": "needle" * 9000}),
        acme.consents.record(long, choices={}, policy_version="1"),
        site.settings().merge({"token": "needle" * 90000}),
        acme.products.update("p", {"tenant_id": "zeta"}),
    ):
        with pytest.raises(DataError) as refused:
            site.run(attempt)
        assert "needle" not in str(refused.value)
