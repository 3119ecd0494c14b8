"""Compare both sides of a migration item by item, also while clients write, and repair differences."""

from .comparison import DiffOptions, compare
from .repair import diff, repair
from .report import Difference, DiffReport

__all__ = ["DiffOptions", "DiffReport", "Difference", "compare", "diff", "repair"]
