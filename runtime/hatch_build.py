"""Puts the modules of seq2see that the runtime shares into its wheel, as `seq2see_runtime.shared`.

They are written once, in seq2see. In the wheel they have another name, so that both distributions can be installed side
by side, in any versions. Annotations are never evaluated, so the imports that only they need are left out.
"""

from __future__ import annotations

import re
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

SHARED = (
    "errors.py",
    "files.py",
    "looks.py",
    "registry.py",
    "threads.py",
    "data/image_files.py",
    "data/line_normalisation.py",
    "data/log_mel.py",
    "data/media_files.py",
    "data/sentences.py",
    "data/sound_files.py",
    "data/tokens.py",
    "data/video_files.py",
    "data/vocabulary.py",
    "search/answers.py",
    "search/beam.py",
    "search/constraints.py",
    "search/ctc_prefix.py",
    "search/greedy.py",
    "search/hypotheses.py",
    "search/language_model.py",
    "search/options.py",
    "search/run.py",
    "search/sampling.py",
    "search/stepper.py",
    "search/top.py",
    "search/tree.py",
    "seeing/**/*",
    "settings/*",
)
"""Files of seq2see, none of which needs torch."""
OWN = "seq2see_runtime"
MODULE = re.compile(r"\bseq2see\.(?=[a-z_])")
TYPES_ONLY = re.compile(r"^from jaxtyping import .*\n", re.MULTILINE)
EXTRA = re.compile(r"'seq2see\[")


class SharedModules(BuildHookInterface[Any]):
    """Called by hatchling before a wheel is written."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        root = Path(self.root)
        self._folder = tempfile.TemporaryDirectory(prefix="seq2see-runtime-")  # goes with this object
        made = Path(self._folder.name)
        included: dict[str, str] = build_data["force_include"]
        for source, name in modules(root):
            target = made / name
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(rewritten(source))
            included[str(target)] = name
        included[str(root.parent / "LICENSE")] = f"{OWN}/LICENSE"
        build_data["pure_python"] = True


def modules(root: Path) -> list[tuple[Path, str]]:
    """(file, its path in the wheel) of every module; root: the folder of this distribution."""
    found = [(path, f"{OWN}/{path.name}") for path in sorted((root / OWN).glob("*.py"))]
    project = root.parent / "seq2see"
    packages = {""}
    for pattern in SHARED:
        for path in sorted(project.glob(pattern)):
            if path.is_file():
                name = path.relative_to(project)
                packages.add("" if name.parent == Path() else f"{name.parent}/")
                found.append((path, f"{OWN}/shared/{name.as_posix()}"))
    known = {name for _, name in found}
    empty = project / "data" / "__init__.py"
    found += [(empty, name) for package in packages if (name := f"{OWN}/shared/{package}__init__.py") not in known]
    return found


def rewritten(path: Path) -> bytes:
    """A module under its name in the wheel; other files as they are."""
    if path.suffix != ".py":
        return path.read_bytes()
    text = TYPES_ONLY.sub("", path.read_text(encoding="utf-8"))
    text = MODULE.sub(f"{OWN}.shared.", text)
    return EXTRA.sub("'seq2see-runtime[", text).encode("utf-8")
