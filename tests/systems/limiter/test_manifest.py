"""Files of limits: their schema, their mistakes by line, and what differs from what is stored."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from solotable.errors import DataError
from solotable.systems.limiter import Limit
from solotable.systems.limiter.manifest import (
    Level,
    LevelContent,
    Manifest,
    ManifestError,
    compare,
    format_limit,
    parse_limit,
    read_manifest,
)

RPM = Limit("rpm", 100, 100, 60)


def problems(text: str, name: str = "f.yaml") -> list[str]:
    with pytest.raises(ManifestError) as refused:
        read_manifest(text, name)
    lines = str(refused.value).splitlines()
    assert len(lines) == len(refused.value.problems), "one sentence is one line"
    return [line.removeprefix("f.") for line in lines]


def one_limit(text: str) -> Limit:
    (content,) = read_manifest(f"system: {{limits: {{rpm: {text}}}}}", "f.yaml").levels.values()
    assert content.limits is not None
    return content.limits[0]


@pytest.mark.parametrize(
    ("text", "limit"),
    [
        ("{capacity: 100}", RPM),
        ("100", RPM),
        ("100/minute", RPM),
        ("100/60", RPM),
        ("{capacity: 100, refill: 10}", Limit("rpm", 100, 10, 60)),
        ("{capacity: 100, period_seconds: 5}", Limit("rpm", 100, 100, 5)),
        ("{capacity: 100, period: day}", Limit("rpm", 100, 100, 86_400)),
        ("10/s+100", Limit("rpm", 100, 10, 1)),
    ],
)
def test_only_the_capacity_is_required(text: str, limit: Limit) -> None:
    assert one_limit(text) == limit


def test_sections_are_levels() -> None:
    found = read_manifest(
        """
        namespace: eu
        x-shared: &shared {limits: {rpm: 100}}
        system: {on_unavailable: block}
        resources: {gpt-4: *shared}
        entities:
          u-1: {<<: *shared, resources: {gpt-4: *shared}}
          u-2: {resources: {_default_: *shared}}
        """,
        "f.yml",
    )
    assert found.namespace == "eu"
    assert found.levels == {
        Level(None, None): LevelContent(None, "block"),
        Level(None, "gpt-4"): LevelContent((RPM,)),
        Level("u-1", None): LevelContent((RPM,)),
        Level("u-1", "gpt-4"): LevelContent((RPM,)),
        Level("u-2", None): LevelContent((RPM,)),
    }
    assert [str(level) for level in sorted(found.levels, key=lambda level: level.order)] == [
        "system",
        "resource gpt-4",
        "entity u-1",
        "entity u-1 on gpt-4",
        "entity u-2",
    ]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "yaml:1: The file has no limits of the system, of resources or of entities."),
        (
            "resources:\n",
            "yaml:1: The file has no limits of the system, of resources or of entities.",
        ),
        (
            "- a",
            "yaml:1: The file must be a mapping of namespace, system, resources and entities, not a list.",
        ),
        ("a: 1", "yaml:1: The file has namespace, system, resources and entities; got 'a'."),
        ("system:\n  limits: 5", "yaml:2: Limits must be a mapping of names, not a number."),
        ("system:\n  limits:", "yaml:2: At least one limit is needed; delete the limits to have none."),
        ("system: {}", "yaml:1: System has no limits; leave it out to have none."),
        ("system:\n  on_unavailable: maybe", "yaml:2: on_unavailable is block or allow; got 'maybe'."),
        (
            "resources:\n  r:\n    on_unavailable: allow\n    limits: {a: 1}",
            "yaml:3: Resource r has limits, schedule and mode; got 'on_unavailable'.",
        ),
        ("entities:\n  u:\n", "yaml:2: Entity 'u' has neither limits nor resources."),
        (
            "entities:\n  u:\n    limits: {a: 1}\n    resources:\n      _default_: {limits: {a: 1}}",
            "yaml:5: The limits of entity u occur twice.",
        ),
        (
            "system:\n  limits:\n    a:\n      capacity: 1\n      period: week",
            "yaml:5: A period is second, minute, hour, day, or a number of seconds.",
        ),
        (
            "system:\n  limits:\n    a: {capacity: 1, period: 5, period_seconds: 5}",
            "yaml:3: Limit 'a' has period and period_seconds; give one of them.",
        ),
        (
            "system:\n  limits:\n    a:\n      capacity: 1\n      refill: 1.5",
            "yaml:5: The refill of limit 'a' is a whole number from 1 to 1000000000000; got 1.5.",
        ),
        ("system: {limits: {a: 1,\n a: 2}}", "yaml:2: Duplicate key 'a'."),
        ("system: [", "yaml:1: This is not YAML: expected the node content, but found '<stream end>'."),
        ("a: &a [*a]", "yaml:1: An alias contains itself."),
        ("[" * 5000, "yaml:1: The file is nested too deeply."),
        ("? [a]\n: 1", "yaml:1: A key is a plain string."),
        (
            "a: 1\n\x00",
            "yaml:2: This is not YAML: unacceptable character #x0000: special characters are not allowed.",
        ),
    ],
)
def test_a_mistake_is_one_sentence_with_its_line(text: str, told: str) -> None:
    assert problems(text) == [told]


@pytest.mark.parametrize(
    "tag", ["!!python/object/apply:os.getcwd []", "!!bool foo", "!!float x", "!!int y", "1:30"]
)
def test_no_tag_makes_anything(tag: str) -> None:
    assert len(problems(f"system: {{limits: {{rpm: {tag}}}}}")) == 1


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ('{"system":\n {"limits": {"a": -1}}}', "json:2: The capacity of limit 'a' is a whole number"),
        ("{", "json:1: This is not JSON: Expecting property name"),
        ('{"system": 1,\n x}', "json:2: This is not JSON: Expecting property name enclosed in double quotes"),
        ('{"a": 1 "b": 2}', "json:1: This is not JSON: Expecting ',' delimiter"),
        ('{"a": NaN}', "json:1: This is not JSON: NaN is not a JSON number"),
        ('{"a": "\n"}', "json:1: This is not JSON: Invalid control character"),
        ('{"system": 1,\n "system": 2}', "json:2: Duplicate key 'system'."),
        ("{} x", "json:1: This is not JSON: Extra data"),
        ("[" * 100_000, "json:1: The file is nested too deeply."),
    ],
)
def test_json_has_lines_too(text: str, told: str) -> None:
    (found,) = problems(text, "f.json")
    assert found.startswith(told)


def test_aliases_do_not_grow_without_end() -> None:
    lines = ["x-0: &a0 {limits: {rpm: 1}}"]
    lines += [f"x-{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 30)]
    assert read_manifest("\n".join([*lines, "system: *a0"]), "f.yaml").levels


def test_merged_mappings_do_not_grow_without_end() -> None:
    text = "x-0: &m0 {rpm: 1}\n"
    for each in range(1, 40):
        text += f"x-{each}: &m{each} {{<<: [{', '.join([f'*m{each - 1}'] * 10)}]}}\n"
    read = read_manifest(f"{text}system: {{limits: *m39}}\n", "limits.yaml")
    assert read.levels[Level(None, None)].limits == (Limit.per_minute("rpm", 1),)


def test_of_what_is_merged_in_the_mappings_own_comes_first_then_the_first_of_a_list() -> None:
    text = "x-a: &a {rpm: 1, tpm: 1}\nx-b: &b {rpm: 2, rpd: 2}\nsystem: {limits: {tpm: 3, <<: [*a, *b]}}\n"
    limits = read_manifest(text, "limits.yaml").levels[Level(None, None)].limits
    assert {each.name: each.capacity for each in limits or ()} == {"rpd": 2, "rpm": 1, "tpm": 3}
    with pytest.raises(ManifestError, match=r":2: `<<` merges a mapping, or a list of mappings"):
        read_manifest("system:\n  limits: {<<: [1]}\n", "limits.yaml")


def test_mistakes_are_reported_up_to_a_limit() -> None:
    many = "\n".join(f"  r{n}: 5" for n in range(1000))
    assert len(problems(f"resources:\n{many}")) == 20


numbers = st.integers(1, 10**12)
limits = st.builds(
    Limit,
    st.from_regex(r"[A-Za-z][A-Za-z0-9_.\-]{0,10}", fullmatch=True),
    numbers,
    numbers,
    st.sampled_from([1, 7, 60, 3600, 86_400, 366 * 86_400]),
)


@given(limits)
def test_a_limit_is_read_as_it_is_written(limit: Limit) -> None:
    assert parse_limit(format_limit(limit)) == limit
    assert parse_limit(str(limit)) == limit


@given(st.text(max_size=30))
def test_any_text_is_a_limit_or_refused(text: str) -> None:
    try:
        assert isinstance(parse_limit(text), Limit)
    except DataError as refused:
        assert str(refused)


@given(st.text(max_size=200), st.sampled_from(["f.yaml", "f.json"]))
def test_any_text_is_a_manifest_or_refused(text: str, name: str) -> None:
    try:
        assert read_manifest(text, name).levels
    except ManifestError as refused:
        assert refused.problems


trees = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 200) | st.sampled_from(["5/day", "allow", "x"]),
    lambda below: (
        st.lists(below, max_size=2)
        | st.dictionaries(
            st.sampled_from(
                ["system", "resources", "entities", "limits", "gpt-4", "capacity", "period", "u#1"]
            ),
            below,
            max_size=3,
        )
    ),
    max_leaves=12,
)


@given(trees)
def test_json_and_yaml_are_checked_alike(tree: object) -> None:
    text = json.dumps(tree, indent=1)

    def judged(name: str) -> object:
        try:
            return read_manifest(text, name)
        except ManifestError as refused:
            return refused.problems

    assert judged("f.json") == judged("f.yaml")


levels = st.dictionaries(
    st.builds(Level, st.none() | st.sampled_from(["u", "v"]), st.none() | st.sampled_from(["r", "s"])),
    st.builds(LevelContent, st.sampled_from([(RPM,), (Limit("rpm", 1, 1, 1),)])),
)


@given(levels, levels, st.booleans())
def test_a_plan_that_is_done_leaves_nothing_to_do(
    wanted: dict[Level, LevelContent], stored: dict[Level, LevelContent], prune: bool
) -> None:
    manifest = Manifest(namespace=None, levels=wanted)
    plan = compare(manifest, stored, prune=prune)
    after = dict(stored)
    for change in plan.changes:
        assert change.before == after.pop(change.level, None)
        if change.after is not None:
            after[change.level] = change.after
    assert after == (wanted if prune else stored | wanted)
    assert compare(manifest, after, prune=prune).changes == ()
    assert plan.same + plan.count("add") + plan.count("change") == len(wanted)
    assert set(plan.unnamed) == (set() if prune else stored.keys() - wanted.keys())
