"""The layout of tables as a Mermaid flowchart: a box for each partition, a node for each entity in it."""

from __future__ import annotations

from collections.abc import Iterable

from .diagram import EntityRow, KeySpace

#: Characters with a meaning in a label of Mermaid, and their entity codes.
_CODES = {"#": "#35;", '"': "#quot;", "<": "#lt;", ">": "#gt;", "`": "#96;"}


def mermaid_text(tables: Iterable[list[KeySpace]]) -> str:
    """Return the flowchart of some tables. An arrow leads from an entity to its copies in the indexes."""
    lines = ["flowchart LR"]
    for number, spaces in enumerate(tables):
        originals: dict[str, str] = {}
        arrows = []
        for position, space in enumerate(spaces):
            lines.append(
                f'  subgraph t{number}s{position}["{_escape(f"{space.name} ({space.attributes})")}"]'
            )
            lines.append("    direction TB")
            for box_number, box in enumerate(space.partitions):
                box_id = f"t{number}s{position}p{box_number}"
                lines.append(f'    subgraph {box_id}["{_escape(box.template)}"]')
                for row_number, row in enumerate(box.rows):
                    node = f"{box_id}r{row_number}"
                    lines.append(f'      {node}["{_label(row)}"]')
                    if not space.is_index:
                        originals[row.entity] = node
                    elif row.entity in originals:
                        arrows.append(f"  {originals[row.entity]} {'-.->' if row.sparse else '-->'} {node}")
                lines.append("    end")
            lines.append("  end")
        lines += arrows
    return "\n".join(lines)


def _label(row: EntityRow) -> str:
    parts = [f"<b>{_escape(row.entity)}</b>"]
    if row.sort:
        parts.append(_escape(row.sort))
    if row.patterns:
        parts.append(f"<i>{_escape(', '.join(row.patterns))}</i>")
    return "<br>".join(parts)


def _escape(text: str) -> str:
    """Return a text for a label.

    >>> _escape("TENANT#{tenant_id}")
    'TENANT#35;{tenant_id}'
    """
    return "".join(_CODES.get(character, character) for character in text)
