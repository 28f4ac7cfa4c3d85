"""e_tj = score(query, h_j): one small class per kind. Masks and softmax are not their business.

Queries come several at a time: (batch, queries, query) against (batch, places, key) gives (batch, queries, places).
`keys` is computed once per input, `energies` once per step.
"""

from __future__ import annotations

import inspect
import math
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn.functional import linear, normalize, pad

from seq2see.attention.records import Candidates
from seq2see.deferred_gradients import gather_places
from seq2see.errors import UserError
from seq2see.memory import Layout
from seq2see.registry import Registry
from seq2see.settings.attention import declare
from seq2see.settings.base import first_line

scores: Registry[type[Score]] = Registry("score")

REMARK = re.compile(r"[,;:] (?![^\[(]*[\])])")
"""A score says its equation first; a comma, semicolon or colon outside brackets ends it, and remarks may follow."""


class Score(nn.Module):
    """A kind of attention writes `energies`, and `keys` where the places can be prepared once per input.

    A score that goes by more than the keys, by where places lie or by earlier looks, writes `forward` instead.
    """

    ordered = False
    """True where the score depends on where a place lies, so that it has no meaning for a set."""

    remembers = False
    """True where it depends on the sum of earlier looks, which then comes with the candidates."""

    uses_query = True
    """False where the query has no say: the same looks, whoever asks."""

    def __init__(self, query: int, key: int):
        super().__init__()

    def keys(self, states: Float[Tensor, "batch places key"]) -> Float[Tensor, "batch places size"]:
        return states

    def energies(
        self, query: Float[Tensor, "batch queries query"], keys: Float[Tensor, "batch places size"]
    ) -> Float[Tensor, "batch queries places"]:
        raise NotImplementedError

    def forward(
        self, query: Float[Tensor, "batch queries query"], candidates: Candidates
    ) -> Float[Tensor, "batch queries places"]:
        """The energies of the candidates: what an attention calls."""
        return self.energies(query, candidates.keys)


def register(name: str) -> Callable[[type[Score]], type[Score]]:
    """Give a score its name, in the registry and for recipes."""

    def add(kind: Any) -> Any:
        _check_class(name, kind)
        scores.register(name)(kind)
        declare(name, options(name), ordered=kind.ordered)
        return kind

    return add


def build_score(name: str, query: int, key: int, settings: Mapping[str, Any] | None = None) -> Score:
    """The score of that name with those of the settings its constructor knows."""
    kind = scores[name]
    known = _arguments(name)
    given = {option: value for option, value in (settings or {}).items() if option in known}
    missing = [one for one in inspect.signature(kind).parameters.values() if one.name in known - given.keys()]
    for one in missing:
        if one.default is one.empty and one.kind not in (one.VAR_POSITIONAL, one.VAR_KEYWORD):
            raise UserError(f"attention.options.{one.name}: has to be given: the score '{name}' has no default for it")
    return kind(query, key, **given)


def name_of(score: Score) -> str:
    """The name by which recipes ask for a score of that class; the class's own where it was never registered."""
    return next((name for name in scores if scores[name] is type(score)), type(score).__name__)


def options(name: str) -> set[str]:
    """Settings that mean something to the score of that name: its constructor's arguments beyond sizes and axes."""
    return _arguments(name) - {"axes"}


def equation_of(name: str) -> str:
    """'e_j = q . k_j', in the words of the score's own class; its name where that says nothing."""
    return REMARK.split(first_line(scores[name]))[0] or f"e_j = {name}(q, k_j)"


def _check_class(name: str, kind: Any) -> None:
    """Refuse, where it is registered, what could not be asked once it was built."""
    said = f"score '{name}'"
    if not (isinstance(kind, type) and issubclass(kind, Score)):
        raise TypeError(f"{said}: {getattr(kind, '__name__', kind)} is no subclass of seq2see.attention.Score")
    if kind.energies is Score.energies and kind.forward is Score.forward:
        raise TypeError(f"{said}: {kind.__name__} writes neither energies(query, keys) nor forward(query, candidates)")
    if list(inspect.signature(kind).parameters)[:2] != ["query", "key"]:
        raise TypeError(f"{said}: the first arguments of {kind.__name__}'s constructor are query and key, their sizes")


def _arguments(name: str) -> set[str]:
    return set(inspect.signature(scores[name].__init__).parameters) - {"self", "query", "key"}


def _same_size(name: str, query: int, key: int) -> None:
    if query != key:
        raise UserError(
            f"attention.score {name} needs a query and places of one size, got {query} and {key}; "
            "set decoder.size to the size of the places, or use general or additive"
        )


