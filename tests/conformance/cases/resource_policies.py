"""Resource policies of tables and streams: stored, checked and read back in one form.

The texts and forms are those that aws-controllers-k8s/dynamodb-controller (docs/api-quirks, October 2026)
and moto (tests verified on AWS) captured. AWS makes a change visible within seconds and takes the next one
after 15 seconds; an engine may do both at once. No case relies on a policy being evaluated.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from ..harness import Case, Expectation, Fails, Json, Step, case, invalid
from ..tables import table

UNKNOWN = "does not implement the operation"
ACCOUNT = "000000000000"
ROOT = f"arn:aws:iam::{ACCOUNT}:root"
ARN = f"arn:aws:dynamodb:us-east-1:{ACCOUNT}:table/Hash"
NOWHERE = f"arn:aws:dynamodb:us-east-1:{ACCOUNT}:table/Nowhere"
WRONG = "One or more parameter values were invalid: "
DOCUMENT = f"{WRONG}Invalid policy document: "
UNBOUNDED = (
    "Resource-based policy grants unbounded access in one or more elements. Please revise the policy to "
    "ensure least-privilege form of access"
)
STATEMENT: Json = {
    "Sid": "Read",
    "Effect": "Allow",
    "Principal": {"AWS": ROOT},
    "Action": "dynamodb:GetItem",
    "Resource": ARN,
}


def document(*statements: Json, **members: Any) -> Json:
    return {"Version": "2012-10-17", "Statement": list(statements) or [STATEMENT], **members}


def text(policy: Json) -> str:
    return json.dumps(policy, separators=(",", ":"))


def put(policy: Json | str | None = None, expect: Expectation | None = None, **members: Any) -> Step:
    given = policy if isinstance(policy, str) else text(policy or document())
    return Step(
        "PutResourcePolicy",
        {"ResourceArn": ARN, "Policy": given, **members},
        revised if expect is None else expect,
    )


def get(expect: Expectation, arn: str = ARN) -> Step:
    return Step("GetResourcePolicy", {"ResourceArn": arn}, expect)


def delete(expect: Expectation, arn: str = ARN, **members: Any) -> Step:
    return Step("DeleteResourcePolicy", {"ResourceArn": arn, **members}, expect)


def revised(reply: Json) -> None:
    assert set(reply) == {"RevisionId"}
    assert reply["RevisionId"].isdecimal()
    assert len(reply["RevisionId"]) == 13


def reads(policy: Json) -> Callable[[Json], None]:
    """The policy, byte by byte in AWS's form, with a revision."""

    def expect(reply: Json) -> None:
        assert reply["Policy"] == text(policy), reply
        revised({name: value for name, value in reply.items() if name != "Policy"})

    return expect


def absent(arn: str = ARN) -> Fails:
    return Fails(
        "PolicyNotFoundException", f"Resource-based policy not found for the provided ResourceArn: {arn}"
    )


def missing(name: str) -> Fails:
    return Fails("ResourceNotFoundException", f"Requested resource not found: Table: {name} not found")


class Revision:
    """The revision of one step, for the requests of later steps."""

    def __init__(self) -> None:
        self.value = ""
        self._waiting: list[Json] = []

    def learned(self, step: Step) -> Step:
        def expect(reply: Json) -> None:
            revised(reply)
            self.value = reply["RevisionId"]
            for request in self._waiting:
                request["ExpectedRevisionId"] = self.value

        return Step(step.operation, step.request, expect)

    def expected_by(self, step: Step) -> Step:
        self._waiting.append(step.request)
        return step

    def same(self, reply: Json) -> None:
        assert reply["RevisionId"] == self.value

    def later(self, reply: Json) -> None:
        assert reply["RevisionId"] > self.value


def stored(name: str, sent: Json, read: Json) -> Case:
    return case(name, put(sent), get(reads(read)), tables="Hash", local=UNKNOWN)


def refused(name: str, policy: Json | str, message: str) -> Case:
    return case(name, put(policy, invalid(message)), get(absent()), tables="Hash", local=UNKNOWN)


def without(member: str) -> Json:
    return {name: value for name, value in STATEMENT.items() if name != member}


def one(**changes: Any) -> Json:
    return document(STATEMENT | changes)


