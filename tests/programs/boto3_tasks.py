"""A task list on boto3's resource: conditions, an index, batches, pages, counters and transactions."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import boto3
from boto3.dynamodb.conditions import Attr, Key
from boto3.dynamodb.types import Binary
from botocore.exceptions import ClientError

dynamodb = boto3.resource("dynamodb", region_name="eu-west-1")
tasks = dynamodb.Table("tasks")


def create() -> None:
    table = dynamodb.create_table(
        TableName="tasks",
        BillingMode="PAY_PER_REQUEST",
        KeySchema=[
            {"AttributeName": "owner", "KeyType": "HASH"},
            {"AttributeName": "task", "KeyType": "RANGE"},
        ],
        AttributeDefinitions=[
            {"AttributeName": "owner", "AttributeType": "S"},
            {"AttributeName": "task", "AttributeType": "S"},
            {"AttributeName": "due", "AttributeType": "N"},
            {"AttributeName": "state", "AttributeType": "S"},
        ],
        GlobalSecondaryIndexes=[
            {
                "IndexName": "by_state",
                "KeySchema": [
                    {"AttributeName": "state", "KeyType": "HASH"},
                    {"AttributeName": "due", "KeyType": "RANGE"},
                ],
                "Projection": {"ProjectionType": "ALL"},
            }
        ],
    )
    table.wait_until_exists()


def add(owner: str, task: str, **attributes: Any) -> bool:
    """Add a task unless there is one of this name."""
    try:
        tasks.put_item(
            Item={"owner": owner, "task": task, "state": "open", **attributes},
            ConditionExpression=Attr("task").not_exists(),
        )
    except ClientError as refused:
        if refused.response["Error"]["Code"] != "ConditionalCheckFailedException":
            raise
        return False
    return True


def finish(owner: str, task: str) -> int:
    """Finish a task and count it; return how many the owner has finished."""
    dynamodb.meta.client.transact_write_items(
        TransactItems=[
            {
                "Update": {
                    "TableName": "tasks",
                    "Key": {"owner": owner, "task": task},
                    "UpdateExpression": "SET #state = :done REMOVE due",
                    "ConditionExpression": "#state = :open",
                    "ExpressionAttributeNames": {"#state": "state"},
                    "ExpressionAttributeValues": {":done": "done", ":open": "open"},
                }
            },
            {
                "Update": {
                    "TableName": "tasks",
                    "Key": {"owner": owner, "task": "#finished"},
                    "UpdateExpression": "ADD finished :one",
                    "ExpressionAttributeValues": {":one": 1},
                }
            },
        ]
    )
    counter = tasks.get_item(Key={"owner": owner, "task": "#finished"}, ConsistentRead=True)["Item"]
    return int(counter["finished"])


def main() -> list[str]:
    """Play with the list; return what happened."""
    log: list[str] = []
    create()
    log.append(f"status {tasks.table_status}, {tasks.item_count} items")
    log.append(f"first: {add('ana', 'paint', due=3, cost=Decimal('12.50'))}")
    log.append(f"again: {add('ana', 'paint', due=4)}")
    with tasks.batch_writer(overwrite_by_pkeys=["owner", "task"]) as batch:
        for number in range(60):
            batch.put_item(
                Item={
                    "owner": "ben",
                    "task": f"task {number:02}",
                    "state": "open",
                    "due": number,
                    "photo": Binary(bytes([number])),
                    "tags": {"a", "b"},
                    "steps": [{"name": "start", "done": False}, None],
                }
            )
        batch.delete_item(Key={"owner": "ben", "task": "task 59"})
    log.append(
        f"ben has {tasks.query(KeyConditionExpression=Key('owner').eq('ben'), Select='COUNT')['Count']}"
    )

    item = tasks.get_item(Key={"owner": "ben", "task": "task 07"})["Item"]
    start, nothing = item["steps"]
    log.append(f"{item['task']}: {item['photo'].value!r} {sorted(item['tags'])} {start['done']} {nothing}")

    due_soon = tasks.query(
        IndexName="by_state",
        KeyConditionExpression=Key("state").eq("open") & Key("due").between(2, 4),
        FilterExpression=Attr("owner").eq("ana") | Attr("tags").contains("b"),
        ProjectionExpression="task",
    )
    log.append(f"due soon: {sorted(found['task'] for found in due_soon['Items'])}")

    updated = tasks.update_item(
        Key={"owner": "ben", "task": "task 07"},
        UpdateExpression="SET steps[0].done = :yes, notes = list_append(if_not_exists(notes, :none), :note)",
        ExpressionAttributeValues={":yes": True, ":none": [], ":note": ["half way"]},
        ReturnValues="UPDATED_NEW",
    )
    log.append(f"updated: {sorted(updated['Attributes'].items())}")

    log.append(f"ana finished {finish('ana', 'paint')}")
    try:
        finish("ana", "paint")
    except dynamodb.meta.client.exceptions.TransactionCanceledException as refused:
        log.append(
            f"finished already: {[reason['Code'] for reason in refused.response['CancellationReasons']]}"
        )

    pages = dynamodb.meta.client.get_paginator("scan").paginate(
        TableName="tasks", PaginationConfig={"PageSize": 25}
    )
    log.append(f"pages: {[page['Count'] for page in pages]}")
    tasks.delete()
    tasks.wait_until_not_exists()
    log.append(f"tables: {[table.name for table in dynamodb.tables.all()]}")
    return log


if __name__ == "__main__":
    print("\n".join(main()))  # noqa: T201  # a program prints
