"""`solotable schema diagram`: partitions, entities and indexes as Mermaid and as SVG."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Literal
from xml.etree import ElementTree

from solotable import Entity, Index, Key, Table
from solotable._entities.schema.diagram import key_spaces
from solotable._entities.schema.mermaid_text import mermaid_text
from solotable._entities.schema.svg_text import svg_text

from .conftest import MODELS, Run
from .surveys import surveyor

SVG = "{http://www.w3.org/2000/svg}"


def test_every_key_of_every_entity_is_in_its_key_space() -> None:
    spaces = {space.name: space for space in key_spaces(surveyor)}
    assert list(spaces) == [surveyor.name, *surveyor.indexes]
    for plan in surveyor.plans.values():
        for path in plan.keys.values():
            space = spaces[surveyor.name if path.index is None else path.index.name]
            rows = [row for box in space.partitions for row in box.rows]
            assert (plan.name, path.name) in {(row.entity, row.key) for row in rows}
    read = {
        (row.entity, each)
        for space in spaces.values()
        for box in space.partitions
        for row in box.rows
        for each in row.patterns
    }
    assert {(plan.name, each) for plan in surveyor.plans.values() for each in plan.patterns} == read


def test_entities_with_one_partition_template_share_a_box_and_sparse_keys_are_marked() -> None:
    table = Table("Shop", indexes=[Index("GSI1", projection=["total"]), Index("GSI2")])

    class Customer(Entity, table=table):
        key = Key("CUSTOMER#{customer}", "CUSTOMER")
        customer: str

    class Order(Entity, table=table):
        key = Key("CUSTOMER#{customer}", "ORDER#{number:06d}")
        by_state = Key("STATE#{state}", "{number:06d}", index="GSI1", shards=4)
        customer: str
        number: int
        total: int = 0
        state: Literal["new", "sent"] | None = None

    main, by_state, unused = key_spaces(table, "prod-Shop")
    assert (main.name, main.attributes) == ("prod-Shop", "PK, SK")
    (box,) = main.partitions
    assert [(row.sort, row.entity, row.sparse) for row in box.rows] == [
        ("CUSTOMER", "Customer", False),
        ("ORDER#{number:06d}", "Order", False),
    ]
    assert by_state.attributes == "GSI1PK, GSI1SK; 2 attributes"
    (sharded,) = by_state.partitions
    assert (sharded.template, sharded.rows[0].sparse) == ("STATE#{state}#{shard}", True)
    assert unused.partitions == ()
    text = mermaid_text([[main, by_state, unused]])
    assert "t0s0p0r1 -.-> t0s1p0r0" in text
    assert '["STATE#35;{state}#35;{shard}"]' in text
    assert "no entity uses it" in svg_text([[main, by_state, unused]])


def test_mermaid_subgraphs_are_closed_and_arrows_lead_to_nodes(run: Run) -> None:
    ran = run("schema", "diagram")
    assert ran.code == 0
    lines = ran.out.splitlines()
    assert lines[0] == "flowchart LR"
    assert sum(line.strip().startswith("subgraph") for line in lines) == sum(
        line.strip() == "end" for line in lines
    )
    nodes = set(re.findall(r"^ +(t\d+s\d+p\d+r\d+)\[", ran.out, re.MULTILINE))
    arrows = re.findall(r"^  (\w+) -\.?->? (\w+)$|^  (\w+) --> (\w+)$", ran.out, re.MULTILINE)
    assert arrows
    assert {end for arrow in arrows for end in arrow if end} <= nodes


def test_svg_is_xml_with_every_template_inside_its_frame(run: Run) -> None:
    ran = run("schema", "diagram", "--format", "svg", "-m", f"{MODELS}:surveyor")
    assert ran.code == 0
    picture = ElementTree.fromstring(ran.out)  # noqa: S314 - our own output
    width, height = float(picture.attrib["width"]), float(picture.attrib["height"])
    texts = picture.findall(f"{SVG}text")
    templates = {box.template for space in key_spaces(surveyor) for box in space.partitions}
    assert templates <= {each.text for each in texts}
    for each in texts:
        assert float(each.attrib["y"]) < height
        assert float(each.attrib["x"]) + 7 * len(each.text or "") < width + 8, each.text


def test_names_are_escaped(tmp_path: Path, run: Run) -> None:
    models = tmp_path / "odd.py"
    models.write_text(
        "from solotable import Entity, Key, Table\n"
        "odd = Table('Odd')\n"
        "class A(Entity, table=odd):\n"
        "    key = Key('<b>&#{id}', 'A')\n"
        "    id: str\n"
    )
    svg = run("schema", "diagram", "-m", str(models), "--format", "svg").out
    assert "&lt;b&gt;&amp;#{id}" in svg
    assert "#lt;b#gt;" in run("schema", "diagram", "-m", str(models)).out
