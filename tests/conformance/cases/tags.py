"""TagResource, UntagResource and ListTagsOfResource on tables.

AWS applies tags within seconds; an engine may apply them at once. Every case asks by the ARN that
the table's own description gives.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..harness import Case, Expectation, Fails, Json, Step, case, invalid
from ..tables import table

UNSUPPORTED = "does not support tagging"
#: Tags as pairs, in no order.
Tags = dict[str, str]


class Arn:
    """Requests that wait for the ARN of a table, and the step that fills it in."""

    def __init__(self, suffix: str = "") -> None:
        self._suffix = suffix
        self._requests: list[Json] = []

    def request(self, **members: Any) -> Json:
        self._requests.append(members)
        return members

    def learned(self) -> Step:
        def expect(reply: Json) -> None:
            for waiting in self._requests:
                waiting["ResourceArn"] = reply["Table"]["TableArn"] + self._suffix

        return Step("DescribeTable", {"TableName": "Hash"}, expect)


def pairs(tags: Tags) -> list[Json]:
    return [{"Key": key, "Value": value} for key, value in tags.items()]


def exactly(tags: Tags) -> Callable[[Json], None]:
    def expect(reply: Json) -> None:
        assert {tag["Key"]: tag["Value"] for tag in reply["Tags"]} == tags
        assert len(reply["Tags"]) == len(tags)
        assert "NextToken" not in reply

    return expect


def story(name: str, *actions: tuple[str, Json, Expectation], suffix: str = "") -> Case:
    """A case on the table `Hash`; every action is sent with the table's ARN."""
    arn = Arn(suffix)
    steps = [Step(operation, arn.request(**members), expect) for operation, members, expect in actions]
    return case(name, arn.learned(), *steps, tables="Hash", local=UNSUPPORTED)


def tag(tags: Tags, expect: Expectation | None = None) -> tuple[str, Json, Expectation]:
    return "TagResource", {"Tags": pairs(tags)}, {} if expect is None else expect


def untag(*keys: str, expect: Expectation | None = None) -> tuple[str, Json, Expectation]:
    return "UntagResource", {"TagKeys": list(keys)}, {} if expect is None else expect


def listed(tags: Tags) -> tuple[str, Json, Expectation]:
    return "ListTagsOfResource", {}, exactly(tags)


def constraint(value: str, member: str, rule: str) -> Fails:
    return invalid(
        f"1 validation error detected: Value {value} at '{member}' failed to satisfy constraint: {rule}"
    )


def many(count: int, start: int = 0) -> Tags:
    return {f"key{place}": str(place) for place in range(start, start + count)}


def reborn(name: str, *steps: Step, tags: Tags) -> Case:
    """A case whose steps end with a table `Hash` that has exactly these tags."""
    arn = Arn()
    return case(
        name,
        *steps,
        arn.learned(),
        Step("ListTagsOfResource", arn.request(), exactly(tags)),
        local=UNSUPPORTED,
    )


NOT_NULL = "Member must not be null"
MISSING = Fails("ResourceNotFoundException")
NOWHERE = "arn:aws:dynamodb:us-east-1:000000000000:table/Nowhere"
FOREIGN = "arn:aws:dynamodb:us-east-1:123456789012:table/Nowhere"

