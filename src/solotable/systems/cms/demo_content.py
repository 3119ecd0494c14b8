"""The texts and pictures of the demo's sites: a workshop for tools, and a travel agency."""

from __future__ import annotations

import math
import struct
import zlib
from collections.abc import Mapping
from functools import cache
from typing import Any

Colour = tuple[int, int, int]
_SUN = bytes((255, 249, 235))

_SITES: dict[str, dict[str, Any]] = {
    "acme": {
        "brand": "#9c3f24",
        "address": "Weir Yard 3\nTollbridge",
        "telephone": "+00 000 000 000",
        "title": "Tools that outlive their warranty",
        "text": "We forge and grind small batches by the river. Bring them back when they are blunt.",
        "offers": ["Planes and chisels", "Garden knives", "Sharpening while you wait"],
        "notes": [
            "Two widths, one steel",
            "For roses and for bread",
            "Thursday and Friday, ten minutes each",
        ],
        "voice": "The chisel I dropped in March came back in May. I like it better now.",
        "by": "Ilse, a customer since 2019",
        "post": "What hard steel means, and why we stay below it",
        "lead": "A hard edge stays sharp and chips sooner. We choose the edge that you can repair.",
        "sky": ((247, 226, 205), (214, 152, 118)),
    },
    "globex": {
        "brand": "#1f6f5c",
        "address": "Harbour Row 11\nLight Quay",
        "telephone": "+00 111 111 111",
        "title": "Slow journeys by train and ferry",
        "text": "We plan routes that begin at your door and need no airport. You arrive rested.",
        "offers": ["Night trains", "Islands by ferry", "Walks between stations"],
        "notes": ["Nine routes, one ticket", "Cabins with a window", "Luggage goes ahead"],
        "voice": "We missed a connection and found the best soup of our lives.",
        "by": "Jonas and Mia, who went north",
        "post": "Three ferries before breakfast",
        "lead": "The first boat leaves at five. Here is why you want to be on it, and where the coffee is.",
        "sky": ((205, 226, 235), (86, 138, 150)),
    },
}


def site_settings(tenant: str) -> dict[str, Any]:
    """Return the settings of a site: menus and details."""
    site = _SITES[tenant]
    return {
        "navLinks": [
            {"label": "Journal", "href": "/#journal"},
            {"label": "About us", "href": "/about-us"},
            {"label": "Contact", "href": "/contact"},
        ],
        "footerLinks": [{"label": "Contact", "href": "/contact"}, {"label": "About us", "href": "/about-us"}],
        "site": {
            "brand": site["brand"],
            "address": site["address"],
            "email": f"hello@{tenant}.example",
            "telephone": site["telephone"],
            "hours": [
                {"label": "Thursday, Friday", "text": "10:00 to 17:00"},
                {"label": "Saturday", "text": "10:00 to 14:00"},
            ],
            "note": "The bell is loud, we will hear it.",
        },
    }


def home_blocks(tenant: str, pictures: Mapping[str, str]) -> list[dict[str, Any]]:
    """Return the blocks of a home page."""
    site = _SITES[tenant]
    cards = [
        {"title": title, "text": text, "href": "/contact", **_picture(pictures, f"card{number}", 800, 600)}
        for number, (title, text) in enumerate(zip(site["offers"], site["notes"], strict=True))
    ]
    hours = site_settings(tenant)["site"]["hours"]
    return [
        {
            "type": "hero",
            "title": site["title"],
            "text": site["text"],
            "buttons": [
                {"label": "Write to us", "href": "/contact"},
                {"label": "Visit us", "href": "#visit"},
            ],
            **_picture(
                pictures, "hero", 1200, 900, "A table in front of a window, and hills in the distance."
            ),
        },
        {
            "type": "section",
            "title": "What we do",
            "link": {"label": "About us", "href": "/about-us"},
            "blocks": [{"type": "cards", "items": cards}],
        },
        {
            "type": "section",
            "id": "visit",
            "blocks": [
                {
                    "type": "columns",
                    "columns": [
                        [{"type": "voice", "text": f"“{site['voice']}”", "by": site["by"]}],
                        [
                            {"type": "heading", "text": "Come and see us"},
                            {"type": "text", "text": site["address"]},
                            {"type": "facts", "items": hours},
                        ],
                    ],
                }
            ],
        },
        {"type": "section", "id": "journal", "title": "Journal", "blocks": [{"type": "posts", "limit": 3}]},
    ]


