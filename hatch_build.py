"""The description of the package: the README with links that work outside of the repository.

A link to a file of the repository becomes an absolute one if `repository` is set in pyproject.toml under
[tool.hatch.metadata.hooks.custom]. Until the project has an address, such a link becomes its text, and such a
picture is left out.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

PICTURE = re.compile(r"^!\[([^\]]*)\]\((?!https?:)([^)\s]+)\)\n\n?", re.MULTILINE)
LINK = re.compile(r"\[([^\]]+)\]\((?!https?:|#)([^)\s]+)\)")


def describe(readme: str, repository: str) -> str:
    """Return the README as it is shown by a package index."""
    if not repository:
        return LINK.sub(r"\1", PICTURE.sub("", readme))
    files = repository.rstrip("/") + "/blob/main/"
    raw = repository.rstrip("/") + "/raw/main/"
    return LINK.sub(rf"[\1]({files}\2)", PICTURE.sub(rf"![\1]({raw}\2)\n\n", readme))


class DescriptionHook(MetadataHookInterface):
    """Sets the field `readme` of the metadata."""

    def update(self, metadata: dict[str, Any]) -> None:
        readme = (Path(self.root) / "README.md").read_text(encoding="utf-8")
        description = describe(readme, self.config.get("repository", ""))
        metadata["readme"] = {"content-type": "text/markdown", "text": description}
