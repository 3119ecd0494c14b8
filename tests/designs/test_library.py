"""Library, of the ElectroDB documentation: authors, books, genres and members, with keys as ElectroDB writes.

| # | Access pattern | Index | Requests |
|---|---|---|---|
| 1 | Authors by last name and the start of the first name | table | Query |
| 2 | Authors by full name | table | Query |
| 3 | An author with books and genres | gsi2 (works) | Query |
| 4 | Copies of a book by ISBN | table | Query |
| 5 | Books on loan to a member | gsi1 | Query |
| 6 | Overdue books of a member | gsi1 | Query |
| 7 | Number of books on loan to a member | gsi1 | Query |
| 8 | A member with the books on loan | gsi1 (account) | Query |
| 9 | Copies by an author | gsi2 | Query |
| 10 | Copies by an author that are available | gsi2 | Query |
| 11 | Copies by an author that are on loan | gsi2 | Query |
| 12 | Editions of a title, in a range of release dates | gsi3 | Query |
| 13 | Genres of a book, or subgenres of one genre | table | Query |
| 14 | A book with its genres by ISBN | table (detail) | Query |
| 15 | A book with its genres by title | gsi3 (titles) | Query |
| 16 | Books of a genre, or of a subgenre | gsi1 | Query |
"""

from __future__ import annotations

from typing import Annotated, Any, Self

import pytest

from solotable import Attr, Database, Entity, Index, Key, Query, Table, pattern
from tests.store.opening import Opening

from .expectations import requests

library = Table(
    "Library",
    partition="pk",
    sort="sk",
    adopt="electrodb",
    indexes=[Index(f"gsi{n}pk-gsi{n}sk-index", partition=f"gsi{n}pk", sort=f"gsi{n}sk") for n in (1, 2, 3)],
)
GSI1, GSI2, GSI3 = library.indexes
FirstName = Annotated[str, Attr("authorFirstName")]
LastName = Annotated[str, Attr("authorLastName")]
BY_AUTHOR = "$library#authorlastname_{last_name}#authorfirstname_{first_name}"
AVAILABLE = "AVAILABLE"


class Author(Entity, table=library, tag="author"):
    """An author."""

    key = Key(
        "$library#authorlastname_{last_name}", "$author_1#authorfirstname_{first_name}#birthday_{birthday}"
    )
    works = Key(BY_AUTHOR, "$works#author_1", index=GSI2)
    first_name: FirstName
    last_name: LastName
    birthday: str
    bio: str = ""

    @pattern
    @classmethod
    def named(cls, last_name: str, start: str) -> Query[Self]:
        """The authors of a last name whose first name starts with a text."""
        return cls.key.query(last_name=last_name).starts_with(first_name=start)

    @pattern
    @classmethod
    def with_full_name(cls, last_name: str, first_name: str) -> Query[Self]:
        """The authors of a name."""
        return cls.key.query(last_name=last_name, first_name=first_name)


class Book(Entity, table=library, tag="book"):
    """A copy of a book; `loan_end` is a date or AVAILABLE."""

    key = Key("$library#isbn_{isbn}", "$detail#book_1#bookid_{book_id}")
    loans = Key("$library#memberid_{member_id}", "$account#book_1#loanenddate_{loan_end}", index=GSI1)
    by_author = Key(BY_AUTHOR, "$works#book_1#loanenddate_{loan_end}", index=GSI2)
    editions = Key("$library#booktitle_{title}", "$titles#book_1#releasedate_{released}", index=GSI3)
    isbn: str
    book_id: Annotated[str, Attr("bookId")]
    title: Annotated[str, Attr("bookTitle")]
    released: Annotated[str, Attr("releaseDate")]
    first_name: FirstName
    last_name: LastName
    loan_end: Annotated[str, Attr("loanEndDate")] = AVAILABLE
    member_id: Annotated[str | None, Attr("memberId")] = None

    @pattern
    @classmethod
    def copies(cls, isbn: str) -> Query[Self]:
        """The copies of a book."""
        return cls.key.query(isbn=isbn)

    @pattern
    @classmethod
    def on_loan_to(cls, member_id: str) -> Query[Self]:
        """The books on loan to a member, by the end of the loan."""
        return cls.loans.query(member_id=member_id)

    @pattern
    @classmethod
    def overdue(cls, member_id: str, today: str) -> Query[Self]:
        """The books that a member should have returned before today."""
        return cls.loans.query(member_id=member_id).before(loan_end=today)

    @pattern
    @classmethod
    def of_author(cls, last_name: str, first_name: str) -> Query[Self]:
        """The copies by an author, first those on loan."""
        return cls.by_author.query(last_name=last_name, first_name=first_name)

    @pattern
    @classmethod
    def available(cls, last_name: str, first_name: str) -> Query[Self]:
        """The copies by an author that are available."""
        return cls.by_author.query(last_name=last_name, first_name=first_name, loan_end=AVAILABLE)

    @pattern
    @classmethod
    def on_loan(cls, last_name: str, first_name: str) -> Query[Self]:
        """The copies by an author that are on loan; dates sort before AVAILABLE."""
        return cls.by_author.query(last_name=last_name, first_name=first_name).before(loan_end=AVAILABLE)

    @pattern
    @classmethod
    def titled(cls, title: str) -> Query[Self]:
        """The editions of a title, by release date."""
        return cls.editions.query(title=title)