def about_blocks(name: str) -> list[dict[str, Any]]:
    """Return the blocks of the page about the business."""
    return [
        {"type": "heading", "text": f"Who {name} are"},
        {"type": "text", "text": "A small team."},
        {"type": "list", "items": ["Two people with a key", "One apprentice", "A dog who greets you"]},
        {"type": "text", "text": ["Questions? ", {"text": "Write to us", "href": "/contact"}, "."]},
    ]


def post_draft(tenant: str, pictures: Mapping[str, str]) -> dict[str, Any]:
    """Return a post with most types of blocks."""
    site = _SITES[tenant]
    picture = _picture(pictures, "hero", 1200, 900, "The view from our window.")
    return {
        "title": site["post"],
        "slug": "/blog/first-notes",
        "description": site["lead"],
        "blocks": [
            {"type": "image", **picture, "caption": "The view from our window at nine.", "wide": True},
            {"type": "text", "text": "We made the sums in 2021 and have not gone back.\n\nHere they are."},
            {"type": "heading", "text": "What changes for you"},
            {
                "type": "list",
                "items": [
                    ["It starts at ", {"text": "5:40", "code": True}, ", so bring a coat."],
                    ["You can ", {"text": "ask us first", "href": "/contact"}, "."],
                    "Nothing breaks on the way.",
                ],
            },
            {
                "type": "quote",
                "text": "A good day is boring. A story means that something went wrong.",
                "by": "Joss",
            },
            {"type": "subheading", "text": "Three ways, one table"},
            {
                "type": "table",
                "caption": "What each way takes",
                "head": ["Way", "For", "Minutes"],
                "rows": [["Short", "Mornings", 25], ["Long", "Rain", 40], ["Longest", "Sundays", 75]],
                "right": [2],
            },
            {
                "type": "code",
                "caption": "Our plan",
                "text": "start   05:40\nbreak   09:00  # soup\nhome    17:30",
            },
            {
                "type": "list",
                "ordered": True,
                "items": ["Write down what happened.", "Change one thing.", "Do it again."],
            },
        ],
    }


def _picture(
    pictures: Mapping[str, str], name: str, width: int, height: int, alt: str = ""
) -> dict[str, Any]:
    if name not in pictures:
        return {}
    return {"asset": pictures[name], "alt": alt, "width": width, "height": height}


@cache
def draw_pictures(tenant: str) -> dict[str, bytes]:
    """Return the pictures of a site as PNG, by name."""
    bright, deep = _SITES[tenant]["sky"]
    found = {"hero": png(_landscape(480, 360, bright, deep, 0.0))}
    for number in range(3):
        found[f"card{number}"] = png(_landscape(240, 180, bright, deep, 1.3 * (number + 1)))
    return found


def _landscape(width: int, height: int, bright: Colour, deep: Colour, phase: float) -> list[bytes]:
    """Return the rows of a picture: a sky with a sun above three ranges of hills."""
    hills = [bytes(_mix(deep, (38, 52, 48), 0.25 + 0.25 * level)) for level in range(3)]
    tops = [[height * _ridge(x / width, level, phase) for x in range(width)] for level in range(3)]
    centre, middle = width * (0.5 + 0.25 * math.cos(phase)), height * (0.28 + 0.05 * math.sin(phase))
    rows = []
    for y in range(height):
        sky = bytes(_mix(bright, deep, 0.7 * y / height))
        half = math.sqrt(max(0.0, (0.1 * height) ** 2 - (y - middle) ** 2))
        row = bytearray()
        for x, (far, mid, near) in enumerate(zip(*tops, strict=True)):
            if y > far or y > mid or y > near:
                row += hills[2] if y > near else hills[1] if y > mid else hills[0]
            else:
                row += _SUN if abs(x - centre) < half else sky
        rows.append(bytes(row))
    return rows


def _ridge(x: float, level: int, phase: float) -> float:
    return 0.55 + 0.14 * level + 0.07 * math.sin(x * (5 + 2 * level) + phase + level)


def _mix(one: Colour, other: Colour, share: float) -> Colour:
    red, green, blue = (round(a + (b - a) * share) for a, b in zip(one, other, strict=True))
    return red, green, blue


def png(rows: list[bytes]) -> bytes:
    """Return a picture as PNG, from its rows of red, green and blue bytes."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    head = struct.pack(">IIBBBBB", len(rows[0]) // 3, len(rows), 8, 2, 0, 0, 0)
    data = zlib.compress(b"".join(b"\0" + row for row in rows))
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", data) + chunk(b"IEND", b"")
