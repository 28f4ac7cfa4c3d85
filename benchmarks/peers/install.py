"""Makes the environments of the peers, each of its own, from the package registry: python install.py FOLDER

torch is pinned to the very version that seq2see was tested with, so that all engines stand on the same products. Both
toolkits ask for older versions of some packages (OpenNMT-py for torch below 2.3, Joey NMT for an old protobuf), so they
are installed alone, and what they import is named here.
"""

from __future__ import annotations

import json
import subprocess
import sys
import venv
from pathlib import Path

TORCH = "torch==2.13.0"
OPENNMT = (
    "configargparse ctranslate2>=4,<5 fasttext-wheel flask pyahocorasick pyonmttok>=1.37,<2 pyyaml rapidfuzz sacrebleu "
    "setuptools six spacy tensorboard waitress"
)
JOEY = (
    "datasets future importlib_metadata matplotlib packaging pandas pillow plotly protobuf pyyaml sacrebleu sacremoses "
    "seaborn sentencepiece setuptools six subword-nmt tensorboard wrapt"
)

ENVIRONMENTS: dict[str, tuple[list[str], list[str], str]] = {
    "opennmt": ([TORCH, "numpy", *OPENNMT.split()], ["OpenNMT-py==3.5.1"], "import onmt.transforms"),
    "joey": ([TORCH, "numpy", *JOEY.split()], ["joeynmt==2.3.0"], "import joeynmt.training"),
    "ct2": (["ctranslate2>=4,<5"], [], "import ctranslate2"),
}
"""What an environment needs, what is installed without its own list of needs, and what must be importable then."""

VERSIONS = """
import importlib.metadata, json
names = ["OpenNMT-py", "joeynmt", "ctranslate2", "torch"]
found = {each.metadata["Name"]: each.version for each in importlib.metadata.distributions()}
print(json.dumps({name: found[name] for name in names if name in found}))
"""


def install(folder: Path) -> dict[str, dict[str, str]]:
    """Make what is missing, and tell the versions; an environment that can import its toolkit is left as it is."""
    for name, (needs, alone, check) in ENVIRONMENTS.items():
        python = folder / name / "bin" / "python"
        if not python.is_file():
            venv.create(folder / name, with_pip=True)
        if subprocess.run([python, "-c", check], capture_output=True, check=False).returncode == 0:
            continue
        print(f"installing into {folder / name}", flush=True)
        pip = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        subprocess.run([*pip, *needs], check=True)
        if alone:
            subprocess.run([*pip, "--no-deps", *alone], check=True)
        subprocess.run([python, "-c", check], check=True)
    return {name: versions(folder / name / "bin" / "python") for name in ENVIRONMENTS}


def versions(python: Path) -> dict[str, str]:
    """The versions of the toolkits in an environment."""
    done = subprocess.run([python, "-c", VERSIONS], capture_output=True, text=True, check=True)
    found: dict[str, str] = json.loads(done.stdout)
    return found


if __name__ == "__main__":
    print(install(Path(sys.argv[1] if len(sys.argv) > 1 else ".peers").resolve()))
