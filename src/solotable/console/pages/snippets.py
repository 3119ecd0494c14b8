"""A request as text to paste: for the AWS CLI, for boto3, and as a call of solotable."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Mapping
from typing import Any

_WORD = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")


def aws_cli(operation: str, members: Mapping[str, Any]) -> str:
    """Return the command of the AWS CLI.

    >>> print(aws_cli("Query", {"TableName": "Shop", "ScanIndexForward": False}))
    aws dynamodb query \\
      --table-name Shop \\
      --no-scan-index-forward
    """
    lines = [f"aws dynamodb {_kebab(operation)}"]
    for name, value in members.items():
        option = f"--{_kebab(name)}"
        if isinstance(value, bool):
            lines.append(option if value else f"--no-{option[2:]}")
        else:
            text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
            lines.append(f"{option} {shlex.quote(text)}")
    return " \\\n  ".join(lines)


def boto3_call(operation: str, members: Mapping[str, Any]) -> str:
    """Return the call of a boto3 client.

    >>> print(boto3_call("GetItem", {"TableName": "Shop"}))
    client = boto3.client("dynamodb")
    client.get_item(
        TableName='Shop',
    )
    """
    rows = [f"    {name}={value!r}," for name, value in members.items()]
    head = f'client = boto3.client("dynamodb")\nclient.{_kebab(operation).replace("-", "_")}('
    return "\n".join([head, *rows, ")"])


def solotable_call(pattern: str, arguments: Mapping[str, Any], tenant: str | None, limit: int) -> str:
    """Return the call of a store."""
    given = ", ".join(f"{name}={value!r}" for name, value in arguments.items())
    scope = f"db = database.tenant({tenant!r})\n" if tenant is not None else ""
    return f"{scope}page = db.page({pattern}({given}), limit={limit})"


def _kebab(name: str) -> str:
    return _WORD.sub("-", name).lower()
