"""Check the ResourceArn member of requests."""

from __future__ import annotations

from solotable.errors import invalid_parameter


def check_resource(arn: str) -> None:
    """Reject a text that is not a DynamoDB ARN, and an ARN of an index."""
    if not arn.startswith("arn:"):
        raise invalid_parameter(f"ARNs must start with 'arn:': {arn}")
    parts = arn.split(":", 5)
    if len(parts) < 6 or parts[2] != "dynamodb":
        raise invalid_parameter(f"Provided Arn is not a DynamoDB resource arn: {arn}")
    if "/index/" in parts[5]:
        raise invalid_parameter(
            f"Invalid resource arn provided, only table or stream is accepted. Provided resource arn: {arn}"
        )
