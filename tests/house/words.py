"""Words that the project does not use, and where they occur.

Run it on a folder to list the occurrences: python -m tests.house.words src/solotable/web
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

#: A word or phrase, and what to write instead.
FORBIDDEN = {
    "nobody": "name the role: no caller, no client, no process",
    "somebody": "name the role: a caller, a client, a user",
    "anybody": "name the role: any caller, any client",
    "everybody": "name the role: every caller, all users",
    "whoever": "name the role: the caller that ...",
    "meanwhile": "say when: during the read, before the commit",
    "of its own": "its own X, or a separate X",
    "of their own": "their own X, or separate Xs",
    "is no": "is not a",
    "is none": "say what it is instead",
    "told": "said by the program: reported, public message",
    "judge": "check",
    "judges": "checks",
    "judged": "checked",
    "judging": "checking",
    "judgement": "check",
    "anew": "again",
    "mend": "repair",
    "mends": "repairs",
    "mended": "repaired",
    "mending": "repairing",
    "storey": "layer",
    "storeys": "layers",
    "by now": "now, or leave it out",
    "goes on": "continues",
    "go on": "continue",
    "had back": "restored",
}

#: `is None` is Python, `is none` is not English.
_AS_WRITTEN = {"is none"}
_WORDS = re.compile(
    "|".join(
        rf"(?<![A-Za-z])(?{'-i' if word in _AS_WRITTEN else 'i'}:{re.escape(word)})(?![A-Za-z])"
        for word in FORBIDDEN
    )
)
#: Phrases that contain a forbidden one and are plain English.
_PLAIN = re.compile(r"is no longer")


def occurrences(path: Path) -> Iterator[tuple[int, str, str]]:
    """Yield line number, word and line of each forbidden word in a file."""
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        for found in _WORDS.finditer(_PLAIN.sub("", line)):
            yield number, found[0].lower(), line.strip()


def main() -> None:
    """Print every occurrence below the given folders, and how many there are."""
    count = 0
    for folder in sys.argv[1:] or ["src", "docs"]:
        for path in sorted(p for p in Path(folder).rglob("*") if p.suffix in (".py", ".md")):
            for number, word, line in occurrences(path):
                count += 1
                sys.stdout.write(f"{path}:{number}: {word}: {line}\n")
    sys.stdout.write(f"{count} forbidden words\n")


if __name__ == "__main__":
    main()
