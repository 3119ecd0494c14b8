"""Readable texts for str fields, chosen by the name of the field."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

_FIRST = "Ada Alan Barbara Claude Donald Edith Frances Grace Hedy Ivan John Katherine Leslie Margaret Niklaus"
_LAST = (
    "Allen Backus Dijkstra Floyd Hopper Johnson Knuth Lamport Liskov Lovelace Shannon Sutherland Turing Wirth"
)
_WORDS = (
    "amber basin cedar delta ember field garden harbour island jasmine kettle lantern meadow needle orchard "
    "pebble quarry river saddle timber umber valley willow yarrow zephyr bright calm early gentle high open "
    "quiet small steady warm"
)
_CITIES = "Amsterdam Berlin Dublin Lisbon London Madrid Oslo Paris Prague Rome Vienna Zurich"
_COUNTRIES = "AT CH CZ DE ES FR GB IE IT NL NO PT"
_CURRENCIES = "CHF CZK EUR GBP NOK USD"
FIRST, LAST, WORDS = tuple(_FIRST.split()), tuple(_LAST.split()), tuple(_WORDS.split())
CITIES, COUNTRIES = tuple(_CITIES.split()), tuple(_COUNTRIES.split())
CURRENCIES = tuple(_CURRENCIES.split())


def email(random: Random) -> str:
    """Return an e-mail address of the domain that is reserved for examples."""
    return f"{random.choice(FIRST)}.{random.choice(LAST)}{random.randrange(1_000)}@example.com".lower()


def url(random: Random) -> str:
    """Return a web address of the domain that is reserved for examples."""
    return f"https://example.com/{_slug(random)}"


def words(random: Random, count: int = 3) -> str:
    """Return a few words with a capital letter at the start."""
    return " ".join(random.choices(WORDS, k=count)).capitalize()


def _person(random: Random) -> str:
    return f"{random.choice(FIRST)} {random.choice(LAST)}"


def _slug(random: Random) -> str:
    return "-".join(random.choices(WORDS, k=2)) + f"-{random.randrange(1_000)}"


def _prose(random: Random) -> str:
    return " ".join(words(random, random.randint(5, 10)) + "." for _ in range(random.randint(2, 4)))


#: The first entry whose text is part of the field's name decides.
_BY_NAME: tuple[tuple[str, Callable[[Random], str]], ...] = (
    ("email", email),
    ("mail", email),
    ("url", url),
    ("link", url),
    ("website", url),
    ("phone", lambda random: f"+44 20 7946 {random.randrange(1_000):04d}"),
    ("first_name", lambda random: random.choice(FIRST)),
    ("last_name", lambda random: random.choice(LAST)),
    ("slug", _slug),
    ("username", _slug),
    ("handle", _slug),
    ("city", lambda random: random.choice(CITIES)),
    ("country", lambda random: random.choice(COUNTRIES)),
    ("currency", lambda random: random.choice(CURRENCIES)),
    ("street", lambda random: f"{random.randint(1, 200)} {random.choice(WORDS).capitalize()} Street"),
    ("address", lambda random: f"{random.randint(1, 200)} {random.choice(WORDS).capitalize()} Street"),
    ("body", _prose),
    ("description", _prose),
    ("notes", _prose),
    ("content", _prose),
    ("name", _person),
    ("author", _person),
)


def text_for(field: str, random: Random) -> str:
    """Return a text that fits the name of a field.

    >>> text_for("email", Random(1))
    'barbara.lovelace867@example.com'
    """
    lowered = field.lower()
    for part, make in _BY_NAME:
        if part in lowered:
            return make(random)
    return words(random)
