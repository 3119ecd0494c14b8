"""`solotable limiter`: modes, checks, resets, top-ups, parents, several resources; in files too."""

from __future__ import annotations

from pathlib import Path

import pytest

from .conftest import Ran, Run


@pytest.fixture
def lim(run: Run, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Run `solotable limiter` over a file that does not exist yet."""
    monkeypatch.setenv("SOLOTABLE_URL", "sqlite:///l.db")

    def run_(*arguments: str) -> Ran:
        return run("limiter", *arguments)

    return run_


def done(lim: Run, *arguments: str) -> str:
    ran = lim(*arguments)
    assert ran.code == 0, ran.err
    return ran.out


def test_an_entity_is_denied_and_let_in_again(lim: Run) -> None:
    done(lim, "system", "set-defaults", "rpm=10/day")
    assert done(lim, "entity", "set-mode", "u", "deny", "--dry-run") == (
        "Would change the mode of u from enforce to deny.\n"
    )
    assert lim("acquire", "u", "r", "rpm=1").code == 0
    assert lim("entity", "set-mode", "u", "deny", "--json").json["mode"] == "deny"
    denied = lim("acquire", "u", "r", "rpm=1")
    assert (denied.code, denied.out) == (1, "")
    assert denied.err.startswith("Error: 'u' is denied on 'r' since 20")
    checked = lim("check", "u", "r", "rpm=1", "--json")
    assert (checked.code, checked.json["admitted"]) == (1, False)
    assert "mode" in done(lim, "entity", "show", "u")
    assert lim("entity", "show", "u", "--json").json["limits"][0]["mode"] == "deny"
    done(lim, "entity", "set-mode", "u", "bypass")
    assert done(lim, "acquire", "u", "r", "rpm=999").startswith("Admitted without limits")
    done(lim, "entity", "set-mode", "u", "enforce")
    assert lim("acquire", "u", "r", "rpm=1").code == 0
    wrong = lim("entity", "set-mode", "u", "shadow")
    assert (wrong.code, wrong.err.startswith("Error: A level without limits")) == (2, True)
    assert lim("entity", "set-mode", "u", "off").code == 2


def test_shadow_and_soft_limits_are_reported(lim: Run) -> None:
    assert "shadow" in done(lim, "resource", "set-defaults", "r", "rpm=1/day", "--mode", "shadow")
    done(lim, "acquire", "u", "r", "rpm=1")
    ran = lim("acquire", "u", "r", "rpm=1")
    assert (ran.code, "would have refused: 'u' asks for 1 rpm" in ran.err) == (0, True)
    assert lim("acquire", "u", "r", "rpm=1", "--json").json["shadow_refusal"].startswith("'u' asks")
    done(lim, "resource", "set-mode", "r", "enforce")
    assert lim("acquire", "u", "r", "rpm=1").code == 1
    done(lim, "resource", "set-defaults", "r", "rpm=1/day~soft")
    ran = lim("acquire", "u", "r", "rpm=1")
    assert (ran.code, ran.err) == (0, "Soft limits exceeded: rpm\n")
    assert lim("resource", "get-defaults", "r", "--json").json["limits"][0]["soft"] is True
    done(lim, "system", "set-defaults", "rpm=1/day")
    done(lim, "system", "set-mode", "disabled")
    assert lim("acquire", "u", "other", "rpm=5").code == 0
    assert done(lim, "system", "set-mode", "shadow", "--dry-run").endswith("from disabled to shadow.\n")


def test_a_check_takes_nothing(lim: Run) -> None:
    done(lim, "system", "set-defaults", "rpm=3/day")
    assert done(lim, "check", "u", "r", "rpm=2").startswith("Would be admitted.\n")
    done(lim, "acquire", "u", "r", "rpm=2")
    refused = lim("check", "u", "r", "rpm=2")
    assert (refused.code, refused.out.startswith("Would be refused: 'u' asks for 2 rpm")) == (1, True)
    assert lim("check", "u", "r", "rpm=4").code == 2
    assert lim("available", "u", "r", "--json").json[0]["available"] == 1


def test_several_resources_are_taken_together(lim: Run) -> None:
    done(lim, "system", "set-defaults", "rpm=3/day", "tpm=100/day")
    done(lim, "acquire", "u", "r", "rpm=1", "--also", "v1:search:rpm=2,tpm=50")
    left = {each["limit"]: each["available"] for each in lim("available", "u", "v1:search", "--json").json}
    assert left == {"rpm": 1, "tpm": 50}
    assert lim("acquire", "u", "r", "rpm=1", "--also", "v1:search:rpm=2").code == 1
    assert lim("check", "u", "r", "rpm=1", "--also", "v1:search:rpm=2").code == 1
    assert lim("available", "u", "r", "--json").json[0]["available"] == 2
    for wrong in ("search", ":rpm=1", "search:rpm"):
        assert lim("acquire", "u", "r", "rpm=1", "--also", wrong).code == 2


def test_limits_are_reset_and_topped_up(lim: Run) -> None:
    done(lim, "system", "set-defaults", "rpm=3/day", "tpm=100/day")
    done(lim, "acquire", "u", "r", "rpm=3", "tpm=100")
    assert "Would add rpm=1" in done(lim, "entity", "top-up", "u", "r", "rpm=1", "--dry-run")
    for _ in range(2):
        topped = lim("entity", "top-up", "u", "r", "rpm=1", "--key", "t-1", "--json").json
        assert topped["available"]["rpm"] == 1
    assert done(lim, "entity", "top-up", "u", "r", "rpm=1").startswith("Added rpm=1 to u on r.\n")
    assert lim("entity", "top-up", "u", "r", "x=1").code == 2
    assert done(lim, "entity", "reset", "u", "--dry-run") == "Would reset all limits of u on all resources.\n"
    assert (
        done(lim, "entity", "reset", "u", "--resource", "r", "--limit", "tpm", "--yes")
        == "Reset tpm of u on r.\n"
    )
    assert [each["available"] for each in lim("available", "u", "r", "--json").json] == [2, 100]
    assert lim("entity", "reset", "u", "--yes", "--json").json["resource"] is None
    assert [each["available"] for each in lim("available", "u", "r", "--json").json] == [3, 100]
    done(lim, "audit", "deliver")
    actions = {each["action"] for each in lim("audit", "list", "--json").json}
    assert {"limits_reset", "topped_up"} <= actions


def test_an_entity_gets_another_parent(lim: Run) -> None:
    done(lim, "entity", "create", "org")
    done(lim, "entity", "create", "u")
    assert done(lim, "entity", "set-parent", "u", "org", "--dry-run") == "u would be a child of org.\n"
    assert done(lim, "entity", "set-parent", "u", "org", "--cascade") == (
        "u is a child of org, which is charged too.\n"
    )
    assert lim("entity", "set-parent", "u", "org", "--no-cascade", "--json").json["cascade"] is False
    assert done(lim, "entity", "set-parent", "u") == "u has no parent.\n"
    assert lim("entity", "set-parent", "u", "nowhere").code == 3
    assert lim("entity", "set-parent", "nowhere", "u").code == 3


FILE = """\
system:
  mode: shadow
  limits: {rpm: 100, tpm: {capacity: 9000, soft: true}}
resources:
  gpt-4: {mode: disabled}
entities:
  ann: {mode: deny}
  ben:
    limits: {rpm: 0}
    resources:
      gpt-4: {mode: bypass, limits: {rpm: 5}}
"""


def test_a_file_has_modes_and_soft_limits_and_is_planned_for_a_new_database(lim: Run, tmp_path: Path) -> None:
    (tmp_path / "limits.yaml").write_text(FILE)
    planned = done(lim, "limits", "plan", "limits.yaml")
    assert "+  system" in planned
    assert "mode=shadow" in planned
    assert "tpm=9000/minute~soft" in planned
    assert "mode=deny" in planned
    assert planned.endswith("Plan: 5 to add, 0 to change, 0 to remove; 0 unchanged.\n")
    assert not (tmp_path / "l.db").exists()
    assert lim("limits", "diff", "limits.yaml").code == 1
    done(lim, "limits", "apply", "limits.yaml", "--yes")
    assert lim("limits", "diff", "limits.yaml", "--prune").code == 0
    assert lim("check", "ann", "gpt-4", "rpm=1").code == 1
    assert lim("check", "ben", "other", "rpm=1").code == 1
    assert lim("check", "ben", "gpt-4", "rpm=1").code == 0
    assert lim("check", "eve", "gpt-4", "rpm=999").code == 0
    (tmp_path / "limits.yaml").write_text(FILE.replace("mode: shadow", "mode: enforce"))
    assert "mode=shadow" in done(lim, "limits", "plan", "limits.yaml")


def test_a_file_leaves_a_denial_alone_unless_it_has_a_mode(lim: Run, tmp_path: Path) -> None:
    (tmp_path / "f.yaml").write_text("entities:\n  ann: {limits: {rpm: 5}}\n")
    done(lim, "entity", "set-mode", "ann", "deny")
    done(lim, "entity", "set-mode", "eve", "deny")
    done(lim, "limits", "apply", "f.yaml", "--prune", "--yes")
    assert lim("limits", "diff", "f.yaml", "--prune").code == 0
    assert lim("check", "ann", "r", "rpm=1").code == 1
    assert lim("entity", "get-limits", "eve", "--json").json[0]["mode"] == "deny"
    (tmp_path / "f.yaml").write_text("entities:\n  ann: {mode: enforce, limits: {rpm: 5}}\n")
    done(lim, "limits", "apply", "f.yaml", "--yes")
    assert lim("check", "ann", "r", "rpm=1").code == 0


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("system: {mode: deny}", "mode is enforce, shadow, disabled; got 'deny'."),
        ("entities: {u: {mode: off-and-on}}", "mode is enforce, shadow, disabled, bypass, deny"),
        ("entities: {u: {mode: shadow}}", "Entity u has no limits; leave it out to have none."),
        ("system: {limits: {rpm: {capacity: 5, soft: maybe}}}", "soft"),
    ],
)
def test_a_mode_that_makes_no_sense_is_reported_with_its_line(
    lim: Run, tmp_path: Path, text: str, message: str
) -> None:
    (tmp_path / "bad.yaml").write_text(text)
    ran = lim("limits", "plan", "bad.yaml")
    assert ran.code == 2
    assert ran.err.startswith("bad.yaml:1: ")
    assert message in ran.err


@pytest.mark.parametrize(
    ("amount", "code"), [("rpm=1", 0), ("rpm=9", 1), ("rpm=101", 2), ("nope=1", 2), ("rpm=x", 2)]
)
def test_check_and_acquire_exit_with_the_same_codes(lim: Run, amount: str, code: int) -> None:
    assert lim("system", "set-defaults", "rpm=100/day").code == 0
    assert lim("acquire", "ann", "gpt-4", "rpm=92").code == 0
    assert [lim(verb, "ann", "gpt-4", amount).code for verb in ("check", "acquire")] == [code, code]


def test_check_and_acquire_of_denied_entities_and_without_limits_exit_alike(lim: Run) -> None:
    assert lim("system", "set-mode", "enforce").code == 0
    assert [lim(verb, "ann", "gpt-4", "rpm=1").code for verb in ("check", "acquire")] == [3, 3]
    assert lim("system", "set-defaults", "rpm=100/day").code == 0
    assert lim("entity", "set-mode", "ann", "deny").code == 0
    assert [lim(verb, "ann", "gpt-4", "rpm=1").code for verb in ("check", "acquire")] == [1, 1]
    assert lim("entity", "reset", "ann", "--limit", "nope", "--yes").code == 2


def test_a_file_has_every_kind_of_limit_a_schedule_and_modes(lim: Run, tmp_path: Path) -> None:
    (tmp_path / "limits.yaml").write_text(
        """
system:
  limits:
    bucket: {capacity: 9, refill: 3, period: day}
    fixed: {capacity: 9, kind: fixed_window, period: day}
    sliding: {capacity: 9, kind: sliding_window, period: day}
    session: {capacity: 9, kind: session, period_seconds: 86400}
    jobs: {capacity: 9, kind: concurrency, period: hour}
    quota: {capacity: 9, kind: calendar, per: month, timezone: Europe/Berlin, anchor: 15}
    warned: {capacity: 9, period: day, soft: true}
resources:
  scheduled:
    limits: {bucket: 1}
    schedule: {windows: [{when: mon-sun, limits: {bucket: {capacity: 7, period: day}}}]}
  trial: {mode: shadow, limits: {bucket: {capacity: 1, period: day}}}
entities:
  eve: {mode: deny}
"""
    )
    done(lim, "limits", "apply", "limits.yaml", "--yes")
    assert lim("limits", "diff", "limits.yaml").code == 0
    named = ("bucket", "fixed", "sliding", "session", "jobs", "quota")
    for name in named:
        done(lim, "acquire", "u", "api", f"{name}=5")
        # A lease of a command ends with it.
        assert lim("acquire", "u", "api", f"{name}=5").code == (0 if name == "jobs" else 1), name
    done(lim, "acquire", "u", "api", "warned=5")
    assert "Soft limits exceeded: warned" in lim("acquire", "u", "api", "warned=5").err
    assert lim("check", "u", "scheduled", "bucket=8").code == 2
    done(lim, "acquire", "u", "scheduled", "bucket=7")
    assert [lim("acquire", "u", "trial", "bucket=1").code for _ in range(2)] == [0, 0]
    assert lim("acquire", "eve", "api", "bucket=1").code == 1
