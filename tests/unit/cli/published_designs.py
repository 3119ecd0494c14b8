"""Items of eight published single-table designs, as their programs store them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

Row = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Design:
    """A table: its keys, its indexes, its items, and the entities that a reader would find."""

    keys: tuple[str, str] = ("PK", "SK")
    indexes: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    rows: Callable[[], list[Row]]
    entities: Mapping[str, int]


def _instagram() -> list[Row]:
    names = ("jacksonjason", "ylee", "Eric Johnson")
    stamp = "2019-04-14T12:12:12Z"
    users = [{"PK": f"USER#{n}", "SK": f"#METADATA#{n}", "username": n, "age": 20 + len(n)} for n in names]
    photos = [
        {"PK": f"USER#{n}", "SK": f"PHOTO#{n}#2019-0{m}-14T12:12:12Z", "username": n, "location": "Oslo"}
        for n in names
        for m in (1, 2)
    ]
    reactions = [
        {"PK": f"REACTION#{n}#heart", "SK": f"PHOTO#{names[0]}#{stamp}", "reactingUser": n} for n in names
    ]
    friends = [
        {"PK": f"USER#{one}", "SK": f"#FRIEND#{other}", "followedUser": one, "followingUser": other}
        for one, other in zip(names, names[1:] + names[:1], strict=True)
    ]
    return [*users, *photos, *reactions, *friends]


def _github() -> list[Row]:
    repos = [
        {
            "PK": f"REPO#{owner}#{name}",
            "SK": f"REPO#{owner}#{name}",
            "Type": "Repo",
            "RepoOwner": owner,
            "RepoName": name,
            "StarCount": 3,
            "GSI1PK": f"REPO#{owner}#{name}",
            "GSI1SK": f"REPO#{owner}#{name}",
        }
        for owner, name in (("alexdebrie", "book"), ("alexdebrie", "blog"), ("torvalds", "linux"))
    ]
    issues = [
        {
            "PK": f"REPO#{owner}#{name}",
            "SK": f"ISSUE#{number:08d}",
            "Type": "Issue",
            "RepoOwner": owner,
            "RepoName": name,
            "IssueNumber": number,
            "Status": "Open",
        }
        for owner, name in (("alexdebrie", "book"), ("torvalds", "linux"))
        for number in (1, 2, 15)
    ]
    users = [
        {"PK": f"ACCOUNT#{name}", "SK": f"ACCOUNT#{name}", "Type": "User", "Username": name}
        for name in ("alexdebrie", "torvalds", "ana")
    ]
    return [*repos, *issues, *users]


def _online_shop() -> list[Row]:
    customers = [
        {"PK": f"c#{n}", "SK": f"c#{n}", "EntityType": "customer", "email": f"{n}@example.org"}
        for n in range(12345, 12349)
    ]
    orders = [
        {
            "PK": f"o#{n}",
            "SK": f"c#{12345 + n % 4}",
            "EntityType": "order",
            "date": "2026-01-02T03:04:05",
            "GSI1-PK": f"c#{12345 + n % 4}",
            "GSI1-SK": "2026-01-02T03:04:05",
        }
        for n in range(8)
    ]
    return [*customers, *orders]


def _sessions() -> list[Row]:
    return [
        {"PK": f"session#{token:04x}", "SK": f"user#{token % 3}", "ttl": 1_800_000_000 + token, "data": "x"}
        for token in range(0x1000, 0x1008)
    ]


def _complaints() -> list[Row]:
    complaints = [
        {
            "PK": f"COMP#{n}",
            "SK": f"COMP#{n}",
            "complaint_id": str(n),
            "severity": f"P{n % 3}",
            "customer_id": f"C{n % 2}",
            "created": "2026-01-02T03:04:05",
        }
        for n in range(1322, 1328)
    ]
    comments = [
        {"PK": f"COMP#{n}", "SK": f"COMM#2026-01-0{d}T00:00:00#{d}", "comment_id": str(d), "text": "?"}
        for n in (1322, 1323)
        for d in (1, 2)
    ]
    return [*complaints, *comments]


def _chat() -> list[Row]:
    users = [{"PK": f"USER#{n}", "SK": f"USER#{n}", "username": n} for n in ("ana", "ben", "carl")]
    rooms = [{"PK": f"ROOM#{n}", "SK": f"ROOM#{n}", "room": n, "topic": "t"} for n in ("r1", "r2", "r3")]
    messages = [
        {"PK": f"ROOM#{room}", "SK": f"MSG#{at}", "sender": "ana", "sent": at, "text": "hi"}
        for room in ("r1", "r2")
        for at in ("2026-01-01T00:00:00.001Z", "2026-01-01T00:00:00.002Z")
    ]
    return [*users, *rooms, *messages]


def _payments() -> list[Row]:
    accounts = [
        {"PK": f"ACC#{n}", "SK": f"ACC#{n}", "AccountId": str(n), "Email": f"{n}@x"} for n in range(100, 104)
    ]
    subscriptions = [
        {
            "PK": f"ACC#{n}",
            "SK": f"SUB#{n * 2}#SKU#{n * 3}",
            "SubscriptionId": str(n * 2),
            "SKU": str(n * 3),
            "PaymentDay": n % 28,
            "NextPaymentDate": "2026-02-01",
            "GSI1PK": "NEXT#2026-02-01",
            "GSI1SK": f"ACC#{n}",
        }
        for n in range(100, 104)
    ]
    receipts = [
        {"PK": f"ACC#{n}", "SK": f"REC#2026-01-01#SKU#{n * 3}", "ProcessedAmount": 10.5, "SKU": str(n * 3)}
        for n in range(100, 104)
    ]
    return [*accounts, *subscriptions, *receipts]


def _device_log() -> list[Row]:
    return [
        {
            "DeviceID": f"d#{device}",
            "State#Date": f"{state}#2026-01-0{day}",
            "State": state,
            "Date": f"2026-01-0{day}",
            "Operator": "Liz",
        }
        for device in (12345, 12346, 12347)
        for day, state in ((1, "WARNING1"), (2, "NORMAL"))
    ]


DESIGNS = {
    "instagram": Design(
        indexes={"inverted": ("SK", "PK")},
        rows=_instagram,
        entities={"User": 3, "Photo": 6, "Reaction": 3, "Friend": 3},
    ),
    "github": Design(
        indexes={"GSI1": ("GSI1PK", "GSI1SK")},
        rows=_github,
        entities={"Repo": 3, "Issue": 6, "User": 3},
    ),
    "online shop": Design(
        indexes={"GSI1": ("GSI1-PK", "GSI1-SK")}, rows=_online_shop, entities={"Customer": 4, "Order": 8}
    ),
    "session store": Design(indexes={"ByUser": ("SK", "PK")}, rows=_sessions, entities={"User": 8}),
    "complaints": Design(
        indexes={"ByCustomer": ("customer_id", "complaint_id"), "BySeverity": ("severity", "complaint_id")},
        rows=_complaints,
        entities={"Comp": 6, "Comm": 4},
    ),
    "chat": Design(rows=_chat, entities={"User": 3, "Room": 3, "Msg": 4}),
    "payments": Design(
        indexes={"GSI1": ("GSI1PK", "GSI1SK")},
        rows=_payments,
        entities={"Acc": 4, "SubSku": 4, "RecSku": 4},
    ),
    "device log": Design(
        keys=("DeviceID", "State#Date"),
        indexes={"ByOperator": ("Operator", "Date")},
        rows=_device_log,
        entities={"D": 6},
    ),
}