class Genre(Entity, table=library, tag="genre"):
    """A genre and subgenre of a book."""

    key = Key("$library#isbn_{isbn}", "$detail#genre_1#genre_{genre}#subgenre_{subgenre}")
    categories = Key("$library#genre_{genre}", "$genre_1#subgenre_{subgenre}", index=GSI1)
    by_author = Key(BY_AUTHOR, "$works#genre_1#genre_{genre}#subgenre_{subgenre}", index=GSI2)
    by_title = Key(
        "$library#booktitle_{title}", "$titles#genre_1#genre_{genre}#subgenre_{subgenre}", index=GSI3
    )
    isbn: str
    genre: str
    subgenre: str
    title: Annotated[str, Attr("bookTitle")]
    first_name: FirstName
    last_name: LastName

    @pattern
    @classmethod
    def of_book(cls, isbn: str) -> Query[Self]:
        """The genres of a book."""
        return cls.key.query(isbn=isbn)

    @pattern
    @classmethod
    def of_book_in_genre(cls, isbn: str, genre: str) -> Query[Self]:
        """The subgenres of a book in one genre."""
        return cls.key.query(isbn=isbn, genre=genre)

    @pattern
    @classmethod
    def of_genre(cls, genre: str) -> Query[Self]:
        """The books of a genre."""
        return cls.categories.query(genre=genre)

    @pattern
    @classmethod
    def of_subgenre(cls, genre: str, subgenre: str) -> Query[Self]:
        """The books of a subgenre."""
        return cls.categories.query(genre=genre, subgenre=subgenre)


class Member(Entity, table=library, tag="member"):
    """A member of the library."""

    key = Key("$library#memberid_{member_id}", "$member_1")
    account = Key("$library#memberid_{member_id}", "$account#member_1", index=GSI1)
    member_id: Annotated[str, Attr("memberId")]
    city: str = ""


KING: dict[str, Any] = {"last_name": "King", "first_name": "Stephen"}
IT, ODD = "978-IT", "978-ODD"


@pytest.fixture
def db(opening: Opening) -> Database:
    """Three Kings, three copies of It, another book, its genres, and two members."""
    store = opening(library)
    for first_name, birthday in (("Stephen", "1947-09-21"), ("Steve", "1970-01-01"), ("Owen", "1977-02-21")):
        store.put(Author(last_name="King", first_name=first_name, birthday=birthday))
    store.put(Author(last_name="Kingsley", first_name="Stephen", birthday="1950-01-01"))
    copies = (
        ("b1", "1986-09-15", "2022-07-29", "0000001"),
        ("b2", "1990-01-01", "2022-08-05", "0000001"),
        ("b3", "2017-01-01", AVAILABLE, None),
    )
    for book_id, released, loan_end, member_id in copies:
        store.put(
            Book(
                isbn=IT,
                book_id=book_id,
                title="It",
                released=released,
                loan_end=loan_end,
                member_id=member_id,
                **KING,
            )
        )
    store.put(
        Book(
            isbn=ODD,
            book_id="b4",
            title="It Ends",
            released="2016-01-01",
            last_name="Hoover",
            first_name="C",
            loan_end="2022-07-01",
            member_id="0000002",
        )
    )
    for genre, subgenre in (("Horror", "Killer clowns"), ("Horror", "Gothic"), ("Thriller", "Gothic")):
        store.put(Genre(isbn=IT, genre=genre, subgenre=subgenre, title="It", **KING))
    for member_id in ("0000001", "0000002"):
        store.put(Member(member_id=member_id, city="Bangor"))
    return store


def _ids(books: object) -> list[str]:
    assert isinstance(books, list | tuple)
    assert all(type(book) is Book for book in books)
    return [book.book_id for book in books]


def test_library_01_authors_by_last_name_and_start_of_first_name(db: Database, opening: Opening) -> None:
    with requests(opening, "Query"):
        found = db.page(Author.named("King", "S"))
    assert [author.first_name for author in found] == ["Stephen", "Steve"]
    assert db.count(Author.named("King", "")) == 3


def test_library_02_authors_by_full_name(db: Database, opening: Opening) -> None:
    with requests(opening, "Query"):
        found = db.page(Author.with_full_name("king", "stephen"))
    assert [(author.last_name, author.birthday) for author in found] == [("King", "1947-09-21")]


