"""The server's image and compose file, as far as they can be checked without Docker's engine."""

from __future__ import annotations

import fnmatch
import json
import os
import re
import shlex
import subprocess
import sys
import threading
import tomllib
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import yaml

from seq2see.cli.app import COMMANDS, parse_command
from seq2see.studio.app import create_app
from seq2see.studio.limits import Limits
from seq2see.studio.metrics import ServerMetrics
from seq2see.studio.model_repository import load_models
from seq2see.studio.server import create_server, listen, server_url

PROJECT = Path(__file__).resolve().parent.parent


def instructions(path: Path) -> list[tuple[str, str]]:
    """(name, rest) of each instruction, lines that go on joined."""
    text = re.sub(r"^#.*\n", "", path.read_text("utf-8"), flags=re.MULTILINE).replace("\\\n", " ")
    lines = [line.strip().partition(" ") for line in text.splitlines() if line.strip()]
    return [(name, rest.strip()) for name, _, rest in lines]


STEPS = instructions(PROJECT / "Dockerfile")
KNOWN = {"FROM", "RUN", "COPY", "ARG", "ENV", "USER", "WORKDIR", "EXPOSE", "HEALTHCHECK", "ENTRYPOINT", "CMD"}


def rests(name: str) -> list[str]:
    return [rest for step, rest in STEPS if step == name]


def test_every_instruction_is_one() -> None:
    assert {name for name, _ in STEPS} <= KNOWN
    assert STEPS[0][0] == "FROM"


def test_what_is_copied_is_there_and_not_ignored() -> None:
    ignored = [
        line for line in (PROJECT / ".dockerignore").read_text("utf-8").splitlines() if line[:1] not in ("#", "")
    ]
    assert ignored[0] == "*"
    kept = {line.removeprefix("!") for line in ignored if line.startswith("!")}
    stages = {rest.split()[-1] for rest in rests("FROM") if " AS " in rest}
    copied = [shlex.split(rest)[:-1] for rest in rests("COPY")]
    assert copied
    for sources in copied:
        if sources[0].startswith("--from="):
            assert sources[0].removeprefix("--from=") in stages
            continue
        for source in sources:
            assert (PROJECT / source).exists(), source
            assert source in kept, source
    runtime = instructions(PROJECT / "runtime" / "Dockerfile")
    for source in (rest.split()[0] for name, rest in runtime if name == "COPY" and rest[0] not in "-$"):
        assert source in kept, source


def test_what_the_build_reads_is_copied_before() -> None:
    """The project's metadata names the readme and the licence, which hatchling reads."""
    project = tomllib.loads((PROJECT / "pyproject.toml").read_text("utf-8"))["project"]
    place = next(number for number, (name, rest) in enumerate(STEPS) if name == "RUN" and '".[' in rest)
    copied = {source for name, rest in STEPS[:place] if name == "COPY" for source in rest.split()[:-1]}
    assert {"pyproject.toml", "seq2see", project["readme"], *project["license-files"], "constraints.txt"} <= copied


def test_pip_installs_pinned_versions_and_extras_that_exist() -> None:
    installs = [rest for rest in rests("RUN") if "pip install" in rest]
    assert len(installs) == 2
    assert all("-c constraints.txt" in command for command in installs)
    assert "torch" in shlex.split(installs[0])
    assert "/whl/cpu" in dict(rest.split("=", 1) for rest in rests("ARG"))["TORCH_INDEX"]
    arguments = dict(rest.split("=", 1) for rest in rests("ARG"))
    project = tomllib.loads((PROJECT / "pyproject.toml").read_text("utf-8"))["project"]
    assert set(arguments["EXTRAS"].split(",")) <= project["optional-dependencies"].keys()
    used = {name for rest in rests("RUN") for name in re.findall(r"\$\{(\w+)\}", rest)}
    assert used == arguments.keys()


def test_it_runs_as_a_user_without_rights_and_says_how_it_is() -> None:
    (user,) = rests("USER")
    assert int(user) > 0
    last = max(number for number, (name, _) in enumerate(STEPS) if name == "FROM")
    names = [name for name, _ in STEPS[last:]]
    assert names.index("USER") < names.index("ENTRYPOINT")
    assert "RUN" not in names[names.index("USER") :]
    (health,) = rests("HEALTHCHECK")
    command = json.loads(health.partition("CMD")[2])
    compile(command[2], "HEALTHCHECK", "exec")
    assert "/health" in command[2]
    assert json.loads(rests("ENTRYPOINT")[0]) == ["seq2see"]


@pytest.mark.parametrize("token", [None, "a-token-of-a-test"])
def test_the_health_check_passes_with_and_without_a_token(token: str | None) -> None:
    """The command of the image itself, at a server that is well, and at one that is gone."""
    model = str(PROJECT / "tests" / "models" / "0.1.0" / "entailment")
    limits, metrics = Limits(), ServerMetrics()
    app = create_app(load_models([model], limits, metrics), limits, metrics, token=token)
    command = json.loads(rests("HEALTHCHECK")[0].partition("CMD")[2])[1:]
    environment = {name: value for name, value in os.environ.items() if name != "SEQ2SEE_TOKEN"}
    environment |= {} if token is None else {"SEQ2SEE_TOKEN": token}
    with closing(listen("127.0.0.1", 0)) as listening:
        address = server_url(listening)
        assert "http://127.0.0.1:8000/" in command[1]
        check = [sys.executable, command[0], command[1].replace("http://127.0.0.1:8000/", address)]
        server = create_server(app, limits)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
        thread.start()
        well = subprocess.run(check, env=environment, check=False, capture_output=True, text=True)
        server.should_exit = server.force_exit = True
        thread.join(30)
    assert well.returncode == 0, well.stderr
    assert subprocess.run(check, env=environment, check=False, capture_output=True).returncode != 0


@pytest.fixture(scope="module")
def studio() -> dict[str, Any]:
    compose = yaml.safe_load((PROJECT / "compose.yaml").read_text("utf-8"))
    (service,) = compose["services"].values()
    return dict(service)


def test_the_service(studio: dict[str, Any]) -> None:
    assert studio["read_only"] is True
    assert studio["cap_drop"] == ["ALL"]
    assert studio["tmpfs"] == ["/tmp"]
    (port,) = studio["ports"]
    assert port.startswith("127.0.0.1:")
    assert port.endswith(f":{rests('EXPOSE')[0]}")
    assert "SEQ2SEE_TOKEN" in studio["environment"]
    assert (PROJECT / studio["build"] / "Dockerfile").is_file()


def test_the_command_of_the_service_can_be_parsed(studio: dict[str, Any]) -> None:
    name, *words = studio["command"]
    assert name in COMMANDS
    _, args = parse_command(f"seq2see.cli.{name}", name, words)
    assert args.host == "0.0.0.0"
    (volume,) = studio["volumes"]
    assert args.models == [volume.split(":")[-2]]
    assert volume.endswith(":ro")
    assert any(fnmatch.fnmatch(path, "/tmp*") for path in studio["tmpfs"]), "packed models are unpacked there"
