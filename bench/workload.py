"""The data that every contender is measured with: items of about 0.9 KB, fifty to a partition."""

from __future__ import annotations

import random
from typing import Any

PER_PARTITION = 50
_WORDS = ["river", "stone", "maple", "orbit", "quartz", "lantern", "meadow", "harbour", "ember", "willow"]


def key(number: int) -> dict[str, Any]:
    """Return the key of the item with this number."""
    return {
        "pk": {"S": f"TENANT#acme#SURVEY#{number // PER_PARTITION:07d}"},
        "sk": {"S": f"SECTION#{number % PER_PARTITION:04d}"},
    }


def item(number: int) -> dict[str, Any]:
    """Return the item with this number: ten attributes, about 0.9 KB."""
    dice = random.Random(number)
    return {
        **key(number),
        "title": {"S": " ".join(dice.choices(_WORDS, k=8))},
        "status": {"S": dice.choice(("draft", "in_progress", "completed"))},
        "order": {"N": str(number % PER_PARTITION)},
        "price": {"N": f"{dice.randint(1, 99999)}.{dice.randint(10, 99)}"},
        "active": {"BOOL": True},
        "tags": {"SS": sorted(dice.sample(_WORDS, 3))},
        "address": {"M": {"street": {"S": "12 Main Street"}, "zip": {"S": "10115"}, "floor": {"N": "3"}}},
        "notes": {"S": " ".join(dice.choices(_WORDS, k=66))},
        "updated_at": {"S": "2026-01-31T12:00:00.000Z"},
    }
