"""A record says which Python build it was taken on, and a slow build is warned about."""

from __future__ import annotations

import json
import sysconfig
from pathlib import Path
from typing import Any

import pytest

from bench import report


def build(monkeypatch: pytest.MonkeyPatch, **variables: Any) -> dict[str, Any]:
    monkeypatch.setattr(sysconfig, "get_config_vars", lambda: variables)
    return report.python_build()


def test_pgo_and_lto_are_found_in_the_arguments_or_the_flags(monkeypatch: pytest.MonkeyPatch) -> None:
    both = build(monkeypatch, CONFIG_ARGS="'--enable-optimizations' '--with-lto'", PY_CFLAGS="-O3 -Wall")
    assert (both["pgo"], both["lto"], both["optimised"], both["flags"]) == (True, True, True, "-O3")
    assert list(report.build_line().split(", ")[2:4]) == [
        "with PGO",
        f"with LTO (-O3); JSON by {report.json_library()}",
    ]
    flags = build(monkeypatch, CONFIG_ARGS="", PY_CORE_CFLAGS="-fprofile-use -flto=auto -O2")
    assert (flags["pgo"], flags["lto"], flags["optimised"]) == (True, True, True)
    debug = build(monkeypatch, CONFIG_ARGS="--enable-optimizations", Py_DEBUG=1)
    assert debug["optimised"] is False


def test_an_unoptimised_build_is_warned_about_and_an_unknown_one_is_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(report, "load_average", lambda: 0.0)
    assert build(monkeypatch, CONFIG_ARGS="'--prefix=some-folder'", PY_CFLAGS="-O3")["optimised"] is False
    (warning,) = report.warnings()
    assert report.UNOPTIMISED_COST in warning
    assert "without PGO, without LTO" in report.build_line()
    assert build(monkeypatch)["optimised"] is None
    assert list(report.warnings()) == []
    assert "does not say whether with PGO and LTO" in report.build_line()


def test_a_shared_library_that_is_not_loaded_says_nothing_about_this_interpreter(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    maps = tmp_path / "maps"
    monkeypatch.setattr(report, "MAPS", maps)
    for loaded, optimised in (("libpython3.11.so.1.0", False), ("libc.so.6", None)):
        maps.write_text(f"7f00-7f01 r-xp {loaded}", encoding="utf-8")
        shared = build(monkeypatch, CONFIG_ARGS="'--enable-shared'", Py_ENABLE_SHARED=1)
        assert shared["optimised"] is optimised


def test_a_record_names_the_build_and_no_path(monkeypatch: pytest.MonkeyPatch) -> None:
    build(monkeypatch, CONFIG_ARGS="'--prefix=some-folder'", PY_CFLAGS="-O3 -Isome-folder")
    machine = report.record("a part", {}, [])["machine"]
    assert machine["python_build"]["pgo"] is False
    assert machine["json"] in ("orjson", "json")
    assert "some-folder" not in json.dumps(machine)
