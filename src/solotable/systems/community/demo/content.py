"""The people, neighbourhoods and sites of the demo. All names are invented."""

from __future__ import annotations

from typing import Any

#: Name and full name; the handle is `<name>.test`.
PEOPLE = (
    ("alice", "Alice Kerr"),
    ("ben", "Ben Achterberg"),
    ("imre", "Imre Salo"),
    ("lucia", "Lucía Quiroga"),
    ("dele", "Dele Okafor"),
)
#: The creator, the neighbourhood, its other members.
NEIGHBOURHOODS: tuple[tuple[str, dict[str, Any], tuple[str, ...]], ...] = (
    (
        "alice",
        {
            "name": "Canal Row",
            "description": "Forty doors on the north bank. We share tools, a garden and an opinion on the "
            "swing bridge.",
        },
        ("ben", "imre", "lucia"),
    ),
    (
        "ben",
        {
            "name": "Weir Garden",
            "description": "Twenty-four beds behind the weir. Members only.",
            "privacy": "private",
        },
        ("alice", "lucia"),
    ),
    ("imre", {"name": "Straße am Wehr 🌿", "description": "A street, a tree, three benches."}, ("dele",)),
)
#: The owner, the slug of the neighbourhood, the site, its posts from the oldest to the newest.
SITES: tuple[tuple[str, str, dict[str, Any], tuple[tuple[str, str], ...]], ...] = (
    (
        "alice",
        "canal-row",
        {
            "title": "Notes from number nine",
            "subdomain": "alice",
            "template": "blog",
            "config": {"author": "Alice Kerr", "description": "Water, birds, bicycles.", "picture": "canal"},
        },
        (
            ("A bench for the towpath", "Three of us carried it. *It is level now.*\n\n- Oak\n- Eight bolts"),
            ("Ice on the lock", "Thin, grey, and gone by noon. The ducks walked."),
            (
                "The heron is back",
                "It stood on the lock gate at seven, as if it had never been away.\n\n## What it eats\n\n"
                "Mostly what the anglers drop. See [the list](https://example.org/herons).",
            ),
        ),
    ),
    (
        "ben",
        "canal-row",
        {
            "title": "The Towpath Letter",
            "subdomain": "towpath",
            "template": "newsletter",
            "config": {"author": "Ben Achterberg", "accent_color": "#a2431f"},
        },
        (
            ("The bridge and the bins", "## The bridge\n\nIt swings again.\n\n## The bins\n\nThey do not."),
            ("Lights and ice", "## Lights\n\nThe new lamps are warm.\n\n## Ice\n\nKeep off it, please."),
        ),
    ),
    (
        "lucia",
        "canal-row",
        {
            "title": "Weir Garden",
            "subdomain": "weir-garden",
            "template": "project",
            "config": {"author": "Garden group", "accent_color": "#4b6b2a", "picture": "garden"},
        },
        (("Three beds are free for spring", "Ask before March. Bring gloves, and a friend."),),
    ),
)