CASES: list[Case] = [
    story("a new table has no tags", listed({})),
    story("tags are kept", tag({"team": "blue", "cost": "7"}), listed({"team": "blue", "cost": "7"})),
    story("tags are added to tags", tag({"a": "1"}), tag({"b": "2"}), listed({"a": "1", "b": "2"})),
    story("a tag is overwritten", tag({"a": "1"}), tag({"a": "2"}), listed({"a": "2"})),
    story("a value may be empty", tag({"a": ""}), listed({"a": ""})),
    story("a key may be a space", tag({" ": " "}), listed({" ": " "})),
    story("letters of any script are allowed", tag({"ключ": "Ѯ"}), listed({"ключ": "Ѯ"})),
    story("keys differ by case", tag({"a": "1", "A": "2"}), listed({"a": "1", "A": "2"})),
    story("tags are removed by key", tag({"a": "1", "b": "2"}), untag("a"), listed({"b": "2"})),
    story("removing a tag that is not there is fine", tag({"a": "1"}), untag("x", "y"), listed({"a": "1"})),
    story("fifty tags fit on a table", tag(many(50)), listed(many(50))),
    story("fifty-one tags do not", tag(many(51), invalid(None)), listed({})),
    story(
        "the limit counts the tags already there",
        tag(many(30)),
        tag(many(21, start=30), invalid(None)),
        listed(many(30)),
    ),
    story("overwriting does not count again", tag(many(50)), tag(many(50)), listed(many(50))),
    story(
        "an empty list of tags is rejected",
        tag({}, invalid("Atleast one Tag needs to be provided as Input.")),
    ),
    story(
        "an empty list of keys is rejected",
        untag(expect=invalid("Atleast one Tag Key needs to be provided as Input.")),
    ),
    story("tags are required", ("TagResource", {}, constraint("null", "tags", NOT_NULL))),
    story("keys are required", ("UntagResource", {}, constraint("null", "tagKeys", NOT_NULL))),
    story(
        "a key has a least length",
        tag(
            {"": "1"},
            invalid("The Tag Key provided is invalid, Key: "),
        ),
    ),
    story(
        "a key has a greatest length",
        tag(
            {"k" * 129: "1"},
            invalid(f"The Tag Key provided is invalid, Key: {'k' * 129}"),
        ),
    ),
    story(
        "a value has a greatest length",
        tag(
            {"a": "v" * 257},
            invalid(f"The Tag Value provided is invalid, Value: {'v' * 257}"),
        ),
    ),
    story("other characters are rejected", tag({"a": "#!%"}, invalid(None)), listed({})),
    story(
        "no more than 50 tags are taken off at once",
        untag(
            *many(51),
            expect=invalid("Number of Tags exceed the current limit for the provided ResourceArn"),
        ),
    ),
    *(
        story(f"a value may be {value}", tag({"a": value}), listed({"a": value}))
        for value in ("ключ", "café", "表", "a\u00a0b", "a+b-c=d.e_f:g/h@i")
    ),
    *(
        story(
            f"a value cannot be {value}",
            tag({"a": value}, invalid(f"The Tag Value provided is invalid, Value: {value}")),
            listed({}),
        )
        for value in ("100%", "a,b", "(x)", "a&b", "a*b", "a;b", "a?b", "a|b", "a\\b", "<a>", "~a", "#")
    ),
    story("a missing table cannot be tagged", tag({"a": "1"}, MISSING), suffix="x"),
    case(
        "the ARN of a missing table is named",
        *(
            Step(
                operation,
                {"ResourceArn": NOWHERE, **members},
                Fails(
                    "ResourceNotFoundException",
                    f"Requested resource not found: ResourceArn: {NOWHERE} not found",
                ),
            )
            for operation, members in (
                ("ListTagsOfResource", {}),
                ("TagResource", {"Tags": pairs({"a": "1"})}),
            )
        ),
        local=UNSUPPORTED,
    ),
    case(
        # ExtendDB 227 and nubo-db/dynoxide: verified on AWS in 2026; dynalite's suite before.
        "whether another account has a table is not reported",
        *(
            Step(
                operation,
                {"ResourceArn": FOREIGN, **members},
                Fails(
                    "AccessDeniedException",
                    f"User: arn:aws:iam::000000000000:root is not authorized to perform: dynamodb:{operation} "
                    f"on resource: {FOREIGN}",
                ),
            )
            for operation, members in (
                ("ListTagsOfResource", {}),
                ("TagResource", {"Tags": pairs({"a": "1"})}),
                ("UntagResource", {"TagKeys": ["a"]}),
            )
        ),
        local=UNSUPPORTED,
    ),
    story(
        "a missing table cannot be untagged",
        untag("a", expect=Fails("ResourceNotFoundException", "Requested resource not found")),
        suffix="x",
    ),
    story("a missing table's tags cannot be listed", ("ListTagsOfResource", {}, MISSING), suffix="x"),
    *(
        case(f"{operation} needs an ARN", Step(operation, {}, invalid("Invalid TableArn")), local=UNSUPPORTED)
        for operation in ("TagResource", "UntagResource", "ListTagsOfResource")
    ),
    reborn(
        "a table is created with tags",
        Step("CreateTable", table("Hash", "pk:S", Tags=pairs({"team": "blue"}))),
        tags={"team": "blue"},
    ),
    reborn(
        "tags do not outlive their table",
        Step("CreateTable", table("Hash", "pk:S", Tags=pairs({"team": "blue"}))),
        Step("DeleteTable", {"TableName": "Hash"}),
        Step("CreateTable", table("Hash", "pk:S")),
        tags={},
    ),
    case(
        "a table with too many tags is not created",
        Step("CreateTable", table("Hash", "pk:S", Tags=pairs(many(51))), Fails("ValidationException")),
        Step("DescribeTable", {"TableName": "Hash"}, Fails("ResourceNotFoundException")),
        local=UNSUPPORTED,
    ),
]
