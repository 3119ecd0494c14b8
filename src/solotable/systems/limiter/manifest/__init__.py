"""Files of limits: YAML or JSON under version control, and how what is stored differs from them.

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

`source` reads a text with its lines, `reading` judges it, `planning` compares. Nothing here writes.
"""

from .notation import spelled, spelling
from .parse import Content, Level, Manifest, ManifestError, Problem, read_manifest
from .plan import Change, Plan, compared

__all__ = [
    "Change",
    "Content",
    "Level",
    "Manifest",
    "ManifestError",
    "Plan",
    "Problem",
    "compared",
    "read_manifest",
    "spelled",
    "spelling",
]
