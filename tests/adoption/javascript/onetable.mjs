// Accounts with users and invoices as a OneTable schema: typed items, times as epoch milliseconds.
import { Table } from "dynamodb-onetable";
import { client, createTable, main, printItems, same } from "./client.mjs";

const schema = {
  format: "onetable:1.1.0",
  version: "0.0.1",
  indexes: {
    primary: { hash: "pk", sort: "sk" },
    gs1: { hash: "gs1pk", sort: "gs1sk", project: "all" },
  },
  models: {
    Account: {
      pk: { type: String, value: "account#${id}" },
      sk: { type: String, value: "account#" },
      id: { type: String, required: true },
      name: { type: String, required: true },
      balance: { type: Number, default: 0 },
    },
    User: {
      pk: { type: String, value: "account#${accountId}" },
      sk: { type: String, value: "user#${id}" },
      gs1pk: { type: String, value: "user#" },
      gs1sk: { type: String, value: "user#${email}" },
      accountId: { type: String, required: true },
      id: { type: String, required: true },
      email: { type: String, required: true },
      age: { type: Number },
      admin: { type: Boolean, default: false },
      tags: { type: Set },
      born: { type: Date },
      address: { type: Object, schema: { city: { type: String }, zip: { type: String } } },
      nickname: { type: String },
    },
    Invoice: {
      pk: { type: String, value: "account#${accountId}" },
      sk: { type: String, value: "invoice#${number:6}" },
      gs1pk: { type: String, value: "invoice#${status}" },
      gs1sk: { type: String, value: "invoice#${accountId}#${number:6}" },
      accountId: { type: String, required: true },
      number: { type: Number, required: true },
      status: { type: String, enum: ["open", "paid"], default: "open" },
      total: { type: Number, required: true },
    },
  },
  params: { isoDates: false, timestamps: true },
};

const name = "Accounts";
const table = new Table({ client, name, schema, partial: false });
const [Account, User, Invoice] = ["Account", "User", "Invoice"].map((each) => table.getModel(each));
const born = new Date("1990-05-04T03:02:01.250Z");
const zoe = {
  accountId: "A1",
  id: "zoe",
  email: "Zoe@Example.org",
  age: 35,
  tags: new Set(["a", "b"]),
  born,
  address: { city: "Oslo", zip: "0150" },
};

async function write() {
  await createTable(name, ["pk", "sk"], { gs1: ["gs1pk", "gs1sk"] });
  await Account.create({ id: "A1", name: "Acme", balance: 12.5 });
  await User.create(zoe);
  await User.create({ accountId: "A1", id: "max", email: "max@example.org", nickname: "M", admin: true });
  await Invoice.create({ accountId: "A1", number: 7, total: 99.9 });
  await Invoice.create({ accountId: "A1", number: 12, total: 10, status: "paid" });
  await printItems(name);
}

// solotable put Zoe unchanged, changed Max's address, paid invoice 7, created the user "ann" and invoice 100.
async function verify() {
  const unchanged = await User.get({ accountId: "A1", id: "zoe" });
  same([unchanged.email, unchanged.age, unchanged.admin], ["Zoe@Example.org", 35, false], "Zoe");
  same([unchanged.born.getTime(), unchanged.address], [born.getTime(), zoe.address], "Zoe's values");
  same([...unchanged.tags].sort(), ["a", "b"], "Zoe's tags");
  same(unchanged.created instanceof Date && unchanged.updated instanceof Date, true, "Zoe's stamps");
  const ann = await User.get({ accountId: "A1", id: "ann" });
  same([ann.email, ann.created instanceof Date, ann.age], ["ann@example.org", true, undefined], "Ann");
  const moved = await User.find({ gs1pk: "user#", gs1sk: { begins: "user#maximilian" } }, { index: "gs1" });
  same(moved.map((each) => each.id), ["max"], "users by e-mail");
  const paid = await Invoice.find({ status: "paid" }, { index: "gs1" });
  same(paid.map((each) => each.number), [7, 12], "paid invoices");
  const invoices = await Invoice.find({ accountId: "A1" });
  same(invoices.map((each) => [each.number, each.total]), [[7, 99.9], [12, 10], [100, 5.25]], "invoices");
  const items = await table.queryItems({ pk: "account#A1" }, { parse: true, hidden: true });
  same(items.map((each) => each._type).sort().join(), "Account,Invoice,Invoice,Invoice,User,User,User", "types");
  // An update by OneTable of what solotable wrote, with an index key.
  await Invoice.update({ accountId: "A1", number: 100, status: "paid" });
  await User.update({ accountId: "A1", id: "ann", nickname: "Annie", email: "annie@example.org" });
  await Account.update({ id: "A1" }, { add: { balance: 1 } });
  await printItems(name);
}

await main({ write, verify });
