"""Commands print the values of encrypted fields only on request, and never in errors."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from .conftest import Run
from .patients import Visitor

SECRET = "078-05-1120"
LONG = f"{SECRET}-{SECRET}"
HIDDEN = {"ssn": "<encrypted>", "pin": "<encrypted>", "letter": "<encrypted>"}


@pytest.fixture
def clinic(run: Run, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Run `solotable` over a file with a patient."""
    monkeypatch.setenv("SOLOTABLE_MODELS", str(Path(__file__).with_name("patients.py")))
    file = Path("p1.json")
    file.write_text(json.dumps({"patient_id": "p1", "ssn": SECRET, "pin": SECRET, "Letter": SECRET}))
    put = run("put", "Patient", "--json-input", str(file), "--json")
    assert (put.code, put.json) == (0, {"tenant_id": "acme", "patient_id": "p1", **HIDDEN, "visits": 0})
    return run


READS = {
    "get": ("get", "Patient", "patient_id=p1"),
    "query": ("query", "Patient.everyone"),
    "all": ("query", "Patient.everyone", "--all"),
    "view": ("query", "Patient.summaries"),
    "list": ("list", "Patient"),
    "update": ("update", "Patient", "patient_id=p1", "--set", "visits=2"),
    "delete": ("delete", "Patient", "patient_id=p1"),
}


@pytest.mark.parametrize("name", READS)
@pytest.mark.parametrize("output", [(), ("--json",), ("--jsonl",), ("--csv",)], ids=str)
def test_values_are_masked_unless_they_are_asked_for(clinic: Run, name: str, output: tuple[str, ...]) -> None:
    masked = clinic(*READS[name], *output)
    assert masked.code == 0, masked.err
    assert "<encrypted>" in masked.out
    assert SECRET not in masked.out + masked.err
    if name != "delete":
        shown = clinic(*READS[name], "--show-encrypted", *output)
        assert shown.out.count(SECRET) == (1 if name == "view" else 3)


def test_fields_keep_their_order_and_none_is_shown(clinic: Run) -> None:
    put = clinic("put", "Patient", "patient_id=p2", f"ssn={SECRET}", "--json").json
    assert list(put) == ["tenant_id", "patient_id", "ssn", "pin", "letter", "visits"]
    assert (put["pin"], put["letter"]) == (None, "<encrypted>")


def test_tail_masks_values(clinic: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SOLOTABLE_TENANT")
    (line,) = clinic("tail", "Patient").out.splitlines()
    assert json.loads(line)["after"] | HIDDEN == json.loads(line)["after"]
    assert clinic("tail", "Patient", "--show-encrypted").out.count(SECRET) == 3


WRONG = {
    "field": ("put", "Patient", "patient_id=p2", f"ssn={LONG}"),
    "JSON": ("put", "Patient", "patient_id=p2", f'ssn:="{LONG}"'),
    "not JSON": ("put", "Patient", "patient_id=p2", f"ssn:={LONG}"),
    "model": ("put", "Patient", "patient_id=p2", f"ssn={SECRET}", "visits=200"),
    "update": ("update", "Patient", "patient_id=p1", "--set", f"ssn={LONG}"),
    "model of an update": ("update", "Patient", "patient_id=p1", "--set", "visits=200"),
    "explain": ("explain", "put", "Patient", "patient_id=p2", f"ssn={LONG}"),
}


@pytest.mark.parametrize("name", WRONG)
def test_errors_do_not_show_values(clinic: Run, name: str) -> None:
    ran = clinic(*WRONG[name])
    assert ran.code in {1, 2}
    assert "Patient" in ran.err
    assert SECRET not in ran.out + ran.err


@pytest.mark.parametrize("field", ["ssn", "Letter", "letr"])
def test_errors_of_a_file_do_not_show_values(clinic: Run, field: str) -> None:
    Path("p2.json").write_text(json.dumps({"patient_id": "p2", "ssn": SECRET, field: [LONG]}))
    ran = clinic("put", "Patient", "--json-input", "p2.json")
    assert ran.code == 2, ran.out
    assert f"Patient.{field} = <encrypted>: " in ran.err
    assert SECRET not in ran.err


def test_the_mask_is_not_stored(clinic: Run) -> None:
    Path("p2.json").write_text(json.dumps(clinic("get", "Patient", "patient_id=p1", "--json").json))
    for command in (
        ("put", "Patient", "--json-input", "p2.json"),
        ("put", "Patient", "patient_id=p1", "ssn=<encrypted>"),
        ("update", "Patient", "patient_id=p1", "--set", "ssn=<encrypted>"),
    ):
        ran = clinic(*command)
        assert ran.code == 2
        assert "Patient.ssn = <encrypted> is what commands print instead of an encrypted value" in ran.err
    assert clinic("get", "Patient", "patient_id=p1", "--json", "--show-encrypted").json["ssn"] == SECRET


def test_computed_fields_that_may_contain_an_encrypted_value_are_masked(clinic: Run) -> None:
    derived = ("ssn", "last_digits", "first_digits", "described")
    put = clinic("put", "Visitor", "visitor_id=v1", f"ssn={SECRET}", "--json").json
    assert put == {"tenant_id": "acme", "visitor_id": "v1", "title": "V1"} | dict.fromkeys(
        derived, "<encrypted>"
    )
    assert clinic("query", "Visitor.digits", "--all", "--jsonl").json == dict.fromkeys(
        ("ssn", "digits"), "<encrypted>"
    )
    shown = clinic("get", "Visitor", "visitor_id=v1", "--show-encrypted", "--json").json
    assert [shown[name] for name in derived] == [SECRET, "1120", "078", f"v1 {SECRET}"]


def test_the_repr_of_an_entity_has_no_computed_field_that_may_contain_an_encrypted_value() -> None:
    assert repr(Visitor(visitor_id="v1", ssn=SECRET)) == (
        "Visitor(tenant_id=FROM_SCOPE, visitor_id='v1', title='V1')"
    )