@register("dot")
class Dot(Score):
    """e_j = q . k_j"""

    def __init__(self, query: int, key: int):
        super().__init__(query, key)
        _same_size("dot", query, key)

    def energies(
        self, query: Float[Tensor, "batch queries query"], keys: Float[Tensor, "batch places size"]
    ) -> Float[Tensor, "batch queries places"]:
        return query @ keys.transpose(1, 2)


@register("scaled-dot")
class ScaledDot(Score):
    """e_j = q . k_j / sqrt(d), d the size of the key"""

    def __init__(self, query: int, key: int):
        super().__init__(query, key)
        _same_size("scaled-dot", query, key)
        self.scale = 1 / math.sqrt(key)

    def energies(
        self, query: Float[Tensor, "batch queries query"], keys: Float[Tensor, "batch places size"]
    ) -> Float[Tensor, "batch queries places"]:
        return self.scale * (query @ keys.transpose(1, 2))


@register("cosine")
class Cosine(Score):
    """e_j = q . k_j / (|q| |k_j|), times a learned temperature where asked for"""

    def __init__(self, query: int, key: int, learned_temperature: bool = False):
        super().__init__(query, key)
        _same_size("cosine", query, key)
        self.temperature = nn.Parameter(torch.tensor(1.0)) if learned_temperature else None

    def keys(self, states: Float[Tensor, "batch places key"]) -> Float[Tensor, "batch places size"]:
        return normalize(states, dim=-1)

    def energies(
        self, query: Float[Tensor, "batch queries query"], keys: Float[Tensor, "batch places size"]
    ) -> Float[Tensor, "batch queries places"]:
        cosines = normalize(query, dim=-1) @ keys.transpose(1, 2)
        return cosines if self.temperature is None else self.temperature * cosines


@register("general")
class General(Score):
    """e_j = q' W k_j; query and keys may differ in size"""

    def __init__(self, query: int, key: int):
        super().__init__(query, key)
        self.W = nn.Linear(key, query, bias=False)

    def keys(self, states: Float[Tensor, "batch places key"]) -> Float[Tensor, "batch places size"]:
        return linear(states, self.W.weight)

    def energies(
        self, query: Float[Tensor, "batch queries query"], keys: Float[Tensor, "batch places size"]
    ) -> Float[Tensor, "batch queries places"]:
        return query @ keys.transpose(1, 2)


@register("additive")
class Additive(Score):
    """e_j = v' tanh(W_q q + W_k k_j); query and keys may differ in size"""

    def __init__(self, query: int, key: int, size: int = 128):
        super().__init__(query, key)
        self.W_q = nn.Linear(query, size, bias=False)
        self.W_k = nn.Linear(key, size, bias=False)
        self.v = nn.Linear(size, 1, bias=False)

    def keys(self, states: Float[Tensor, "batch places key"]) -> Float[Tensor, "batch places size"]:
        return linear(states, self.W_k.weight)

    def energies(
        self, query: Float[Tensor, "batch queries query"], keys: Float[Tensor, "batch places size"]
    ) -> Float[Tensor, "batch queries places"]:
        return linear(torch.tanh(self.W_q(query)[:, :, None] + keys[:, None]), self.v.weight).squeeze(-1)


@register("concat")
class Concat(Score):
    """e_j = v' tanh(W [q; k_j]), the product taken by halves: the keys' half once per input"""

    def __init__(self, query: int, key: int, size: int = 128):
        super().__init__(query, key)
        self.query = query
        self.W = nn.Linear(query + key, size, bias=False)
        self.v = nn.Linear(size, 1, bias=False)

    def keys(self, states: Float[Tensor, "batch places key"]) -> Float[Tensor, "batch places size"]:
        return linear(states, self.W.weight[:, self.query :])

    def energies(
        self, query: Float[Tensor, "batch queries query"], keys: Float[Tensor, "batch places size"]
    ) -> Float[Tensor, "batch queries places"]:
        asked = linear(query, self.W.weight[:, : self.query])
        return linear(torch.tanh(asked[:, :, None] + keys[:, None]), self.v.weight).squeeze(-1)


@register("deep")
class Deep(Score):
    """e_j = MLP([q; k_j]) with tanh layers and one linear output; the keys' half of the first product once per input"""

    def __init__(self, query: int, key: int, size: int = 128, layers: int = 2):
        super().__init__(query, key)
        self.query = query
        self.first = nn.Linear(query + key, size)
        self.hidden = nn.ModuleList(nn.Linear(size, size) for _ in range(layers - 1))
        self.out = nn.Linear(size, 1)

    def keys(self, states: Float[Tensor, "batch places key"]) -> Float[Tensor, "batch places size"]:
        return linear(states, self.first.weight[:, self.query :], self.first.bias)

    def energies(
        self, query: Float[Tensor, "batch queries query"], keys: Float[Tensor, "batch places size"]
    ) -> Float[Tensor, "batch queries places"]:
        inner = torch.tanh(linear(query, self.first.weight[:, : self.query])[:, :, None] + keys[:, None])
        for layer in self.hidden:
            inner = torch.tanh(layer(inner))
        return linear(inner, self.out.weight, self.out.bias).squeeze(-1)


