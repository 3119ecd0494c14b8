"""Complaints, of aws-samples/aws-dynamodb-examples: complaints and their communications, with native indexes.

Items have no type attribute; the complaint of a communication is only in its key.

| # | Access pattern | Key | Requests |
|---|---|---|---|
| 1 | Get the metadata of a complaint | table | GetItem |
| 2 | All communications of a complaint | table | Query |
| 3 | All complaints of a customer | Customer_Complaint_GSI | Query |
| 4 | Complaints that were escalated to an agent | Escalations_GSI | Query |
| 5 | Communications of an agent | Agents_Comments_GSI | Query |
| 6 | Complaints by severity and state | table | Scan with a filter |
| 7 | Changes of a complaint's state | table | Query with a filter |
"""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal, Self

import pytest

from solotable import Attr, Database, Entity, Index, Iso, Key, KeyFormat, Query, Table, pattern
from tests.store.opening import Opening

from .expectations import at, contents, item, requests

complaints = Table(
    "Complaint_management_system",
    tag=None,
    key_format=KeyFormat(escape=False),
    indexes=[
        Index("Customer_Complaint_GSI", partition="customer_id", sort="complaint_id"),
        Index("Escalations_GSI", partition="escalated_to", sort="escalation_time"),
        Index("Agents_Comments_GSI", partition="agentID", sort="comm_date"),
    ],
)
State = Literal["waiting", "assigned", "investigating", "resolved"]


class Complaint(Entity, table=complaints):
    """A complaint of a customer."""

    key = Key("{complaint_id}", "metadata")
    by_customer = Key(("customer_id",), ("complaint_id",), index="Customer_Complaint_GSI")
    by_agent = Key(("escalated_to",), ("escalation_time",), index="Escalations_GSI")
    complaint_id: str
    customer_id: str
    current_state: State
    creation_time: Annotated[datetime, Iso("s", offset="")]
    severity: Literal["P1", "P2", "P3"]
    complaint_description: str
    escalated_to: str | None = None
    escalation_time: Annotated[datetime | None, Iso("s", offset="")] = None

    @pattern
    @classmethod
    def of_customer(cls, customer_id: str) -> Query[Self]:
        """The complaints of a customer."""
        return cls.by_customer.query(customer_id=customer_id)

    @pattern
    @classmethod
    def escalated(cls, agent_id: str) -> Query[Self]:
        """The complaints that were escalated to an agent, oldest first."""
        return cls.by_agent.query(escalated_to=agent_id)


class Communication(Entity, table=complaints):
    """A communication about a complaint."""

    key = Key("{complaint_id}", "comm#{comm_date}#{comm_id}")
    by_agent = Key(("agent_id",), ("comm_date",), index="Agents_Comments_GSI")
    complaint_id: Annotated[str, Attr(stored=False)]
    comm_id: str
    comm_date: Annotated[datetime, Iso("s", offset="")]
    complaint_state: State
    comm_text: str
    agent_id: Annotated[str | None, Attr("agentID")] = None
    attachments: frozenset[str] = frozenset()

    @pattern
    @classmethod
    def of_complaint(cls, complaint_id: str) -> Query[Self]:
        """The communications about a complaint, oldest first."""
        return cls.key.query(complaint_id=complaint_id)

    @pattern
    @classmethod
    def of_agent(cls, agent_id: str) -> Query[Self]:
        """The communications of an agent, oldest first."""
        return cls.by_agent.query(agent_id=agent_id)

    @pattern
    @classmethod
    def with_state(cls, complaint_id: str, state: State) -> Query[Self]:
        """The communications that gave a complaint a state."""
        return cls.key.query(complaint_id=complaint_id).where(lambda each: each.complaint_state == state)


def _communication(complaint: str, number: int, when: str, state: str, **more: str) -> dict[str, str]:
    key = {"PK": complaint, "SK": f"comm#{when}#comm{number}", "comm_id": f"comm{number}", "comm_date": when}
    return {**key, "complaint_state": state, "comm_text": "text", **more}


def _complaint(of: str, customer: str, state: str, severity: str, **more: str) -> dict[str, str]:
    key = {"PK": of, "SK": "metadata", "customer_id": customer, "complaint_id": of, "current_state": state}
    return {**key, "creation_time": "2023-04-30T12:00:00", "severity": severity, **more}


