// What the programs share: the client, the table, and a check of each expected value.
import { CreateTableCommand, DynamoDBClient, ScanCommand } from "@aws-sdk/client-dynamodb";
import { deepStrictEqual } from "node:assert";

export const client = new DynamoDBClient({});

/** Create a table with string keys; `indexes` has the two key attributes of each index by its name. */
export async function createTable(name, [partition, sort], indexes) {
  const schema = ([hash, range]) => [
    { AttributeName: hash, KeyType: "HASH" },
    { AttributeName: range, KeyType: "RANGE" },
  ];
  const names = new Set([partition, sort, ...Object.values(indexes).flat()]);
  await client.send(
    new CreateTableCommand({
      TableName: name,
      BillingMode: "PAY_PER_REQUEST",
      AttributeDefinitions: [...names].map((each) => ({ AttributeName: each, AttributeType: "S" })),
      KeySchema: schema([partition, sort]),
      GlobalSecondaryIndexes: Object.entries(indexes).map(([index, keys]) => ({
        IndexName: index,
        KeySchema: schema(keys),
        Projection: { ProjectionType: "ALL" },
      })),
    }),
  );
}

/** Print the stored items in wire form, as JSON. */
export async function printItems(name) {
  const { Items } = await client.send(new ScanCommand({ TableName: name, ConsistentRead: true }));
  console.log(JSON.stringify(Items.map((item) => plain(item))));
}

function plain(item) {
  return JSON.parse(
    JSON.stringify(item, (_, value) =>
      value instanceof Uint8Array ? Buffer.from(value).toString("base64") : value,
    ),
  );
}

export function same(actual, expected, what) {
  deepStrictEqual(actual, expected, `${what}: ${JSON.stringify(actual)}`);
}

/** Run the part of the program that the command line names. */
export async function main(parts) {
  const part = parts[process.argv[2]];
  if (part === undefined) throw new Error(`Name one of: ${Object.keys(parts).join(", ")}`);
  await part();
}
