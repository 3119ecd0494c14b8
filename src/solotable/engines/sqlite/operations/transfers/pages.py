"""What the operations on exports and imports share: ARNs of tables and jobs, and pages of lists."""

from __future__ import annotations

import re
from typing import Any

from solotable.engines.sqlite.tables.definitions import ACCOUNT, REGION
from solotable.engines.sqlite.transfers.jobs import Job
from solotable.errors import ServiceError, invalid, invalid_parameter

#: AWS: the default length of a page.
_PAGE = 10
_TABLE_ARN = re.compile(r"arn:[^:]+:dynamodb:([^:]*):([^:]*):table/([a-zA-Z0-9_.-]{3,255})(/.*)?")
_SHORTEST_TOKEN = 56
_END = b"\1"


def named_table(arn: str) -> str:
    """Return the name of the table of an ARN, or raise DynamoDB's error."""
    found = _TABLE_ARN.fullmatch(arn)
    if found is None:
        raise invalid_parameter("tableArn is not a valid ARN")
    region, account, name, rest = found.groups()
    if rest:
        raise invalid("Invalid Request: Table ARN is invalid.")
    if account != ACCOUNT:
        raise ServiceError("AccessDeniedException", "Access is denied")
    if region != REGION:
        raise ServiceError("TableNotFoundException", f"Table not found: {arn}")
    return name


def check_job_arn(arn: str, kind: str) -> None:
    """Reject what is not the ARN of an export or import of this account."""
    found = re.fullmatch(rf"arn:[^:]+:dynamodb:[^:]*:([^:]*):table/[a-zA-Z0-9_.-]{{3,255}}/{kind}/[^/]+", arn)
    if found is None:
        raise invalid(f"Invalid {kind.capitalize()} ARN")
    if found[1] != ACCOUNT:
        raise ServiceError("AccessDeniedException", "Access is denied")


def cut_page(jobs: list[Job], members: dict[str, Any], limit: str, kind: str) -> tuple[list[Job], str | None]:
    """Return a page of jobs, and the token of the next page."""
    start = 0
    if "NextToken" in members:
        after = _decode_token(members["NextToken"], kind)
        # Newest first: a page begins with the first job that is older than the last one of the page before.
        start = sum(_order(job.arn) >= _order(after) for job in jobs)
    end = start + members.get(limit, _PAGE)
    page = jobs[start:end]
    return page, _encode_token(page[-1].arn, kind) if end < len(jobs) else None


def _order(arn: str) -> str:
    return arn.rpartition("/")[2]


def _encode_token(arn: str, kind: str) -> str:
    # AWS: a token has at least 112 hexadecimal digits, in groups of 16.
    content = f"{kind} {arn}".encode() + _END
    padded = max(_SHORTEST_TOKEN, -(-len(content) // 8) * 8)
    return content.ljust(padded, b"\0").hex()


def _decode_token(token: str, kind: str) -> str:
    try:
        found, _, arn = bytes.fromhex(token).rstrip(b"\0").removesuffix(_END).decode().partition(" ")
    except ValueError:
        found = arn = ""
    if found != kind or not arn:
        raise invalid(f"Invalid Request: Provided nextToken is invalid: {token}")
    return arn
