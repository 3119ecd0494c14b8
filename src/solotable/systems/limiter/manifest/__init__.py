"""Files of limits in YAML or JSON, and how the stored limits differ from them.

    system:
      limits: {rpm: {capacity: 100}}
    resources:
      gpt-4:
        limits: {rpm: 50/minute, tpm: {capacity: 90000, refill: 60000}}
    entities:
      user-1:
        limits: {rpm: 500}
        resources:
          gpt-4: {limits: {rpm: 200}}

`source` parses a text with its lines, `parse` checks it, `plan` compares. Nothing here writes.
"""

from .notation import format_limit, format_rules, parse_limit, parse_window
from .parse import Level, LevelContent, Manifest, ManifestError, Problem, read_manifest
from .plan import Change, Plan, compare

__all__ = [
    "Change",
    "Level",
    "LevelContent",
    "Manifest",
    "ManifestError",
    "Plan",
    "Problem",
    "compare",
    "format_limit",
    "format_rules",
    "parse_limit",
    "parse_window",
    "read_manifest",
]
