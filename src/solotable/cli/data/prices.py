"""Load a price table: the one of the package, or a file of the user."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from solotable._entities.patterns.cost import Prices

#: Region of the prices if none is given.
DEFAULT_REGION = "us-east-1"
_SHIPPED = Path(__file__).with_name("prices.json")


def load_prices(file: Path | None, region: str) -> Prices:
    """Return the prices of a region."""
    from solotable._entities.patterns.cost import Prices
    from solotable.errors import DataError

    try:
        return Prices.parse(json.loads((file or _SHIPPED).read_text(encoding="utf-8")), region)
    except ValueError as error:
        raise click.BadParameter(f"{file} is not JSON: {error}.", param_hint="--prices") from None
    except DataError as error:
        raise click.UsageError(str(error)) from None
