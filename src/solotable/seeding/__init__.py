"""Sample data for tests and demos: valid entities from their models, the same for the same seed."""

from .factory import Factory, Row
from .seed import seed, seed_async

__all__ = ["Factory", "Row", "seed", "seed_async"]
