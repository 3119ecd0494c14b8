"""Check policy documents of tables and streams, and convert them to the form that AWS returns.

AWS's form is minified, has a fixed order of members, and a text instead of a list of one. Nothing here
evaluates a policy, or checks that actions, resources and principals exist.
"""

from __future__ import annotations

from typing import Any, Final

from solotable._protocol.json_codec import dumps, loads
from solotable._values.limits import LARGEST_POLICY
from solotable.errors import ServiceError, invalid, invalid_parameter

Policy = dict[str, Any]

#: The members of a statement in AWS's order; a statement has one of each group.
_MEMBERS: Final = (
    ("Sid",),
    ("Effect",),
    ("Principal", "NotPrincipal"),
    ("Action", "NotAction"),
    ("Resource", "NotResource"),
    ("Condition",),
)
_OPTIONAL: Final = frozenset({"Sid", "Condition"})
_EFFECTS: Final = {"allow": "Allow", "deny": "Deny"}
#: The version of a document without one.
_FIRST_VERSION: Final = "2008-10-17"
_ROOT: Final = "arn:aws:iam::{}:root"
_UNBOUNDED: Final = (
    "Resource-based policy grants unbounded access in one or more elements. Please revise the policy to "
    "ensure least-privilege form of access"
)


def parse_policy(text: str) -> Policy:
    """Return a policy in AWS's form, or raise AWS's error for the document."""
    # DynamoDB: counts white space.
    if len(text.encode()) > LARGEST_POLICY:
        raise invalid_parameter(f"Maximum policy size of {LARGEST_POLICY} bytes exceeded")
    try:
        given = loads(text.encode())
    except ValueError:
        raise _invalid_document("This policy contains invalid Json") from None
    if not isinstance(given, dict):
        raise _invalid_document("This policy contains invalid Json")
    statements = given.pop("Statement", [])
    if isinstance(statements, dict):
        statements = [statements]
    if not isinstance(statements, list) or not statements:
        raise _invalid_document("Could not parse the policy: Statement is empty!")
    version = given.pop("Version", None)
    policy = {
        **({} if version is None else {"Version": version}),
        **given,
        "Statement": [_statement(one) for one in statements],
    }
    _check_sids(policy["Statement"])
    for statement in policy["Statement"]:
        if statement["Effect"] == "Allow" and "Condition" not in statement and _is_unbounded(statement):
            raise invalid(_UNBOUNDED)
    return policy


def render_policy(policy: Policy) -> str:
    """Return the document that AWS returns for a policy."""
    return dumps({"Version": _FIRST_VERSION, **policy}).decode()


def _statement(given: Any) -> Policy:
    if not isinstance(given, dict):
        raise _invalid_document("Could not parse the policy: Statement is invalid!")
    statement: Policy = {}
    for names in _MEMBERS:
        present = next((name for name in names if name in given), None)
        if present is not None:
            statement[present] = _member(present, given[present])
        elif names[0] not in _OPTIONAL:
            raise _invalid_document(f"Missing required field {names[0]}")
    return statement | {name: value for name, value in given.items() if name not in statement}


def _member(name: str, value: Any) -> Any:
    match name, value:
        case "Sid", str():
            return value
        case "Effect", str() if value.lower() in _EFFECTS:
            return _EFFECTS[value.lower()]
        case (("Principal" | "NotPrincipal"), _):
            return _principal(value)
        case "Condition", dict():
            return {operator: _keys(keys) for operator, keys in value.items()}
        case (("Sid" | "Effect" | "Condition"), _):
            pass
        case _, str():
            return value
        case _, [_, *_] if all(isinstance(each, str) for each in value):
            return _one_or_many(value)
    raise _invalid_document(f"Could not parse the policy: {name} is invalid!")


def _keys(keys: Any) -> Any:
    return {key: _one_or_many(value) for key, value in keys.items()} if isinstance(keys, dict) else keys


def _principal(value: Any) -> Any:
    if value == "*":
        return value
    if not isinstance(value, dict) or not value:
        raise _no_principal()
    return {kind: _one_or_many(_principals(kind, names)) for kind, names in value.items()}


def _principals(kind: str, names: Any) -> list[str]:
    """Return principals of a kind, each once, and accounts as the ARNs of their roots."""
    listed = names if isinstance(names, list) else [names]
    if not listed or not all(isinstance(name, str) for name in listed):
        raise _no_principal()
    if kind == "AWS":
        listed = [_ROOT.format(name) if len(name) == 12 and name.isdecimal() else name for name in listed]
    return list(dict.fromkeys(listed))


def _one_or_many(value: Any) -> Any:
    return value[0] if isinstance(value, list) and len(value) == 1 else value


def _is_unbounded(statement: Policy) -> bool:
    principal = statement.get("Principal")
    if principal is None or principal == "*":
        return True
    named = principal.get("AWS", ())
    return bool(named == "*" or (isinstance(named, list) and "*" in named))


def _check_sids(statements: list[Policy]) -> None:
    sids = [statement["Sid"] for statement in statements if "Sid" in statement]
    if len(set(sids)) < len(sids):
        raise _invalid_document("The Statement Ids in the policy are not unique")


def _no_principal() -> ServiceError:
    return invalid_parameter("Invalid principal in policy document.")


def _invalid_document(fault: str) -> ServiceError:
    return invalid_parameter(f"Invalid policy document: {fault}")