@register("location")
class Location(Score):
    """e_j = (W q)_j for positions up to a stated maximum; what the places hold is unseen

    On a grid j counts column by column: pictures of one height may differ in width, and a place must not get another
    row of W where a wider picture stands in the batch.
    """

    ordered = True

    def __init__(self, query: int, key: int, positions: int = 200):
        super().__init__(query, key)
        self.W = nn.Linear(query, positions, bias=False)

    def forward(
        self, query: Float[Tensor, "batch queries query"], candidates: Candidates
    ) -> Float[Tensor, "batch queries places"]:
        numbers, layout, places = candidates.numbers, candidates.layout, candidates.keys.shape[1]
        if numbers is None:
            self._check(places)
            rows = self.W.weight[:places]
            if layout.kind == "grid":
                rows = rows[by_column(torch.arange(places, device=query.device), layout)]
            return linear(query, rows)
        if layout.kind == "grid":
            numbers = by_column(numbers, layout)
        self._check(int(numbers.max()) + 1)
        return torch.einsum("bqd,bpd->bqp", query, self.W.weight[numbers])

    def _check(self, places: int) -> None:
        most = self.W.out_features
        if places > most:
            raise UserError(
                f"attention.score location looks at inputs of at most {most} places, got one of {places}; "
                "raise attention.positions or set the input's max_length"
            )


@register("static")
class Static(Score):
    """e_j = v' tanh(W_k k_j + b): learned from what a place holds, the same at every step"""

    uses_query = False

    def __init__(self, query: int, key: int, size: int = 128):
        super().__init__(query, key)
        self.W_k = nn.Linear(key, size)
        self.v = nn.Linear(size, 1, bias=False)

    def keys(self, states: Float[Tensor, "batch places key"]) -> Float[Tensor, "batch places size"]:
        return linear(torch.tanh(self.W_k(states)), self.v.weight)

    def energies(
        self, query: Float[Tensor, "batch queries query"], keys: Float[Tensor, "batch places size"]
    ) -> Float[Tensor, "batch queries places"]:
        return keys.transpose(1, 2).expand(-1, query.shape[1], -1)


@register("uniform")
class Uniform(Score):
    """e_j = 0: every place alike, the control"""

    uses_query = False

    def energies(
        self, query: Float[Tensor, "batch queries query"], keys: Float[Tensor, "batch places size"]
    ) -> Float[Tensor, "batch queries places"]:
        return query.new_zeros(query.shape[0], query.shape[1], keys.shape[1])


def by_column(numbers: Int[Tensor, "*any"], layout: Layout) -> Int[Tensor, "*any"]:
    """Places of a grid, numbered row by row, as they are numbered column by column.

    >>> by_column(torch.arange(6), Layout("grid", (2, 3)))
    tensor([0, 2, 4, 1, 3, 5])
    """
    rows, columns = layout.shape
    return numbers % columns * rows + numbers // columns


# ---------------- A score is asked here, and here alone


def compute_keys(score: Score, states: Float[Tensor, "batch places key"]) -> Float[Tensor, "batch places size"]:
    """What the score makes of the places, once per input."""
    keys: Any = score.keys(states)
    if not isinstance(keys, Tensor) or keys.ndim != 3 or keys.shape[:2] != states.shape[:2]:
        wanted = f"(batch, places, size) = ({states.shape[0]}, {states.shape[1]}, any size)"
        raise UserError(f"{_said(score)}: keys are {wanted}, got {_shape(keys)}")
    made: Tensor = keys
    return made


def compute_energies(
    score: Score, query: Float[Tensor, "batch queries query"], candidates: Candidates
) -> Float[Tensor, "batch queries places"]:
    """The energies of the candidates. A score of the user's own may not make NaN of numbers: no update could mend it.

    Minus infinity is a place it does not want; plus infinity leaves nothing to share, as NaN does.
    """
    energies: Any = score(query, candidates)
    wanted = (*query.shape[:2], candidates.keys.shape[1])
    if not isinstance(energies, Tensor) or energies.shape != wanted or not energies.is_floating_point():
        raise UserError(
            f"{_said(score)}: energies are numbers (batch, queries, places) = {wanted}, got {_shape(energies)}"
        )
    if _foreign(score) and not bool((energies < torch.inf).all()) and _finite(query) and _finite(candidates.keys):
        raise UserError(
            f"{_said(score)}: its energies are NaN or infinite, though query and keys are numbers "
            "(where an input is padded, keys are those of zeros)"
        )
    made: Tensor = energies
    return made


def _foreign(score: Score) -> bool:
    return type(score).__module__.partition(".")[0] != "seq2see"


