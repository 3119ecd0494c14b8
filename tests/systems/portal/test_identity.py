"""Users of the local provider: passwords, sessions, invitations and tokens."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Coroutine, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar

import pytest

from solotable import AsyncDatabase, connect_async
from solotable.errors import NotFound, NotUnique
from solotable.systems.browser.sessions import form_token, is_form_token
from solotable.systems.errors import InvalidInput
from solotable.systems.portal.identity.directory import InvitationDraft, LocalDirectory, OwnAccount
from solotable.systems.portal.identity.passwords import hash_password, verify_password
from solotable.systems.portal.identity.sessions import Sessions
from solotable.systems.portal.identity.users import Session, User, users

T = TypeVar("T")
PASSWORD = "correct horse battery"
ANN = InvitationDraft(email="Ann@Example.com", name="Ann", role="Contributor")


class Office:
    """A directory in memory and a loop to run it."""

    def __init__(self, db: AsyncDatabase, runner: asyncio.Runner) -> None:
        self.db, self.directory, self.sessions = db, LocalDirectory(db), Sessions(db)
        self._runner = runner

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        return self._runner.run(work)


@pytest.fixture
def office() -> Iterator[Office]:
    with asyncio.Runner() as runner:
        db = connect_async("sqlite://", users)
        made = Office(db, runner)
        made.run(made.directory.add("ann", ANN, password=PASSWORD, n=2))
        yield made
        made.run(db.close())


def test_a_password_is_stored_as_a_salted_hash(office: Office) -> None:
    stored = office.run(office.db.require(User, user_id="ann"))
    assert stored.password is not None
    assert stored.password.startswith("scrypt$2$8$5$")
    assert PASSWORD not in stored.password
    assert hash_password(PASSWORD, n=2) != hash_password(PASSWORD, n=2)
    assert verify_password(PASSWORD, stored.password)
    assert not verify_password(PASSWORD + "x", stored.password)
    assert not verify_password(PASSWORD, None)
    assert not verify_password("x" * 10_000, stored.password)


def test_an_address_signs_in_in_any_case_and_a_disabled_user_does_not(office: Office) -> None:
    found = office.run(office.directory.verify(" ANN@example.COM ", PASSWORD))
    assert found is not None
    assert found.user_id == "ann"
    office.run(office.directory.set_enabled("ann", enabled=False, by="ada"))
    assert office.run(office.directory.verify("ann@example.com", PASSWORD)) is None
    assert office.run(office.directory.verify("nobody@example.com", PASSWORD)) is None


def test_an_address_belongs_to_one_user(office: Office) -> None:
    with pytest.raises(NotUnique):
        office.run(office.directory.invite(InvitationDraft(email="ann@EXAMPLE.com", name="Other")))
    with pytest.raises(NotUnique):
        office.run(office.directory.add("ann2", ANN))


def test_the_table_holds_no_token_of_a_session(office: Office) -> None:
    token = office.run(office.sessions.open("ann"))
    digest = hashlib.sha256(token.encode()).hexdigest()
    stored = office.run(office.db.require(Session, digest=digest))
    assert token not in stored.model_dump_json()
    found = office.run(office.sessions.find(token))
    assert found is not None
    assert (found.caller.user_id, found.caller.role) == ("ann", "Contributor")
    assert office.run(office.sessions.find(digest)) is None


def test_a_session_ends_by_time_by_sign_out_and_with_its_users_access(office: Office) -> None:
    expired = office.run(office.sessions.open("ann"))
    digest = hashlib.sha256(expired.encode()).hexdigest()
    past = datetime.now(UTC) - timedelta(seconds=1)
    office.run(office.db.update(Session, digest=digest, set={"expires": past}))
    assert office.run(office.sessions.find(expired)) is None
    closed, other = office.run(office.sessions.open("ann")), office.run(office.sessions.open("ann"))
    office.run(office.sessions.close(closed))
    assert office.run(office.sessions.find(closed)) is None
    assert office.run(office.sessions.find(other)) is not None
    office.run(office.directory.set_password("ann", "another password"))
    assert office.run(office.sessions.find(other)) is None


def test_a_role_counts_from_the_next_request(office: Office) -> None:
    token = office.run(office.sessions.open("ann"))
    office.run(office.directory.set_role("ann", "Admin", by="ada"))
    found = office.run(office.sessions.find(token))
    assert found is not None
    assert found.caller.role == "Admin"
    with pytest.raises(OwnAccount):
        office.run(office.directory.set_role("ann", "Viewer", by="ann"))
    with pytest.raises(NotFound):
        office.run(office.directory.set_role("none", "Viewer", by="ann"))


def test_an_invitation_is_for_one_password_and_seven_days(office: Office) -> None:
    invited = office.run(office.directory.invite(InvitationDraft(email="cy@example.com", name="Cy")))
    user_id = invited.profile.user_id
    assert not invited.profile.active
    assert office.run(office.directory.verify("cy@example.com", "")) is None
    for wrong in (f"{user_id}.x", user_id, ".", invited.secret + "x"):
        with pytest.raises(NotFound):
            office.run(office.directory.invited(wrong))
    with pytest.raises(InvalidInput, match="12 to 200"):
        office.run(office.directory.accept(invited.secret, "short"))
    office.run(office.directory.accept(invited.secret, PASSWORD))
    with pytest.raises(NotFound):
        office.run(office.directory.accept(invited.secret, PASSWORD))
    late = office.run(office.directory.invite(InvitationDraft(email="di@example.com", name="Di")))
    past = datetime.now(UTC) - timedelta(seconds=1)
    office.run(office.db.update(User, user_id=late.profile.user_id, version=1, set={"invited_until": past}))
    with pytest.raises(NotFound):
        office.run(office.directory.invited(late.secret))


@pytest.mark.parametrize(
    "email", ["", "x", "a@b@c", "a b@c.example", "<a>@b.example", "a@-b", "a@b\n.example"]
)
def test_an_address_that_is_none_is_rejected(email: str) -> None:
    with pytest.raises(ValueError, match="email"):
        InvitationDraft(email=email, name="X")


def test_a_form_token_is_of_one_session() -> None:
    assert is_form_token("a", form_token("a"))
    assert not is_form_token("b", form_token("a"))
    assert not is_form_token("a", "")
    assert not is_form_token("a", "é")
