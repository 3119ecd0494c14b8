"""The same rows through each modelling layer: ours, PynamoDB, dyntastic, and bare boto3.

Every layer has a table of its own with the same fields, fifty rows to a partition, one index key.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Self

from solotable import Database, Entity, Index, Key, Query, Table, pattern

PER_PARTITION = 50
_WORDS = ["river", "stone", "maple", "orbit", "quartz", "lantern", "meadow", "harbour", "ember", "willow"]

sections = Table("Sections", indexes=[Index("GSI1")])


class Section(Entity, table=sections):
    """About 0.9 KB, as in the other measurements."""

    key = Key("SURVEY#{survey_id}", "SECTION#{section_id}")
    by_status = Key("STATUS#{status}", "SECTION#{order:06d}", index="GSI1")
    survey_id: str
    section_id: str
    title: str
    status: str
    order: int
    price: Decimal
    active: bool
    tags: set[str]
    notes: str
    updated_at: str

    @pattern
    @classmethod
    def of_survey(cls, survey_id: str) -> Query[Self]:
        """The sections of a survey."""
        return cls.key.query(survey_id=survey_id)


@dataclass(frozen=True, slots=True, kw_only=True)
class Layer:
    """One modelling layer: put, get and a query of 50, by number."""

    put: Callable[[int], object]
    get: Callable[[int], object]
    query: Callable[[int], object]


def fields(number: int) -> dict[str, Any]:
    """Return the values of the row with this number."""
    dice = random.Random(number)
    return {
        "survey_id": f"{number // PER_PARTITION:07d}",
        "section_id": f"{number % PER_PARTITION:04d}",
        "title": " ".join(dice.choices(_WORDS, k=8)),
        "status": f"{number % 20}",
        "order": number,
        "price": Decimal(f"{dice.randint(1, 99999)}.{dice.randint(10, 99)}"),
        "active": True,
        "tags": set(dice.sample(_WORDS, 3)),
        "notes": " ".join(dice.choices(_WORDS, k=66)),
        "updated_at": "2026-01-31T12:00:00.000Z",
    }


def _sections(items: int, version: str) -> list[Section]:
    """Return rows in a version, so that each put changes the stored item, as puts of a program do."""
    return [
        Section(**fields(number) | {"updated_at": f"2026-01-31T12:00:00.00{version}Z"})
        for number in range(items)
    ]


def ours(db: Database, items: int) -> Layer:
    """Return our own store as a layer."""
    rows = _sections(items, "1")
    versions = (rows, _sections(items, "2"))
    with db.batch() as batch:
        for row in rows:
            batch.put(row)

    def put(number: int) -> None:
        db.put(versions[number // items % 2][number % items])

    def get(number: int) -> Section | None:
        row = rows[number % items]
        return db.get(Section, survey_id=row.survey_id, section_id=row.section_id)

    def query(number: int) -> list[Section]:
        return db.page(Section.of_survey(rows[number % items].survey_id), limit=PER_PARTITION).items

    return Layer(put=put, get=get, query=query)


def bare_boto3(client: Any, items: int) -> Layer:
    """Return a boto3 client that is called with DynamoDB's own values, as the table of ours holds them."""
    # Other versions than those of our store, which may take turns on the same table.
    versions = [[row.plan().encode(row.__dict__) for row in _sections(items, each)] for each in "34"]
    keys = [{"PK": row["PK"], "SK": row["SK"]} for row in versions[0]]

    def put(number: int) -> Any:
        item = versions[number // items % 2][number % items]
        return client.put_item(TableName="Sections", Item=item)

    def query(number: int) -> Any:
        values = {":p": keys[number % items]["PK"], ":s": {"S": "SECTION#"}}
        condition = "PK = :p AND begins_with(SK, :s)"
        return client.query(
            TableName="Sections",
            KeyConditionExpression=condition,
            ExpressionAttributeValues=values,
            Limit=PER_PARTITION,
        )

    return Layer(
        put=put,
        get=lambda number: client.get_item(TableName="Sections", Key=keys[number % items]),
        query=query,
    )


def pynamodb(endpoint: str, items: int) -> Layer:
    """Return a PynamoDB model of the same rows."""
    from pynamodb import attributes
    from pynamodb.models import Model

    class PynamoSection(Model):
        class Meta:
            table_name = "PynamoSections"
            host = endpoint
            region = "us-east-1"
            aws_access_key_id = "local"
            aws_secret_access_key = "local"  # noqa: S105 - no secret: our own server asks for none
            billing_mode = "PAY_PER_REQUEST"

        pk = attributes.UnicodeAttribute(hash_key=True)
        sk = attributes.UnicodeAttribute(range_key=True)
        survey_id = attributes.UnicodeAttribute()
        section_id = attributes.UnicodeAttribute()
        title = attributes.UnicodeAttribute()
        status = attributes.UnicodeAttribute()
        order = attributes.NumberAttribute()
        # PynamoDB's numbers are floats; it refuses a Decimal.
        price = attributes.NumberAttribute()
        active = attributes.BooleanAttribute()
        tags = attributes.UnicodeSetAttribute()
        notes = attributes.UnicodeAttribute()
        updated_at = attributes.UnicodeAttribute()

    PynamoSection.create_table(wait=True)
    rows = []
    for number in range(items):
        values = fields(number)
        values["price"] = float(values["price"])
        rows.append(PynamoSection(*_key(values), **values))
    for row in rows:
        row.save()

    return Layer(
        put=lambda number: rows[number % items].save(),
        get=lambda number: PynamoSection.get(rows[number % items].pk, rows[number % items].sk),
        query=lambda number: list(
            PynamoSection.query(
                rows[number % items].pk, PynamoSection.sk.startswith("SECTION#"), limit=PER_PARTITION
            )
        ),
    )


def dyntastic(endpoint: str, items: int) -> Layer:
    """Return a dyntastic model of the same rows."""
    from dyntastic import A, Dyntastic

    class DynSection(Dyntastic):
        __table_name__ = "DynSections"
        __hash_key__ = "pk"
        __range_key__ = "sk"
        __table_region__ = "us-east-1"
        __table_host__ = endpoint

        pk: str
        sk: str
        survey_id: str
        section_id: str
        title: str
        status: str
        order: int
        price: Decimal
        active: bool
        tags: set[str]
        notes: str
        updated_at: str

    DynSection.create_table()
    rows = []
    for number in range(items):
        values = fields(number)
        pk, sk = _key(values)
        rows.append(DynSection(pk=pk, sk=sk, **values))
    for row in rows:
        row.save()

    return Layer(
        put=lambda number: rows[number % items].save(),
        get=lambda number: DynSection.get(rows[number % items].pk, rows[number % items].sk),
        query=lambda number: list(
            DynSection.query(
                rows[number % items].pk,
                range_key_condition=A.sk.begins_with("SECTION#"),
                per_page=PER_PARTITION,
            )
        ),
    )


def _key(values: dict[str, Any]) -> tuple[str, str]:
    return f"SURVEY#{values['survey_id']}", f"SECTION#{values['section_id']}"