#: The published items.
ITEMS = [
    _communication("Complaint123", 1, "2023-04-30T12:00:24", "investigating", agentID="AgentA"),
    _communication("Complaint123", 2, "2023-04-30T12:35:54", "resolved", agentID="AgentA"),
    _communication("Complaint1321", 3, "2023-05-10T16:00:00", "investigating", agentID="AgentB"),
    _communication("Complaint1444", 4, "2022-12-31T19:32:00", "waiting"),
    _communication("Complaint1444", 5, "2022-12-31T19:40:00", "assigned", agentID="AgentC"),
    _complaint("Complaint123", "custABC", "resolved", "P2"),
    _complaint(
        "Complaint1444",
        "custXY32",
        "assigned",
        "P1",
        escalated_to="AgentB",
        escalation_time="2023-01-03T04:00:07",
    ),
    _complaint(
        "Complaint1321",
        "custXYZ",
        "investigating",
        "P2",
        escalated_to="AgentB",
        escalation_time="2023-05-15T14:00:00",
    ),
    _complaint("Complaint0987", "custXYZ", "assigned", "P3"),
]


@pytest.fixture
def db(opening: Opening) -> Database:
    store = opening(complaints)
    for each in ITEMS:
        description = {} if "comm_id" in each else {"complaint_description": "text"}
        opening.plant(complaints, item(**each, **description))
    return store


def test_complaints_1_metadata_of_a_complaint(db: Database, opening: Opening) -> None:
    with requests(opening, "GetItem"):
        complaint = db.require(Complaint, complaint_id="Complaint123")
    assert (complaint.customer_id, complaint.creation_time) == ("custABC", at("2023-04-30T12:00:00"))
    assert db.get(Complaint, complaint_id="Complaint12") is None


def test_complaints_2_communications_of_a_complaint(db: Database, opening: Opening) -> None:
    with requests(opening, "Query"):
        found = db.page(Communication.of_complaint("Complaint123"))
    assert [each.comm_id for each in found] == ["comm1", "comm2"]
    assert {each.complaint_id for each in found} == {"Complaint123"}
    with requests(opening, "Query"):
        complaint, communications = db.collection(Complaint, Communication, complaint_id="Complaint1444")
    assert complaint is not None
    assert [each.comm_id for each in communications] == ["comm4", "comm5"]


def test_complaints_3_complaints_of_a_customer(db: Database, opening: Opening) -> None:
    with requests(opening, "Query"):
        found = db.page(Complaint.of_customer("custXYZ"))
    assert [each.complaint_id for each in found] == ["Complaint0987", "Complaint1321"]
    assert db.count(Complaint.of_customer("custXY")) == 0


def test_complaints_4_complaints_that_were_escalated_to_an_agent(db: Database, opening: Opening) -> None:
    with requests(opening, "Query"):
        found = db.page(Complaint.escalated("AgentB"))
    assert [each.complaint_id for each in found] == ["Complaint1444", "Complaint1321"]
    later = Complaint.escalated("AgentB").after(escalation_time=at("2023-01-03T04:00:07"))
    assert [each.complaint_id for each in db.all(later)] == ["Complaint1321"]
    assert db.count(Complaint.escalated("AgentA")) == 0


def test_complaints_5_communications_of_an_agent(db: Database, opening: Opening) -> None:
    with requests(opening, "Query"):
        found = db.page(Communication.of_agent("AgentA"))
    assert [each.comm_id for each in found] == ["comm1", "comm2"]
    assert db.count(Communication.of_agent("AgentB")) == 1


def test_complaints_6_complaints_by_severity_and_state(db: Database, opening: Opening) -> None:
    with requests(opening, "Scan"):
        found = list(
            db.admin().scan(
                Complaint,
                budget=100,
                where=lambda each: (each.severity == "P2") & (each.current_state == "investigating"),
            )
        )
    assert [each.complaint_id for each in found] == ["Complaint1321"]


def test_complaints_7_changes_of_a_complaints_state(db: Database, opening: Opening) -> None:
    with requests(opening, "Query"):
        found = db.page(Communication.with_state("Complaint123", "resolved"))
    assert [each.comm_id for each in found] == ["comm2"]
    assert found.scanned == 2


def test_complaints_are_written_back_unchanged(db: Database, opening: Opening) -> None:
    before = contents(opening, complaints)
    db.put(db.require(Complaint, complaint_id="Complaint1321"))
    for each in db.all(Communication.of_complaint("Complaint1444")):
        db.put(each)
    assert contents(opening, complaints) == before
