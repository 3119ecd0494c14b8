"""DynamoDB's expression language whole: text to trees, trees to answers.

Conditions, filters, key conditions, projections and updates, and the legacy parameters that say the
same. Pure: an item goes in, an answer or a new item comes out.
"""

from .ast import Condition, KeyCondition, KeyTerm, Path, Projection, Update
from .evaluate import evaluate, paths_of
from .legacy import (
    condition_from_expected,
    filter_from_conditions,
    key_from_conditions,
    projection_from_attributes,
    update_from_attribute_updates,
)
from .project import project
from .syntax.compile import Compiled, compile_expressions
from .update import apply_update, paths_of_update, updated_values

__all__ = [
    "Compiled",
    "Condition",
    "KeyCondition",
    "KeyTerm",
    "Path",
    "Projection",
    "Update",
    "apply_update",
    "compile_expressions",
    "condition_from_expected",
    "evaluate",
    "filter_from_conditions",
    "key_from_conditions",
    "paths_of",
    "paths_of_update",
    "project",
    "projection_from_attributes",
    "update_from_attribute_updates",
    "updated_values",
]
