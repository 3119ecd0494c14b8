"""`solotable init`: write a small project that passes its own tests."""

from __future__ import annotations

import re
from importlib import resources
from pathlib import Path
from string import Template

import click

#: The files of a project, and the templates that they come from.
_FILES = {
    "models.py": "models.py.txt",
    "app.py": "app.py.txt",
    "tests/test_models.py": "tests/test_models.py.txt",
    "tests/test_app.py": "tests/test_app.py.txt",
    "pyproject.toml": "pyproject.toml.txt",
    "README.md": "README.md.txt",
    ".gitignore": "gitignore.txt",
}
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]{1,60}")


@click.command("init", epilog="Example: solotable init shop")
@click.argument("folder", required=False, default=".", type=click.Path(file_okay=False, path_type=Path))
def command(folder: Path) -> None:
    """Write a small project to FOLDER: models, an API, tests.

    Default: this folder. Its name is the name of the project. No existing file is changed: if one is in the
    way, nothing is written.
    """
    root = folder.resolve()
    if not _NAME.fullmatch(root.name):
        raise click.UsageError(
            f"{root.name!r} cannot be the name of a project; choose a folder of letters, digits, - and _, "
            "such as: solotable init shop"
        )
    taken = [name for name in _FILES if (root / name).exists()]
    if taken:
        raise click.ClickException(
            f"{root} already has {', '.join(taken)}; nothing was written. Choose a new folder: "
            f"solotable init {root.name}-2"
        )
    templates = resources.files(__package__) / "template"
    table = "".join(word.capitalize() for word in re.split("[-_]", root.name)).ljust(3, "s")
    for name, template in _FILES.items():
        text = (templates / template).read_text(encoding="utf-8")
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        # "x": another process may have written it since.
        with path.open("x", encoding="utf-8", newline="\n") as file:
            file.write(Template(text).substitute(name=root.name, table=table))
    click.echo(f"Wrote {len(_FILES)} files to {root}.")
    click.echo("Next:")
    if root != Path.cwd():
        click.echo(f"  cd {folder}")
    click.echo("  pip install 'solotable[web]' pytest httpx2")
    click.echo("  python -m pytest")
    click.echo("  uvicorn app:app")
