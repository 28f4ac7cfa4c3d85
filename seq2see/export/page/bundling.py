"""JavaScript modules as one script, so that a page needs no other file.

Each module becomes a function that returns what it exports. Only the forms of `import` and `export` that our modules
use are known; others are refused.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from posixpath import dirname, join, normpath

IMPORT = re.compile(r"^import\s+(?P<what>\{[^}]*\}|\*\s+as\s+\w+)\s+from\s+\"(?P<path>[^\"]+)\";", re.MULTILINE)
EXPORT = re.compile(r"^export\s+(?=(?:async\s+)?(?:function|class|const|let)\b)", re.MULTILINE)
EXPORTED = re.compile(r"^export\s+(?:async\s+)?(?:function|class|const|let)\s+(?P<what>\w+|\[[^\]]*\])", re.MULTILINE)
OTHER = re.compile(r"^(?:import|export)\b.*", re.MULTILINE)
RENAMED = re.compile(r"(\w+)\s+as\s+(\w+)")


def bundle_modules(sources: Mapping[str, str], first: str) -> str:
    """One script of the module `first` and all that it imports.

    sources: {path: text}; a path in an import is relative to the module's own, or one of the keys.

    >>> sources = {"a.js": 'import { two } from "./b.js";\\ntwo();', "b.js": "export const two = 2;"}
    >>> print(bundle_modules(sources, "a.js"))
    "use strict";
    const modules = {};
    modules["b.js"] = (() => {
    const two = 2;
    return { two };
    })();
    modules["a.js"] = (() => {
    const { two } = modules["b.js"];
    two();
    return {  };
    })();
    """
    parts: dict[str, str] = {}
    _add(first, sources, parts, ())
    return "\n".join(['"use strict";', "const modules = {};", *parts.values()])


def _add(path: str, sources: Mapping[str, str], parts: dict[str, str], waiting: tuple[str, ...]) -> None:
    """Add a module after those that it imports."""
    if path in parts:
        return
    if path in waiting:
        raise ValueError(f"modules import each other: {' -> '.join((*waiting, path))}")
    text = sources[path]

    def resolved(given: str) -> str:
        return normpath(join(dirname(path), given)) if given.startswith(".") else given

    for match in IMPORT.finditer(text):
        _add(resolved(match["path"]), sources, parts, (*waiting, path))

    def constant(match: re.Match[str]) -> str:
        what = match["what"]
        names = (
            what.removeprefix("*").strip().removeprefix("as ") if what.startswith("*") else RENAMED.sub(r"\1: \2", what)
        )
        return f'const {names} = modules["{resolved(match["path"])}"];'

    names = [name for match in EXPORTED.finditer(text) for name in re.findall(r"\w+", match["what"])]
    body = EXPORT.sub("", IMPORT.sub(constant, text))
    other = OTHER.search(body)
    if other is not None:
        raise ValueError(f"{path}: a form that cannot be bundled: {other.group()}")
    parts[path] = f'modules["{path}"] = (() => {{\n{body.strip()}\nreturn {{ {", ".join(names)} }};\n}})();'
