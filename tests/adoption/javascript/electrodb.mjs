// A library of books as an ElectroDB service: two entities in a collection, and loans with a second index.
import { Entity, Service } from "electrodb";
import { client, createTable, main, printItems, same } from "./client.mjs";

const table = "Library";
const stamps = {
  createdAt: { type: "number", default: () => Date.now(), readOnly: true },
  updatedAt: { type: "number", watch: "*", default: () => Date.now(), set: () => Date.now() },
};

const Author = new Entity(
  {
    model: { entity: "author", service: "library", version: "1" },
    attributes: { authorName: { type: "string" }, country: { type: "string" }, ...stamps },
    indexes: {
      author: { pk: { field: "pk", composite: ["authorName"] }, sk: { field: "sk", composite: [] } },
      works: {
        index: "gsi1",
        collection: "works",
        pk: { field: "gsi1pk", composite: ["authorName"] },
        sk: { field: "gsi1sk", composite: [] },
      },
    },
  },
  { client, table },
);

const Book = new Entity(
  {
    model: { entity: "book", service: "library", version: "1" },
    attributes: {
      isbn: { type: "string" },
      title: { type: "string" },
      authorName: { type: "string" },
      pages: { type: "number" },
      price: { type: "number" },
      inPrint: { type: "boolean" },
      genres: { type: "set", items: "string" },
      publishedOn: { type: "string" },
      shelf: { type: "map", properties: { room: { type: "number" }, row: { type: "string" } } },
      subtitle: { type: "string" },
      ...stamps,
    },
    indexes: {
      book: { pk: { field: "pk", composite: ["isbn"] }, sk: { field: "sk", composite: [] } },
      works: {
        index: "gsi1",
        collection: "works",
        pk: { field: "gsi1pk", composite: ["authorName"] },
        sk: { field: "gsi1sk", composite: ["title"] },
      },
    },
  },
  { client, table },
);

const Loan = new Entity(
  {
    model: { entity: "loan", service: "library", version: "1" },
    attributes: {
      memberId: { type: "string" },
      copy: { type: "number" },
      isbn: { type: "string" },
      dueOn: { type: "string" },
      renewals: { type: "number" },
      ...stamps,
    },
    indexes: {
      loan: {
        pk: { field: "pk", composite: ["memberId"] },
        sk: { field: "sk", composite: ["isbn", "copy"] },
      },
      ofBook: {
        index: "gsi2",
        pk: { field: "gsi2pk", composite: ["isbn"] },
        sk: { field: "gsi2sk", composite: ["dueOn"] },
      },
    },
  },
  { client, table },
);

const library = new Service({ author: Author, book: Book, loan: Loan });

const emma = {
  isbn: "978-Emma",
  title: "Emma",
  authorName: "Jane Austen",
  pages: 474,
  price: 9.5,
  inPrint: true,
  genres: ["novel", "comedy"],
  publishedOn: "1815-12-23",
  shelf: { room: 2, row: "C" },
};

async function write() {
  await createTable(table, ["pk", "sk"], { gsi1: ["gsi1pk", "gsi1sk"], gsi2: ["gsi2pk", "gsi2sk"] });
  await Author.create({ authorName: "Jane Austen", country: "UK" }).go();
  await Book.create(emma).go();
  const persuasion = { ...emma, isbn: "978-P", title: "Persuasion", subtitle: "A Novel", genres: ["novel"] };
  await Book.create(persuasion).go();
  await Loan.create({ memberId: "M-1", isbn: "978-P", copy: 7, dueOn: "2026-02-01", renewals: 0 }).go();
  await Loan.create({ memberId: "M-1", isbn: "978-P", copy: 12, dueOn: "2026-01-01", renewals: 1 }).go();
  await printItems(table);
}

// solotable changed Persuasion's title and pages, put Emma unchanged, created Lady Susan and a loan of it.
async function verify() {
  const { data: unchanged } = await Book.get({ isbn: "978-Emma" }).go();
  const { createdAt, updatedAt, genres, ...rest } = unchanged;
  same({ ...rest, genres: [...genres].sort() }, { ...emma, genres: ["comedy", "novel"] }, "Emma");
  same([typeof createdAt, typeof updatedAt], ["number", "number"], "stamps of Emma");
  const { data: created } = await Book.get({ isbn: "978-LS" }).go();
  same([created.title, created.pages, created.price], ["Lady Susan", 80, 4.25], "Lady Susan");
  same([typeof created.createdAt, typeof created.updatedAt], ["number", "number"], "stamps of Lady Susan");
  const { data: works } = await library.collections.works({ authorName: "Jane Austen" }).go();
  same(works.author.map((each) => each.country), ["UK"], "authors of the collection");
  const titles = works.book.map((each) => each.title);
  same(titles, ["Emma", "Lady Susan", "Persuasion (annotated)"], "books of the collection");
  const { data: found } = await Book.query.works({ authorName: "Jane Austen" }).begins({ title: "Pers" }).go();
  same(found.map((each) => each.pages), [300], "books by title");
  const { data: loans } = await Loan.query.ofBook({ isbn: "978-P" }).lte({ dueOn: "2026-01-15" }).go();
  same(loans.map((each) => each.copy), [12], "loans by due date");
  const { data: lent } = await Loan.query.ofBook({ isbn: "978-LS" }).go();
  same(lent.map((each) => [each.memberId, each.copy]), [["M-2", 1]], "the created loan");
  // An update by ElectroDB of what solotable wrote, with an index key.
  await Book.patch({ isbn: "978-LS" }).set({ title: "Lady Susan, 2nd", authorName: "Jane Austen" }).go();
  await Loan.patch({ memberId: "M-2", isbn: "978-LS", copy: 1 }).add({ renewals: 1 }).go();
  const { data: renewed } = await Loan.get({ memberId: "M-2", isbn: "978-LS", copy: 1 }).go();
  same(renewed.renewals, 1, "renewals");
  await printItems(table);
}

await main({ write, verify });
