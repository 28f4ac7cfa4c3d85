"""`--plugin my_module`: a user's own scores, encoders and decoders, known by name once their module is imported.

A plug-in is code, so it is brought by the person who types the command alone: never by a recipe, a model's folder or
the environment. What goes wrong in it, while it is imported or later, is the user's to mend.
"""

from __future__ import annotations

import sys
import traceback
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType

from seq2see.errors import UserError


def bring(names: Sequence[str]) -> list[ModuleType]:
    """Import the modules of these names, from the current folder too, so that what they register can be asked for."""
    here = str(Path.cwd())
    if names and here not in sys.path:
        sys.path.append(here)  # last: a file of the user's must not stand in for a library that others import
    return [_brought(name) for name in names]


@contextmanager
def theirs(brought: Sequence[ModuleType]) -> Iterator[None]:
    """Whatever fails inside the code of a plug-in is told with the line of that code, and is no fault of seq2see."""
    try:
        yield
    except UserError:
        raise
    except Exception as error:
        lines = {frame.filename: frame.lineno for frame in traceback.extract_tb(error.__traceback__)}
        found = next((one for one in brought if one.__file__ in lines), None)
        if found is None:
            raise
        what = ": ".join(part for part in (type(error).__name__, str(error)) if part)
        place = f"{Path(str(found.__file__)).name}, line {lines[str(found.__file__)]}"
        raise UserError(f"--plugin {found.__name__}: failed: {what} ({place})") from error


def _brought(name: str) -> ModuleType:
    _check_name(name)
    try:
        return import_module(name)
    except Exception as error:  # whatever is wrong in the user's module is the user's to mend
        raise UserError(
            f"--plugin {name}: cannot be imported: {type(error).__name__}: {error}{_place(error)}"
        ) from error


def _check_name(name: str) -> None:
    module = name.removesuffix(".py").replace("/", ".").strip(".")
    if not all(part.isidentifier() for part in name.split(".")) or name.endswith(".py"):
        hint = f" (did you mean '{module}'?)" if all(part.isidentifier() for part in module.split(".")) else ""
        raise UserError(f"--plugin {name}: not the name of a module, as `import` takes it{hint}")
    first = name.split(".")[0]
    own = [path for path in (Path.cwd() / f"{first}.py", Path.cwd() / first / "__init__.py") if path.is_file()]
    spec = find_spec(first)
    if spec is None:
        raise UserError(
            f"--plugin {name}: no such module: there is no {first}.py in {Path.cwd()}, and none is installed"
        )
    if own and spec.origin is not None and not own[0].samefile(spec.origin):
        raise UserError(
            f"--plugin {name}: {own[0].name} is not what `import {first}` finds, which is {spec.origin}; "
            "give the file another name"
        )


def _place(error: Exception) -> str:
    """Where in the user's code it went wrong: the last line that is neither ours nor the import system's."""
    frames = [
        frame
        for frame in traceback.extract_tb(error.__traceback__)
        if not frame.filename.startswith("<")
        and Path(frame.filename) != Path(__file__)
        and "importlib" not in frame.filename
    ]
    mine = [frame for frame in frames if Path(frame.filename).is_relative_to(Path.cwd())] or frames
    return f" ({Path(mine[-1].filename).name}, line {mine[-1].lineno})" if mine else ""
