"""Import the mapping of a migration: `shop.py:mapping`, or the only one of a module."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from .models import import_models

if TYPE_CHECKING:
    from solotable.migrations.mapping import Mapping


def load_mapping(spec: str | None) -> Mapping:
    """Import the models and return the named mapping, or the only one that they declare."""
    from solotable.migrations.mapping import Mapping

    module, name = import_models(spec)
    found = {each: value for each, value in vars(module).items() if isinstance(value, Mapping)}
    if name:
        if name not in found:
            raise click.BadParameter(
                f"{spec}: {name!r} is not a Mapping; {_listed(list(found))}", param_hint="models"
            )
        return found[name]
    if len({id(value) for value in found.values()}) != 1:
        raise click.BadParameter(
            f"{spec}: name one mapping, such as models.py:mapping; {_listed(list(found))}",
            param_hint="models",
        )
    return next(iter(found.values()))


def _listed(names: list[str]) -> str:
    return f"its mappings are {', '.join(names)}." if names else "it declares no Mapping."