def _finite(numbers: Tensor) -> bool:
    return bool(numbers.isfinite().all())


def _said(score: Score) -> str:
    return f"the score '{name_of(score)}' ({type(score).__name__})"


def _shape(given: object) -> str:
    if not isinstance(given, Tensor):
        return type(given).__name__
    return f"{tuple(given.shape)}{'' if given.is_floating_point() else f' of {given.dtype}'}"


# ---------------- The score that knows where it has looked


@register("coverage")
class Coverage(Score):
    """e_j = v' tanh(W_q q + W_k k_j + W_f f_j) where f = F * sum_{i<t} a_i; on a grid F is two-dimensional"""

    ordered = True
    remembers = True

    def __init__(self, query: int, key: int, size: int = 128, filters: int = 16, kernel: int = 5, axes: int = 1):
        super().__init__(query, key)
        self.axes, self.kernel, self.ordered = axes, kernel, kernel > 1
        self.W_q = nn.Linear(query, size, bias=False)
        self.W_k = nn.Linear(key, size, bias=False)
        self.W_f = nn.Linear(filters, size, bias=False)
        self.F = nn.Parameter(torch.empty(filters, kernel**axes))
        nn.init.uniform_(self.F, -1 / math.sqrt(kernel**axes), 1 / math.sqrt(kernel**axes))
        self.v = nn.Linear(size, 1, bias=False)

    def keys(self, states: Float[Tensor, "batch places key"]) -> Float[Tensor, "batch places size"]:
        return linear(states, self.W_k.weight)

    def forward(
        self, query: Float[Tensor, "batch queries query"], candidates: Candidates
    ) -> Float[Tensor, "batch queries places"]:
        past = candidates.past
        if past is None:
            raise ValueError("the score coverage needs the sum of earlier looks")
        shape = candidates.layout.shape if self.axes == 2 else past.shape[-1:]
        if candidates.numbers is None:
            around = self._neighbourhoods(past, shape)
        else:
            around = self._around(past, candidates.numbers, shape)
        features = self.W_f(linear(around.to(self.F.dtype), self._reaching(shape)))
        inner = torch.tanh(self.W_q(query)[:, :, None] + candidates.keys[:, None] + features)
        return linear(inner, self.v.weight).squeeze(-1)

    def _spans(self, shape: Sequence[int]) -> list[tuple[int, int]]:
        """How far F reaches before and behind a place along each axis, but never beyond the whole input."""
        before, behind = (self.kernel - 1) // 2, self.kernel // 2
        return [(min(before, length - 1), min(behind, length - 1)) for length in (max(one, 1) for one in shape)]

    def _reaching(self, shape: Sequence[int]) -> Float[Tensor, "filters patch"]:
        """The part of F that meets an input of that shape: the rest would lie beyond the edge wherever it stands."""
        middle = (self.kernel - 1) // 2
        filters: Tensor = self.F.unflatten(1, [self.kernel] * self.axes)
        for axis, (before, behind) in enumerate(self._spans(shape), start=1):
            filters = filters.narrow(axis, middle - before, before + behind + 1)
        return filters.flatten(1)

    def _neighbourhoods(
        self, past: Float[Tensor, "batch queries places"], shape: Sequence[int]
    ) -> Float[Tensor, "batch queries places patch"]:
        """What was looked at around each place, as F sees it; nothing lies beyond the edge."""
        spans = self._spans(shape)
        widths = [before + behind + 1 for before, behind in spans]
        if self.axes == 1:
            return pad(past, spans[0]).unfold(-1, widths[0], 1)
        grid = pad(past.unflatten(-1, shape), (*spans[1], *spans[0]))
        return grid.unfold(-2, widths[0], 1).unfold(-2, widths[1], 1).flatten(2, 3).flatten(3)

    def _around(
        self, past: Float[Tensor, "batch one places"], numbers: Int[Tensor, "batch window"], shape: Sequence[int]
    ) -> Float[Tensor, "batch one window patch"]:
        """The same for the candidates of a window: nothing is looked up that does not lie around one of them."""
        offsets = [torch.arange(-before, behind + 1, device=numbers.device) for before, behind in self._spans(shape)]
        columns = (numbers % shape[-1])[..., None] + offsets[-1]
        at, inside = columns, (columns >= 0) & (columns < shape[-1])
        if self.axes == 2:
            rows = (numbers // shape[1])[..., None] + offsets[0]
            inside = ((rows >= 0) & (rows < shape[0]))[..., :, None] & inside[..., None, :]
            at = rows[..., :, None] * shape[1] + columns[..., None, :]
        at, inside = at.flatten(2).clamp(0, past.shape[-1] - 1), inside.flatten(2)
        found = gather_places(past[:, 0], at.flatten(1)).view(at.shape)
        return (found * inside)[:, None]