def test_library_03_an_author_with_books_and_genres(db: Database, opening: Opening) -> None:
    with requests(opening, "Query"):
        author, books, genres = db.collection(Author.works, Book.by_author, Genre.by_author, **KING)
    assert author is not None
    assert author.birthday == "1947-09-21"
    assert _ids(books) == ["b1", "b2", "b3"]
    assert [genre.subgenre for genre in genres] == ["Gothic", "Killer clowns", "Gothic"]


def test_library_04_copies_by_isbn(db: Database, opening: Opening) -> None:
    with requests(opening, "Query"):
        found = db.page(Book.copies(IT))
    assert _ids(found.items) == ["b1", "b2", "b3"]


def test_library_05_books_on_loan_to_a_member(db: Database, opening: Opening) -> None:
    with requests(opening, "Query"):
        found = db.page(Book.on_loan_to("0000001"))
    assert _ids(found.items) == ["b1", "b2"]


def test_library_06_overdue_books_of_a_member(db: Database, opening: Opening) -> None:
    with requests(opening, "Query"):
        found = db.page(Book.overdue("0000001", "2022-07-30"))
    assert _ids(found.items) == ["b1"]


def test_library_07_number_of_books_on_loan_to_a_member(db: Database, opening: Opening) -> None:
    with requests(opening, "Query"):
        assert db.count(Book.on_loan_to("0000001")) == 2


def test_library_08_a_member_with_the_books_on_loan(db: Database, opening: Opening) -> None:
    with requests(opening, "Query"):
        member, books = db.collection(Member.account, Book.loans, member_id="0000001")
    assert member is not None
    assert (member.city, _ids(books)) == ("Bangor", ["b1", "b2"])


def test_library_09_copies_by_an_author(db: Database, opening: Opening) -> None:
    with requests(opening, "Query"):
        found = db.page(Book.of_author("King", "Stephen"))
    assert _ids(found.items) == ["b1", "b2", "b3"]


def test_library_10_available_copies_by_an_author(db: Database, opening: Opening) -> None:
    with requests(opening, "Query"):
        found = db.page(Book.available("King", "Stephen"))
    assert _ids(found.items) == ["b3"]


def test_library_11_copies_by_an_author_on_loan(db: Database, opening: Opening) -> None:
    with requests(opening, "Query"):
        found = db.page(Book.on_loan("King", "Stephen"))
    assert _ids(found.items) == ["b1", "b2"]


def test_library_12_editions_of_a_title_by_release_date(db: Database, opening: Opening) -> None:
    with requests(opening, "Query"):
        found = db.page(Book.titled("It").between(released=("1990", "2016")))
    assert _ids(found.items) == ["b2"]
    assert _ids(db.page(Book.titled("it").since(released="1990")).items) == ["b2", "b3"]
    assert db.count(Book.titled("It")) == 3


def test_library_13_genres_of_a_book(db: Database, opening: Opening) -> None:
    with requests(opening, "Query"):
        found = db.page(Genre.of_book(IT))
    assert [(each.genre, each.subgenre) for each in found] == [
        ("Horror", "Gothic"),
        ("Horror", "Killer clowns"),
        ("Thriller", "Gothic"),
    ]
    assert db.count(Genre.of_book_in_genre(IT, "Thriller")) == 1


def test_library_14_a_book_with_its_genres_by_isbn(db: Database, opening: Opening) -> None:
    with requests(opening, "Query"):
        books, genres = db.collection(Book, Genre, root=False, isbn=IT)
    assert (_ids(books), len(genres)) == (["b1", "b2", "b3"], 3)


def test_library_15_a_book_with_its_genres_by_title(db: Database, opening: Opening) -> None:
    with requests(opening, "Query"):
        books, genres = db.collection(Book.editions, Genre.by_title, root=False, title="It")
    assert (_ids(books), len(genres)) == (["b1", "b2", "b3"], 3)


def test_library_16_books_of_a_genre(db: Database, opening: Opening) -> None:
    with requests(opening, "Query"):
        found = db.page(Genre.of_genre("horror"))
    assert [each.subgenre for each in found] == ["Gothic", "Killer clowns"]
    assert [each.isbn for each in db.all(Genre.of_subgenre("Horror", "Killer Clowns"))] == [IT]


def test_library_keys_are_those_of_electrodb(db: Database, opening: Opening) -> None:
    (stored,) = [each for each in opening.raw(library) if each.get("bookId") == {"S": "b1"}]
    assert {name: value["S"] for name, value in stored.items() if name[-2:] in ("pk", "sk", "__")} == {
        "pk": "$library#isbn_978-it",
        "sk": "$detail#book_1#bookid_b1",
        "gsi1pk": "$library#memberid_0000001",
        "gsi1sk": "$account#book_1#loanenddate_2022-07-29",
        "gsi2pk": "$library#authorlastname_king#authorfirstname_stephen",
        "gsi2sk": "$works#book_1#loanenddate_2022-07-29",
        "gsi3pk": "$library#booktitle_it",
        "gsi3sk": "$titles#book_1#releasedate_1986-09-15",
        "__edb_e__": "book",
        "__edb_v__": "1",
    }