def revisions() -> list[Case]:
    first, second, third, fourth = (Revision() for _ in range(4))
    return [
        case(
            "the same policy in another form keeps its revision",
            first.learned(put()),
            *(
                put(policy, first.same)
                for policy in (
                    json.dumps(document(), indent=4),
                    one(Action=["dynamodb:GetItem"], Principal={"AWS": [ACCOUNT]}, Effect="allow"),
                    {"Statement": STATEMENT, "Version": "2012-10-17"},
                )
            ),
            put(one(Action="dynamodb:PutItem"), first.later),
            tables="Hash",
            local=UNKNOWN,
        ),
        case(
            "a policy is replaced at its revision, and not at an older one",
            second.learned(put()),
            second.expected_by(put(one(Action="dynamodb:Query"))),
            second.expected_by(put(one(Action="dynamodb:Scan"), Fails("PolicyNotFoundException"))),
            second.expected_by(delete(Fails("PolicyNotFoundException"))),
            get(reads(one(Action="dynamodb:Query"))),
            tables="Hash",
            local=UNKNOWN,
        ),
        case(
            "a policy is deleted at its revision, which the reply reports",
            third.learned(put()),
            third.expected_by(delete(third.same)),
            get(absent()),
            tables="Hash",
            local=UNKNOWN,
        ),
        case(
            "deleting again reports the revision of the deletion",
            fourth.learned(put()),
            delete(fourth.same),
            delete(fourth.later),
            tables="Hash",
            local=UNKNOWN,
        ),
    ]


def stream_story() -> Case:
    """A stream's policy is apart from its table's."""
    requests: list[Json] = []

    def waiting(operation: str, expect: Expectation, **members: Any) -> Step:
        requests.append(members)
        return Step(operation, members, expect)

    def learned(reply: Json) -> None:
        for request in requests:
            request["ResourceArn"] = reply["Table"]["LatestStreamArn"]

    name = "Streamed"
    policy = one(Action="dynamodb:GetRecords", Resource="*")
    table_arn = ARN.replace("Hash", name)
    gone = f"{table_arn}/stream/2000-01-01T00:00:00.000"
    not_found = Fails(
        "ResourceNotFoundException",
        f"Requested resource not found: Stream: 2000-01-01T00:00:00.000 not found for Table: {name}",
    )
    return case(
        "a stream has a separate policy",
        Step("DescribeTable", {"TableName": name}, learned),
        waiting("GetResourcePolicy", Fails("PolicyNotFoundException")),
        waiting("PutResourcePolicy", revised, Policy=text(policy)),
        waiting("GetResourcePolicy", reads(policy)),
        get(absent(table_arn), table_arn),
        get(not_found, gone),
        waiting("DeleteResourcePolicy", revised),
        waiting("GetResourcePolicy", Fails("PolicyNotFoundException")),
        tables=name,
        local=UNKNOWN,
    )


