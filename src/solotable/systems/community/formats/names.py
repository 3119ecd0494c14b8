"""Slugs, subdomains and handles in one normal form, from text in any script."""

from __future__ import annotations

import re
import unicodedata

from solotable.systems.errors import InvalidInput

MAX_SLUG = 100
MAX_SLUG_BYTES = 400
#: DNS: a label has at most 63 octets.
MAX_LABEL = 63
_MAX_TEXT = 400
#: Subdomains that belong to the community, to mail and DNS conventions, or that readers would trust.
_RESERVED = (
    "abuse account accounts admin administrator api app apps assets auth autoconfig autodiscover beta "
    "billing blog build builds cdn community console dashboard demo dev dns docs email ftp git help "
    "host hostmaster id imap info internal isatap legal localhost login logout mail mx nbhd "
    "neighborhood neighborhoods neighbourhood neighbourhoods news no-reply noreply ns ns1 ns2 ns3 "
    "oauth official ops pop pop3 postmaster preview privacy prod root security server shop signin "
    "signup site sites smtp ssl staff staging static status support system team terms test usenet "
    "user users vpn web webmaster wpad ws www www1 www2"
)
RESERVED_SUBDOMAINS = frozenset(_RESERVED.split())
#: Characters without a shape that are letters or marks, so that their category does not exclude them.
_INVISIBLE = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u3164\ufe00-\ufe0f\uffa0\U000e0100-\U000e01ef]"
)
_HANDLE = re.compile(r"(?:[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?\.)+[a-z](?:[a-z0-9-]{0,61}[a-z0-9])?")
_MAX_HANDLE = 253


def normalise_slug(text: str) -> str:
    """Return the slug of a name: lower case, hyphens, and the letters of every script.

    >>> normalise_slug("Downtown  Collective!"), normalise_slug("\uff24owntown\u3000COLLECTIVE")
    ('downtown-collective', 'downtown-collective')
    >>> normalise_slug("हिन्दी चौक"), normalise_slug("Straße"), normalise_slug("İstanbul")
    ('हिन्दी-चौक', 'strasse', 'istanbul')
    """
    slug = _hyphenate(_fold(text, "name"))
    if not slug or not any(character.isalnum() for character in slug):
        raise InvalidInput("name: needs at least one letter or digit.")
    if len(slug) > MAX_SLUG or len(slug.encode()) > MAX_SLUG_BYTES:
        raise InvalidInput(f"name: is longer than {MAX_SLUG} characters.")
    return slug


def shorten_slug(title: str) -> str:
    """Return a slug of a title of any length, for an address that need not be unique.

    >>> shorten_slug("What the \u201cice\u201d says"), shorten_slug("\U0001f389")
    ('what-the-ice-says', 'post')
    """
    slug = _hyphenate(_fold(title, "title"))[:MAX_SLUG]
    while len(slug.encode()) > MAX_SLUG_BYTES:
        slug = slug[:-1]
    slug = slug.strip("-")
    return slug if any(character.isalnum() for character in slug) else "post"


def normalise_subdomain(text: str) -> str:
    """Return the subdomain of a text, a valid DNS label, or raise InvalidInput for a reserved one.

    Accents are dropped. What ASCII cannot write becomes an internationalised label (`xn--`).

    >>> normalise_subdomain("Ana's Café"), normalise_subdomain("Köln"), normalise_subdomain("東京")
    ('ana-s-cafe', 'koln', 'xn--1lqs71d')
    """
    slug = _hyphenate(_fold(text, "subdomain"))
    decomposed = unicodedata.normalize("NFKD", slug)
    # A mark between two hyphens leaves both: DNS reserves `--` in the third and fourth place for `xn--`.
    label = _hyphenate("".join(each for each in decomposed if not unicodedata.combining(each)))
    if not label.isascii():
        label = "xn--" + unicodedata.normalize("NFC", slug).encode("punycode").decode("ascii").lower()
    if not re.fullmatch(rf"[a-z0-9](?:[a-z0-9-]{{0,{MAX_LABEL - 2}}}[a-z0-9])?", label):
        raise InvalidInput(f"subdomain: needs 1 to {MAX_LABEL} letters, digits and hyphens.")
    if label in RESERVED_SUBDOMAINS:
        raise InvalidInput(f"subdomain: {label!r} is reserved; choose another one.")
    return label


def normalise_handle(text: str) -> str:
    """Return the normal form of a handle: a domain name in lower case.

    The written design has `alice@bsky.social`; it is the same handle as `@alice.bsky.social`.

    >>> normalise_handle("@Alice.bsky.social"), normalise_handle("alice@bsky.social")
    ('alice.bsky.social', 'alice.bsky.social')
    """
    handle = _fold(text, "handle").strip().removeprefix("@").replace("@", ".", 1)
    if len(handle) > _MAX_HANDLE or not _HANDLE.fullmatch(handle):
        raise InvalidInput("handle: must be a domain name such as alice.bsky.social.")
    return handle


def _fold(text: str, what: str) -> str:
    """Return a text without case, compatibility forms and invisible characters."""
    if len(text) > _MAX_TEXT:
        raise InvalidInput(f"{what}: is longer than {_MAX_TEXT} characters.")
    folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())
    # `casefold` keeps the dot of İ as a mark on an i, which looks like i.
    visible = _INVISIBLE.sub("", folded.replace("i\u0307", "i"))
    kept = "".join(each for each in visible if unicodedata.category(each) not in {"Cf", "Cs", "Co", "Cn"})
    # Without an invisible character, two others may compose.
    return unicodedata.normalize("NFKC", kept)


def _hyphenate(folded: str) -> str:
    """Return letters, marks and digits of any script; one hyphen replaces what is between them."""
    kept = (each if unicodedata.category(each)[0] in "LMN" else "-" for each in folded)
    return re.sub(r"-+", "-", "".join(kept)).strip("-")
