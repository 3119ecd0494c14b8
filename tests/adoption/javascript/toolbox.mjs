// A shop as DynamoDB-Toolbox entities: ids only in the key, computed keys, type and time attributes.
import { DynamoDBDocumentClient } from "@aws-sdk/lib-dynamodb";
import {
  boolean, item, list, map, number, prefix, set, string,
  Entity, GetItemCommand, PutItemCommand, QueryCommand, Table, UpdateItemCommand, $add,
} from "dynamodb-toolbox";
import { client, createTable, main, printItems, same } from "./client.mjs";

const name = "Shop";
const table = new Table({
  name,
  partitionKey: { name: "PK", type: "string" },
  sortKey: { name: "SK", type: "string" },
  indexes: {
    GSI1: {
      type: "global",
      partitionKey: { name: "GSI1PK", type: "string" },
      sortKey: { name: "GSI1SK", type: "string" },
    },
  },
  documentClient: DynamoDBDocumentClient.from(client, { marshallOptions: { removeUndefinedValues: true } }),
});

const Customer = new Entity({
  name: "Customer",
  table,
  schema: item({
    customerId: string().key().savedAs("PK").transform(prefix("CUSTOMER")),
    kind: string().key().savedAs("SK").const("PROFILE").putDefault("PROFILE"),
    email: string(),
    points: number().default(0),
    vip: boolean().optional(),
    labels: set(string()).optional(),
    address: map({ city: string(), zip: string().optional() }).optional(),
    notes: list(string()).optional(),
  }),
});

const byStatus = ({ status }) => status && `STATUS#${status}`;
const byTime = ({ placedAt, orderId }) => placedAt && `${placedAt}#${orderId}`;

const Order = new Entity({
  name: "Order",
  table,
  schema: item({
    customerId: string().key(),
    orderId: string().key(),
    status: string().enum("open", "sent"),
    total: number(),
    placedAt: string(),
  }).and(() => ({
    GSI1PK: string().hidden().link(byStatus).updateLink(byStatus),
    GSI1SK: string().hidden().link(byTime).updateLink(byTime),
  })),
  computeKey: ({ customerId, orderId }) => ({ PK: `CUSTOMER#${customerId}`, SK: `ORDER#${orderId}` }),
});

async function write() {
  await createTable(name, ["PK", "SK"], { GSI1: ["GSI1PK", "GSI1SK"] });
  const put = (entity, values) => entity.build(PutItemCommand).item(values).send();
  await put(Customer, {
    customerId: "zoe",
    email: "zoe@example.org",
    points: 3,
    vip: true,
    labels: new Set(["a", "b"]),
    address: { city: "Oslo" },
    notes: ["first"],
  });
  await put(Customer, { customerId: "max", email: "max@example.org" });
  await put(Order, {
    customerId: "zoe", orderId: "O-1", status: "open", total: 12.5, placedAt: "2026-01-02T03:04:05.678Z",
  });
  await put(Order, {
    customerId: "zoe", orderId: "O-2", status: "sent", total: 7, placedAt: "2026-01-03T00:00:00.000Z",
  });
  await printItems(name);
}

// solotable put Zoe unchanged, sent order O-1, added points to Max, created customer "ann" with order O-3.
async function verify() {
  const get = async (entity, key) => (await entity.build(GetItemCommand).key(key).send()).Item;
  const zoe = await get(Customer, { customerId: "zoe", kind: "PROFILE" });
  same([zoe.customerId, zoe.email, zoe.points, zoe.vip], ["zoe", "zoe@example.org", 3, true], "Zoe");
  same([[...zoe.labels].sort(), zoe.address, zoe.notes], [["a", "b"], { city: "Oslo" }, ["first"]], "values");
  const ann = await get(Customer, { customerId: "ann", kind: "PROFILE" });
  same([ann.email, ann.points], ["ann@example.org", 0], "Ann");
  same([ann.created.length, ann.modified.length], [24, 24], "Ann's stamps");
  same((await get(Customer, { customerId: "max", kind: "PROFILE" })).points, 5, "Max's points");
  const query = (partition, index) =>
    table.build(QueryCommand).entities(Customer, Order).query({ partition, ...(index && { index }) }).send();
  const { Items: all } = await query("CUSTOMER#zoe");
  same(all.map((each) => each.orderId ?? each.customerId), ["O-1", "O-2", "zoe"], "Zoe's items");
  const { Items: sent } = await query("STATUS#sent", "GSI1");
  same(sent.map((each) => each.orderId), ["O-1", "O-2"], "sent orders");
  const { Items: open } = await query("STATUS#open", "GSI1");
  same(open.map((each) => [each.customerId, each.total]), [["ann", 99]], "open orders");
  // An update by DynamoDB-Toolbox of what solotable wrote, with an index key.
  await Order.build(UpdateItemCommand)
    .item({ customerId: "ann", orderId: "O-3", status: "sent", placedAt: "2026-01-04T00:00:00.000Z" })
    .send();
  await Customer.build(UpdateItemCommand).item({ customerId: "ann", points: $add(2) }).send();
  await printItems(name);
}

await main({ write, verify });
