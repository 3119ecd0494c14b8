"""`solotable limiter template`: a CloudFormation template of the table, its jobs and their alarms."""

from __future__ import annotations

from typing import Any

import click

from solotable.cli.output import print_json

_HANDLER = "solotable.systems.limiter.usage.lambda_handler.handler"
#: What the jobs send; a transaction needs the actions of its parts.
TABLE_ACTIONS = (
    "dynamodb:BatchGetItem",
    "dynamodb:BatchWriteItem",
    "dynamodb:ConditionCheckItem",
    "dynamodb:DeleteItem",
    "dynamodb:DescribeTable",
    "dynamodb:GetItem",
    "dynamodb:PutItem",
    "dynamodb:Query",
    "dynamodb:UpdateItem",
)
STREAM_ACTIONS = ("dynamodb:DescribeStream", "dynamodb:GetRecords", "dynamodb:GetShardIterator")


@click.command(
    "template",
    epilog="Example: solotable limiter template --table Limits > limiter.json",
)
@click.option("--table", default="Limiter", show_default=True, metavar="NAME", help="Name of the table.")
@click.option(
    "--minutes",
    type=click.IntRange(1, 720),
    default=1,
    show_default=True,
    help="Time between two runs of the jobs.",
)
def template(table: str, minutes: int) -> None:
    """Print a CloudFormation template of the table and of its jobs on AWS Lambda.

    The jobs count usage and deliver the audit trail. The parameters are the bucket and the key of a ZIP file
    with solotable, and a topic for alarms. Deleting the stack keeps the table.
    """
    print_json(build_template(table, minutes))


def build_template(table: str, minutes: int) -> dict[str, Any]:
    """Return the template."""
    from solotable._entities.schema.export import cloudformation
    from solotable.systems.limiter import limiter

    (resource,) = cloudformation([(limiter, table)])["Resources"].values()
    resource["Properties"]["PointInTimeRecoverySpecification"] = {"PointInTimeRecoveryEnabled": True}
    return {
        "AWSTemplateFormatVersion": "2010-09-09",
        "Description": "The table of solotable's rate limiter, and its jobs.",
        "Parameters": {
            "CodeBucket": {"Type": "String", "Description": "Bucket of the ZIP file with solotable."},
            "CodeKey": {"Type": "String", "Description": "Key of the ZIP file."},
            "AlarmTopic": {
                "Type": "String",
                "Description": "ARN of the SNS topic for alarms.",
                "Default": "",
            },
        },
        "Conditions": {"HasTopic": {"Fn::Not": [{"Fn::Equals": [{"Ref": "AlarmTopic"}, ""]}]}},
        "Resources": {
            "Table": resource,
            "JobsLog": {"Type": "AWS::Logs::LogGroup", "Properties": {"RetentionInDays": 30}},
            "JobsRole": _role(),
            "Jobs": _function(minutes),
            "Schedule": {
                "Type": "AWS::Events::Rule",
                "Properties": {
                    "ScheduleExpression": f"rate({minutes} minute{'' if minutes == 1 else 's'})",
                    "Targets": [{"Id": "Jobs", "Arn": {"Fn::GetAtt": ["Jobs", "Arn"]}}],
                },
            },
            "SchedulePermission": {
                "Type": "AWS::Lambda::Permission",
                "Properties": {
                    "Action": "lambda:InvokeFunction",
                    "FunctionName": {"Ref": "Jobs"},
                    "Principal": "events.amazonaws.com",
                    "SourceArn": {"Fn::GetAtt": ["Schedule", "Arn"]},
                },
            },
            "JobsFail": _alarm(
                "AWS/Lambda", "Errors", {"FunctionName": "Jobs"}, "The jobs of the limiter fail."
            ),
            "TableThrottled": _alarm(
                "AWS/DynamoDB",
                "WriteThrottleEvents",
                {"TableName": "Table"},
                "Writes of buckets are throttled.",
            ),
        },
        "Outputs": {"TableName": {"Value": {"Ref": "Table"}}},
    }


def _role() -> dict[str, Any]:
    table = {"Fn::GetAtt": ["Table", "Arn"]}
    statements = [
        {
            "Effect": "Allow",
            "Action": list(TABLE_ACTIONS),
            "Resource": [table, {"Fn::Sub": "${Table.Arn}/index/*"}],
        },
        {
            "Effect": "Allow",
            "Action": list(STREAM_ACTIONS),
            "Resource": {"Fn::GetAtt": ["Table", "StreamArn"]},
        },
        {
            "Effect": "Allow",
            "Action": ["logs:CreateLogStream", "logs:PutLogEvents"],
            "Resource": {"Fn::GetAtt": ["JobsLog", "Arn"]},
        },
    ]
    trust = {
        "Effect": "Allow",
        "Principal": {"Service": "lambda.amazonaws.com"},
        "Action": "sts:AssumeRole",
    }
    return {
        "Type": "AWS::IAM::Role",
        "Properties": {
            "AssumeRolePolicyDocument": {"Version": "2012-10-17", "Statement": [trust]},
            "Policies": [
                {"PolicyName": "Jobs", "PolicyDocument": {"Version": "2012-10-17", "Statement": statements}}
            ],
        },
    }


def _function(minutes: int) -> dict[str, Any]:
    return {
        "Type": "AWS::Lambda::Function",
        "Properties": {
            "Handler": _HANDLER,
            "Runtime": "python3.13",
            "Architectures": ["arm64"],
            "MemorySize": 512,
            "Timeout": min(60 * minutes, 900),
            # One run at a time is enough; two would do no harm.
            "ReservedConcurrentExecutions": 1,
            "Role": {"Fn::GetAtt": ["JobsRole", "Arn"]},
            "Code": {"S3Bucket": {"Ref": "CodeBucket"}, "S3Key": {"Ref": "CodeKey"}},
            "Environment": {"Variables": {"SOLOTABLE_URL": {"Fn::Sub": "aws://${Table}"}}},
            "LoggingConfig": {"LogGroup": {"Ref": "JobsLog"}},
        },
    }


def _alarm(namespace: str, metric: str, of: dict[str, str], text: str) -> dict[str, Any]:
    return {
        "Type": "AWS::CloudWatch::Alarm",
        "Properties": {
            "AlarmDescription": text,
            "Namespace": namespace,
            "MetricName": metric,
            "Dimensions": [{"Name": name, "Value": {"Ref": ref}} for name, ref in of.items()],
            "Statistic": "Sum",
            "Period": 300,
            "EvaluationPeriods": 3,
            "Threshold": 0,
            "ComparisonOperator": "GreaterThanThreshold",
            "TreatMissingData": "notBreaching",
            "AlarmActions": {"Fn::If": ["HasTopic", [{"Ref": "AlarmTopic"}], {"Ref": "AWS::NoValue"}]},
        },
    }
