// An ordinary program on the AWS SDK for JavaScript v3: a library that lends books. It knows nothing of
// solotable; where DynamoDB is comes from AWS_ENDPOINT_URL, as the SDK itself reads it.
import {
  CreateTableCommand,
  DeleteTableCommand,
  DescribeTableCommand,
  DynamoDBClient,
  ListTablesCommand,
  ScanCommand as PlainScanCommand,
  waitUntilTableExists,
} from "@aws-sdk/client-dynamodb";
import {
  DescribeStreamCommand,
  DynamoDBStreamsClient,
  GetRecordsCommand,
  GetShardIteratorCommand,
  ListStreamsCommand,
} from "@aws-sdk/client-dynamodb-streams";
import {
  BatchWriteCommand,
  DynamoDBDocumentClient,
  GetCommand,
  PutCommand,
  QueryCommand,
  TransactWriteCommand,
  UpdateCommand,
  paginateQuery,
} from "@aws-sdk/lib-dynamodb";

const client = new DynamoDBClient({});
const documents = DynamoDBDocumentClient.from(client, { marshallOptions: { removeUndefinedValues: true } });
const TableName = "Library";

await client.send(
  new CreateTableCommand({
    TableName,
    AttributeDefinitions: [
      { AttributeName: "pk", AttributeType: "S" },
      { AttributeName: "sk", AttributeType: "S" },
      { AttributeName: "due", AttributeType: "N" },
    ],
    KeySchema: [
      { AttributeName: "pk", KeyType: "HASH" },
      { AttributeName: "sk", KeyType: "RANGE" },
    ],
    GlobalSecondaryIndexes: [
      {
        IndexName: "byDue",
        KeySchema: [
          { AttributeName: "pk", KeyType: "HASH" },
          { AttributeName: "due", KeyType: "RANGE" },
        ],
        Projection: { ProjectionType: "ALL" },
      },
    ],
    BillingMode: "PAY_PER_REQUEST",
    StreamSpecification: { StreamEnabled: true, StreamViewType: "NEW_AND_OLD_IMAGES" },
  }),
);
await waitUntilTableExists({ client, maxWaitTime: 30 }, { TableName });
const { Table } = await client.send(new DescribeTableCommand({ TableName }));
console.log(`table ${Table.TableName} is ${Table.TableStatus}, made ${Table.CreationDateTime instanceof Date}`);

await documents.send(
  new PutCommand({
    TableName,
    Item: {
      pk: "BOOK#1",
      sk: "BOOK",
      title: "Tove's Æventyr 🐉",
      pages: 321,
      tags: new Set(["fantasy", "nordic"]),
      cover: new Uint8Array([0, 1, 255]),
      shelf: { room: 2, lent: false, notes: [null, "worn", 1.5] },
      gone: undefined,
    },
  }),
);
const { Item } = await documents.send(
  new GetCommand({ TableName, Key: { pk: "BOOK#1", sk: "BOOK" }, ConsistentRead: true }),
);
console.log(`${Item.title}, ${Item.pages} pages, ${[...Item.tags].sort()}, ${[...Item.cover]}`);
console.log(JSON.stringify(Item.shelf), "gone" in Item);

try {
  await documents.send(
    new PutCommand({
      TableName,
      Item: { pk: "BOOK#1", sk: "BOOK" },
      ConditionExpression: "attribute_not_exists(pk)",
      ReturnValuesOnConditionCheckFailure: "ALL_OLD",
    }),
  );
} catch (error) {
  console.log(`${error.name} ${error.$metadata.httpStatusCode} ${error.message} ${error.Item.pages.N}`);
}

for (let start = 0; start < 50; start += 25) {
  await documents.send(
    new BatchWriteCommand({
      RequestItems: {
        [TableName]: Array.from({ length: 25 }, (_, index) => ({
          PutRequest: {
            Item: { pk: "READER#1", sk: `LOAN#${String(start + index).padStart(3, "0")}`, due: start + index },
          },
        })),
      },
    }),
  );
}
const page = await documents.send(
  new QueryCommand({
    TableName,
    IndexName: "byDue",
    KeyConditionExpression: "pk = :reader AND due BETWEEN :from AND :to",
    ExpressionAttributeValues: { ":reader": "READER#1", ":from": 3, ":to": 6 },
    ScanIndexForward: false,
  }),
);
console.log(`due: ${page.Items.map((item) => item.due)}`);
const pages = [];
for await (const part of paginateQuery(
  { client: documents, pageSize: 20 },
  {
    TableName,
    KeyConditionExpression: "pk = :reader AND begins_with(sk, :loan)",
    ExpressionAttributeValues: { ":reader": "READER#1", ":loan": "LOAN#" },
  },
)) {
  pages.push(part.Count);
}
console.log(`pages: ${pages}`);

const { Attributes } = await documents.send(
  new UpdateCommand({
    TableName,
    Key: { pk: "BOOK#1", sk: "BOOK" },
    UpdateExpression: "SET pages = pages + :one, shelf.#l = :yes",
    ExpressionAttributeNames: { "#l": "lent" },
    ExpressionAttributeValues: { ":one": 1, ":yes": true },
    ReturnValues: "ALL_NEW",
  }),
);
console.log(`updated: ${Attributes.pages} ${Attributes.shelf.lent}`);

const lend = (reader) =>
  documents.send(
    new TransactWriteCommand({
      TransactItems: [
        {
          Update: {
            TableName,
            Key: { pk: "BOOK#1", sk: "BOOK" },
            UpdateExpression: "SET holder = :reader",
            ConditionExpression: "attribute_not_exists(holder)",
            ExpressionAttributeValues: { ":reader": reader },
          },
        },
        { Put: { TableName, Item: { pk: reader, sk: "HOLDS#1" } } },
      ],
    }),
  );
await lend("READER#1");
try {
  await lend("READER#2");
} catch (error) {
  console.log(`${error.name}: ${error.CancellationReasons.map((reason) => reason.Code)}`);
}

const many = await client.send(new PlainScanCommand({ TableName, Select: "COUNT" }));
console.log(`items: ${many.Count}`);

const streams = new DynamoDBStreamsClient({});
const { Streams } = await streams.send(new ListStreamsCommand({ TableName }));
const { StreamDescription } = await streams.send(
  new DescribeStreamCommand({ StreamArn: Streams[0].StreamArn }),
);
let changes = 0;
let first;
for (const shard of StreamDescription.Shards) {
  let { ShardIterator } = await streams.send(
    new GetShardIteratorCommand({
      StreamArn: Streams[0].StreamArn,
      ShardId: shard.ShardId,
      ShardIteratorType: "TRIM_HORIZON",
    }),
  );
  const { Records } = await streams.send(new GetRecordsCommand({ ShardIterator }));
  first ??= Records[0];
  changes += Records.length;
}
console.log(`changes: ${changes}, first ${first.eventName} of ${first.dynamodb.Keys.pk.S}`);

await client.send(new DeleteTableCommand({ TableName }));
try {
  await documents.send(new GetCommand({ TableName, Key: { pk: "x", sk: "y" } }));
} catch (error) {
  console.log(`${error.name}: ${error.message}`);
}
console.log(`tables: ${(await client.send(new ListTablesCommand({}))).TableNames.length}`);