CASES: list[Case] = [
    case("a new table has no policy", get(absent()), tables="Hash", local=UNKNOWN),
    case("a policy is stored and read", put(), get(reads(document())), tables="Hash", local=UNKNOWN),
    case("deleting no policy is not an error", delete({}), delete({}), tables="Hash", local=UNKNOWN),
    case(
        "a policy goes with its table",
        put(),
        Step("DeleteTable", {"TableName": "Hash"}),
        get(missing("Hash")),
        put(expect=missing("Hash")),
        delete(missing("Hash")),
        Step("CreateTable", table("Hash", "pk:S")),
        get(absent()),
        tables="Hash",
        local=UNKNOWN,
    ),
    case(
        "a table is created with its policy, which no description shows",
        Step(
            "CreateTable",
            table("Hash", "pk:S", ResourcePolicy=text(document())),
            lambda reply: _hidden(reply["TableDescription"]),
        ),
        Step("DescribeTable", {"TableName": "Hash"}, lambda reply: _hidden(reply["Table"])),
        get(reads(document())),
        local=UNKNOWN,
    ),
    case(
        "a table is not created with a broken policy",
        Step(
            "CreateTable",
            table("Hash", "pk:S", ResourcePolicy="{"),
            invalid(f"{DOCUMENT}This policy contains invalid Json"),
        ),
        Step("DescribeTable", {"TableName": "Hash"}, Fails("ResourceNotFoundException")),
        local="does not check the policy",
    ),
    stored("one action in a list becomes a text", one(Action=["dynamodb:GetItem"]), document()),
    stored(
        "several actions stay as they are",
        one(Action=["dynamodb:Query", "dynamodb:GetItem", "dynamodb:Query"]),
        one(Action=["dynamodb:Query", "dynamodb:GetItem", "dynamodb:Query"]),
    ),
    stored("one resource in a list becomes a text", one(Resource=[ARN]), document()),
    stored("another resource may be named", one(Resource=NOWHERE), one(Resource=NOWHERE)),
    stored("an account becomes its root", one(Principal={"AWS": ACCOUNT}), document()),
    stored("one principal given twice becomes one", one(Principal={"AWS": [ACCOUNT, ROOT]}), document()),
    stored("an effect has a capital letter", one(Effect="allow"), document()),
    stored("one statement becomes a list", document() | {"Statement": STATEMENT}, document()),
    stored("a statement without Sid has none", document(without("Sid")), document(without("Sid"))),
    stored(
        "a policy without version has the first one",
        {"Statement": [STATEMENT]},
        {"Version": "2008-10-17", "Statement": [STATEMENT]},
    ),
    stored(
        "members have one order",
        {"Statement": [dict(reversed(list(STATEMENT.items())))], "Version": "2012-10-17"},
        document(),
    ),
    stored(
        "one value of a condition becomes a text",
        one(Condition={"StringEquals": {"aws:PrincipalAccount": [ACCOUNT]}}),
        one(Condition={"StringEquals": {"aws:PrincipalAccount": ACCOUNT}}),
    ),
    stored(
        "everyone may be denied",
        one(Effect="Deny", Principal="*"),
        one(Effect="Deny", Principal="*"),
    ),
    case(
        "a policy has at most 20,480 bytes, white space included",
        put(text(document()).ljust(20_480)),
        put(text(document()).ljust(20_481), invalid(f"{WRONG}Maximum policy size of 20480 bytes exceeded")),
        tables="Hash",
        local=UNKNOWN,
    ),
    *(
        refused(f"{what} is not a policy", given, f"{DOCUMENT}This policy contains invalid Json")
        for what, given in (("a text", "{not json"), ("nothing", ""))
    ),
    refused(
        "a policy needs a statement",
        document() | {"Statement": []},
        f"{DOCUMENT}Could not parse the policy: Statement is empty!",
    ),
    *(
        refused(
            f"a statement needs {member}",
            document(without(member)),
            f"{DOCUMENT}Missing required field {member}",
        )
        for member in ("Effect", "Principal", "Action", "Resource")
    ),
    refused(
        "two statements have two Sids",
        document(STATEMENT, STATEMENT),
        f"{DOCUMENT}The Statement Ids in the policy are not unique",
    ),
    refused("everyone may not be allowed", one(Principal="*"), UNBOUNDED),
    refused("everyone may not be allowed as an AWS principal", one(Principal={"AWS": "*"}), UNBOUNDED),
    case(
        "everyone may be allowed on a condition",
        put(one(Principal="*", Condition={"StringEquals": {"aws:PrincipalOrgID": "o-1"}})),
        tables="Hash",
        local=UNKNOWN,
    ),
    case(
        "a bare account is not a principal",
        put(one(Principal=ACCOUNT), invalid(None)),
        tables="Hash",
        local=UNKNOWN,
    ),
    *revisions(),
    case(
        "NO_POLICY attaches the first policy, and no second one",
        put(ExpectedRevisionId="NO_POLICY"),
        put(one(Sid="Second"), Fails("PolicyNotFoundException"), ExpectedRevisionId="NO_POLICY"),
        get(reads(document())),
        tables="Hash",
        local=UNKNOWN,
    ),
    *(
        case(
            f"an expected revision without a policy fails: {step.operation}",
            step,
            tables="Hash",
            local=UNKNOWN,
        )
        for step in (
            put(
                expect=Fails(
                    "PolicyNotFoundException",
                    "Resource-based policy not found for the provided ResourceArn: Requested update for policy "
                    "with revision id 123, but table Hash has no associated policy.",
                ),
                ExpectedRevisionId="123",
            ),
            delete(Fails("PolicyNotFoundException"), ExpectedRevisionId="123"),
        )
    ),
    stream_story(),
    *(
        case(
            f"{operation} by {what}",
            Step(operation, {"ResourceArn": arn, **members}, expect),
            tables="Hash Indexed",
            local=UNKNOWN,
        )
        for operation, members in (
            ("GetResourcePolicy", {}),
            ("PutResourcePolicy", {"Policy": text(document())}),
            ("DeleteResourcePolicy", {}),
        )
        for what, arn, expect in (
            ("a name", "Hash", invalid(f"{WRONG}ARNs must start with 'arn:': Hash")),
            ("the ARN of a table that is not there", NOWHERE, missing("Nowhere")),
            (
                "the ARN of an index",
                ARN.replace("Hash", "Indexed/index/gall"),
                Fails("ValidationException"),
            ),
            (
                "the ARN of a backup",
                f"{ARN}/backup/0170",
                invalid(f"{WRONG}Provided Arn is not a DynamoDB resource arn: {ARN}/backup/0170"),
            ),
        )
    ),
]


def _hidden(description: Json) -> None:
    assert not [name for name in description if "Polic" in name]
