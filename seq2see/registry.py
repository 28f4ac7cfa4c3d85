"""Registries: classes that a recipe names, and the rules that a recipe has to keep."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeVar

from seq2see.errors import UserError, nearest

if TYPE_CHECKING:
    from seq2see.recipe.schema import Recipe

T = TypeVar("T", bound=type)
NAME = re.compile(r"[A-Za-z0-9_.@-]+")
"""Of a part, as recipes write it."""


class Registry(Generic[T]):
    """Classes by the names that recipes use, and the settings of each; a name given twice is refused.

    A class states its settings as `Settings`. For one that does not, `derive` makes them from its constructor, so that
    a plug-in needs the class alone.

    >>> shapes = Registry("shape")
    >>> @shapes.register("round")
    ... class Round: ...
    >>> shapes["round"] is Round
    True
    """

    def __init__(
        self,
        what: str,
        *,
        settings: dict[str, Any] | None = None,
        check: Callable[[str, T], None] | None = None,
        derive: Callable[[str, T], Any] | None = None,
    ):
        """what: the kind of part, for messages; settings: filled with the settings of each class by its name; check:
        called with name and class before it is registered, and may refuse it."""
        self.what, self.settings = what, settings if settings is not None else {}
        self._check, self._derive = check, derive
        self._kinds: dict[str, T] = {}

    def register(self, name: Any) -> Callable[[T], T]:
        """Register a class under that name, a text."""
        if not isinstance(name, str) or not NAME.fullmatch(name):
            raise TypeError(
                f'a {self.what} is registered under a name: @register("my-{self.what.split()[0]}"), got {name!r}'
            )

        def add(kind: T) -> T:
            if name in self._kinds:
                raise ValueError(f"two classes want the {self.what} name '{name}': {self._kinds[name]} and {kind}")
            if self._check is not None:
                self._check(name, kind)
            settings = getattr(kind, "__dict__", {}).get("Settings")
            if settings is None and self._derive is not None:
                settings = self._derive(name, kind)
            if settings is not None:
                self.settings[name] = settings
            self._kinds[name] = kind
            return kind

        return add

    def remove(self, name: str) -> None:
        """Forget a class, as tests do that bring their own."""
        del self._kinds[name]
        self.settings.pop(name, None)

    def name_of(self, kind: type) -> str | None:
        """The name of a class; None where it is not registered."""
        return next((name for name, known in self._kinds.items() if known is kind), None)

    def __getitem__(self, name: str) -> T:
        if name not in self._kinds:
            allowed = ", ".join(self._kinds)
            raise UserError(f"unknown {self.what} '{name}'{nearest(name, self._kinds)}; allowed: {allowed}")
        return self._kinds[name]

    def __contains__(self, name: object) -> bool:
        return name in self._kinds

    def __iter__(self) -> Iterator[str]:
        return iter(self._kinds)

    def __len__(self) -> int:
        return len(self._kinds)


# --- Rules


@dataclass(frozen=True)
class Problem:
    """What is wrong with a recipe: the path of the key, why, and the name of the rule that found it.

    no_effect: the setting differs from its default and would do nothing in this recipe.
    """

    path: str
    message: str
    rule: str = ""
    no_effect: bool = False

    def __str__(self) -> str:
        path = f"{self.path}: " if self.path else ""  # a key that is no text has none
        return f"{path}{'has no effect here: ' if self.no_effect else ''}{self.message}"


Check = Callable[["Recipe"], Iterable[Problem]]
Stage = Literal["names", "readers", "encoder", "combinations", "no-effect"]
"""When a rule is checked. A problem hides those of later stages, which take for granted that earlier rules are kept;
`combinations` and `no-effect` are reported together, one problem for each path."""


@dataclass(frozen=True)
class Rule:
    """A check of whole recipes. droppable: an override that breaks it drops the setting at fault, and says so."""

    name: str
    check: Check
    stage: Stage
    droppable: bool

    def problems(self, recipe: Recipe) -> Iterator[Problem]:
        """What the check finds, under the name of the rule."""
        for problem in self.check(recipe):
            yield Problem(problem.path, problem.message, self.name, problem.no_effect or self.stage == "no-effect")


RULES: dict[str, Rule] = {}
"""All rules by name, in the order in which they are checked."""


def rule(name: str, *, stage: Stage = "combinations", droppable: bool = False) -> Callable[[Check], Check]:
    """Register a check of recipes, a function from a recipe to the problems it finds.

    Rules about the settings of a single part are written as a method `check(self, recipe, path)` of the class of these
    settings instead; path is the key they stand under.

    >>> @rule("example-seed")
    ... def check_seed(recipe):
    ...     if recipe.training.seed == 13:
    ...         yield Problem("training.seed", "13 brings bad luck; allowed: any other number")
    >>> del RULES["example-seed"]
    """

    def add(check: Check) -> Check:
        if name in RULES:
            raise ValueError(f"two rules want the name '{name}': {RULES[name].check} and {check}")
        RULES[name] = Rule(name, check, stage, droppable or stage == "no-effect")
        return check

    return add
