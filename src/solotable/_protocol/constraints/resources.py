"""Constraints of operations on resource policies and Contributor Insights."""

from __future__ import annotations

from typing import Final

from solotable._values.limits import (
    LONGEST_RESOURCE_ARN,
    LONGEST_REVISION,
    LONGEST_TABLE_ARN,
    MOST_LISTED_INSIGHTS,
)

from .items import INDEX
from .kinds import Flag, Struct, Text, Whole

# DynamoDB: control operations check that the table's name is there before all else.
DEMANDED_TABLE: Final = Text(demanded=True, longest=LONGEST_TABLE_ARN)

_RESOURCE = Text(required=True, shortest=1, longest=LONGEST_RESOURCE_ARN)
_REVISION = Text(shortest=1, longest=LONGEST_REVISION)

POLICIES: Final[dict[str, Struct]] = {
    "PutResourcePolicy": Struct(
        java="PutResourcePolicyInput",
        members={
            "ResourceArn": _RESOURCE,
            "Policy": Text(required=True),
            "ExpectedRevisionId": _REVISION,
            "ConfirmRemoveSelfResourceAccess": Flag(),
        },
    ),
    "GetResourcePolicy": Struct(java="GetResourcePolicyInput", members={"ResourceArn": _RESOURCE}),
    "DeleteResourcePolicy": Struct(
        java="DeleteResourcePolicyInput",
        members={"ResourceArn": _RESOURCE, "ExpectedRevisionId": _REVISION},
    ),
}

INSIGHTS: Final[dict[str, Struct]] = {
    "DescribeContributorInsights": Struct(
        java="DescribeContributorInsightsInput", members={"TableName": DEMANDED_TABLE, "IndexName": INDEX}
    ),
    "UpdateContributorInsights": Struct(
        java="UpdateContributorInsightsInput",
        members={
            "TableName": DEMANDED_TABLE,
            "IndexName": INDEX,
            "ContributorInsightsAction": Text(required=True, enum=("ENABLE", "DISABLE")),
            "ContributorInsightsMode": Text(enum=("ACCESSED_AND_THROTTLED_KEYS", "THROTTLED_KEYS")),
        },
    ),
    "ListContributorInsights": Struct(
        java="ListContributorInsightsInput",
        members={
            "TableName": Text(shortest=1, longest=LONGEST_TABLE_ARN),
            "NextToken": Text(),
            "MaxResults": Whole(least=1, most=MOST_LISTED_INSIGHTS),
        },
    ),
}
