"""Scores e_tj = score(q_t, h_j): one class per kind. Masking and normalising are left to `Attention`.

Queries (batch, queries, query) and places (batch, places, key) give energies (batch, queries, places). `keys` is
computed once per input, `energies` once per step.
"""

from __future__ import annotations

import inspect
import math
import re
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, ClassVar

import torch
from jaxtyping import Float, Int
from pydantic import Field
from torch import Tensor, nn
from torch.nn.functional import linear, normalize, pad

from seq2see.attention.records import Candidates
from seq2see.deferred_gradients import gather_places
from seq2see.errors import UserError
from seq2see.looks import Layout
from seq2see.registry import Registry
from seq2see.settings.base import FittedSize, Layers, Settings, Size, first_line
from seq2see.settings.plugins import check_subclass, settings_from_constructor
from seq2see.symbols import Symbol, Symbols, default_symbols

KNOWN = ("query", "key", "axes")
"""Arguments of a score's constructor that are known when it is built."""


def _check_class(name: str, kind: Any) -> None:
    """Refuse a class that could not work as a score."""
    what = f"score '{name}'"
    check_subclass(what, kind, Score)
    if kind.energies is Score.energies and kind.forward is Score.forward:
        raise TypeError(f"{what}: {kind.__name__} writes neither energies(query, keys) nor forward(query, candidates)")
    if list(inspect.signature(kind).parameters)[:2] != ["query", "key"]:
        raise TypeError(f"{what}: the first arguments of {kind.__name__}'s constructor are query and key, their sizes")


def _derive(name: str, kind: type[Score]) -> type[ScoreSettings]:
    """Settings of a score that a plug-in brings: keys that ours have too, all others under `attention.options`."""
    from seq2see.attention.build import AttentionSettings  # which is built of the settings below

    known = (*KNOWN, *AttentionSettings.model_fields)
    keys = {key: field for settings in OWN_SETTINGS for key, field in settings.model_fields.items()}
    return settings_from_constructor(name, kind, ScoreSettings, known=known, keys=keys, named=False)


scores: Registry[type[Score]] = Registry("score", check=_check_class, derive=_derive)
register = scores.register


# --- Settings


class ScoreSettings(Settings):
    """A score without settings of its own. own: a plug-in brought it."""

    own: ClassVar[bool] = False


class SizedScoreSettings(ScoreSettings):
    """A score that compares projections of query and place."""

    size: FittedSize = Field(128, description="hidden size of the score, and of the network that predicts p_t")


class DeepSettings(SizedScoreSettings):
    """The deep score."""

    layers: Layers = Field(2, description="deep: hidden layers")


class CosineSettings(ScoreSettings):
    """The cosine score."""

    learned_temperature: bool = Field(False, description="cosine: learn a temperature")


class LocationSettings(ScoreSettings):
    """The location score."""

    positions: Size = Field(200, description="location: the longest input it can look at")


class CoverageSettings(SizedScoreSettings):
    """The coverage score."""

    filters: Size = Field(16, description="coverage: rows of F, the convolution of earlier looks")
    kernel: Annotated[int, Field(gt=0, le=255)] = Field(
        5, description="coverage: width of F (its side on a grid), as many numbers at every place and step"
    )


OWN_SETTINGS = (ScoreSettings, SizedScoreSettings, DeepSettings, CosineSettings, LocationSettings, CoverageSettings)
"""Those of our own scores, whose keys a score of a plug-in may share."""


# --- Scores

REMARK = re.compile(r"[,;:] (?![^\[(]*[\])])")
"""What ends the equation that a score's docstring begins with: a comma, semicolon or colon outside brackets."""


class Score(nn.Module):
    """The energy of each place for a query. The first line of a kind's docstring is its equation.

    A kind writes `energies`, and `keys` where something can be computed once per input. One that depends on more than
    the keys (on positions or on earlier looks) writes `forward` instead.
    """

    ordered = False
    """True where the score depends on the position of a place, so that it has no meaning for a set."""

    remembers = False
    """True where it depends on the sum of earlier looks, which `Candidates.past` then holds."""

    uses_query = True
    """False where energies do not depend on the query."""

    constant = False
    """True where energies depend on nothing that is learned."""

    same_size = False
    """True where queries and places are compared number by number, so that they must have one size."""

    def __init__(self, query: int, key: int):
        super().__init__()

    def keys(self, states: Float[Tensor, "batch places key"]) -> Float[Tensor, "batch places size"]:
        """What is computed once per input: by default the states of the places themselves."""
        return states

    def energies(
        self, query: Float[Tensor, "batch queries query"], keys: Float[Tensor, "batch places size"]
    ) -> Float[Tensor, "batch queries places"]:
        """The energy of each place for each query, keys being those of `keys`."""
        raise NotImplementedError

    def forward(
        self, query: Float[Tensor, "batch queries query"], candidates: Candidates
    ) -> Float[Tensor, "batch queries places"]:
        """The energies of the candidates."""
        return self.energies(query, candidates.keys)

    def equation(self) -> str:
        """'e_j = q . k_j', for `show`: the start of the class's docstring, or the score's name where it has none."""
        return REMARK.split(first_line(type(self)))[0] or f"e_j = {name_of(self)}(q, k_j)"


def build_score(name: str, query: int, key: int, settings: Mapping[str, Any] | None = None) -> Score:
    """The score of that name, with those of the settings that its constructor takes.

    >>> build_score("additive", 4, 6, {"size": 8, "kernel": 5}).W_k.weight.shape
    torch.Size([8, 6])
    """
    kind = scores[name]
    known = _arguments(name)
    options = {option: value for option, value in (settings or {}).items() if option in known}
    for parameter in inspect.signature(kind).parameters.values():
        if parameter.name not in known - options.keys():
            continue
        variadic = parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD)
        if parameter.default is parameter.empty and not variadic:
            raise UserError(f"attention.options.{parameter.name}: required: the score '{name}' has no default for it")
    return kind(query, key, **options)


def name_of(score: Score) -> str:
    """The name of a score in recipes; that of its class where it is not registered."""
    return scores.name_of(type(score)) or type(score).__name__


def options(name: str) -> set[str]:
    """The settings of the score of that name: its constructor's arguments beyond the sizes and axes."""
    return _arguments(name) - {"axes"}


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
    """e_j = q . k_j

    (Luong et al. 2015.)
    """

    Settings = ScoreSettings
    same_size = True

    def __init__(self, query: int, key: int):
        super().__init__(query, key)
        _same_size("dot", query, key)

    def energies(
        self, query: Float[Tensor, "batch queries query"], keys: Float[Tensor, "batch places size"]
    ) -> Float[Tensor, "batch queries places"]:
        return query @ keys.transpose(1, 2)


@register("scaled-dot")
class ScaledDot(Score):
    """e_j = q . k_j / sqrt(d), d the size of the key

    (Vaswani et al. 2017.)
    """

    Settings = ScoreSettings
    same_size = True

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
    """e_j = q . k_j / (|q| |k_j|), times a learned temperature if `learned_temperature`"""

    Settings = CosineSettings
    same_size = True

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

    def equation(self) -> str:
        return super().equation() + ("" if self.temperature is None else ", times a learned temperature")


@register("general")
class General(Score):
    """e_j = q' W k_j; query and keys may differ in size

    (Luong et al. 2015.)
    """

    Settings = ScoreSettings

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
    """e_j = v' tanh(W_q q + W_k k_j); query and keys may differ in size

    The score of Bahdanau et al. 2015.
    """

    Settings = SizedScoreSettings

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
        return self._compared(self.W_q(query), keys)

    def forward(
        self, query: Float[Tensor, "batch queries query"], candidates: Candidates
    ) -> Float[Tensor, "batch queries places"]:
        projected = candidates.product(query.flatten(0, 1), self.W_q.weight, f"{id(self)}.W_q")
        return self._compared(projected.view(*query.shape[:2], -1), candidates.keys)

    def _compared(self, query: Tensor, keys: Tensor) -> Float[Tensor, "batch queries places"]:
        return linear(torch.tanh(query[:, :, None] + keys[:, None]), self.v.weight).squeeze(-1)


@register("concat")
class Concat(Score):
    """e_j = v' tanh(W [q; k_j]); the keys' half of the product is computed once per input"""

    Settings = SizedScoreSettings

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
        projected = linear(query, self.W.weight[:, : self.query])
        return linear(torch.tanh(projected[:, :, None] + keys[:, None]), self.v.weight).squeeze(-1)


@register("deep")
class Deep(Score):
    """e_j = MLP([q; k_j]) with tanh layers and one linear output; the keys' half of the first product once per input"""

    Settings = DeepSettings
    symbols: ClassVar[Mapping[str, str]] = {
        "first.weight": "W_1",
        "first.bias": "b_1",
        "out.weight": "v",
        "out.bias": "b of v",
    }

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

    def parameter_symbols(self) -> Symbols:
        hidden: Symbols = {}
        for number in range(len(self.hidden)):
            hidden[f"hidden.{number}.weight"] = Symbol(f"W_{number + 2}")
            hidden[f"hidden.{number}.bias"] = Symbol(f"b_{number + 2}")
        return default_symbols(self) | hidden


@register("location")
class Location(Score):
    """e_j = (W q)_j for positions up to a stated maximum; the content of the places is not used

    On a grid j counts column by column: images of one height may differ in width, and the row of W that belongs to a
    place must not depend on the widest image of the batch.
    """

    Settings = LocationSettings
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


def by_column(numbers: Int[Tensor, "*any"], layout: Layout) -> Int[Tensor, "*any"]:
    """The numbers of a grid's places counted column by column, from those counted row by row.

    >>> by_column(torch.arange(6), Layout("grid", (2, 3)))
    tensor([0, 2, 4, 1, 3, 5])
    """
    rows, columns = layout.shape
    return numbers % columns * rows + numbers // columns


@register("coverage")
class Coverage(Score):
    """e_j = v' tanh(W_q q + W_k k_j + W_f f_j) where f = F * sum_{i<t} a_i; on a grid F is two-dimensional"""

    Settings = CoverageSettings
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
            patches = self._patches(past, shape)
        else:
            patches = self._window_patches(past, candidates.numbers, shape)
        features = self.W_f(linear(patches.to(self.F.dtype), self._clipped_filters(shape)))
        inner = torch.tanh(self.W_q(query)[:, :, None] + candidates.keys[:, None] + features)
        return linear(inner, self.v.weight).squeeze(-1)

    def _spans(self, shape: Sequence[int]) -> list[tuple[int, int]]:
        """How far F reaches before and behind a place along each axis, clamped to the size of the input."""
        before, behind = (self.kernel - 1) // 2, self.kernel // 2
        if torch.compiler.is_exporting():  # a graph serves inputs of any size
            return [(before, behind)] * len(shape)
        return [(min(before, length - 1), min(behind, length - 1)) for length in (max(side, 1) for side in shape)]

    def _clipped_filters(self, shape: Sequence[int]) -> Float[Tensor, "filters patch"]:
        """The part of F that fits an input of that shape: the rest would always lie beyond its edges."""
        middle = (self.kernel - 1) // 2
        filters: Tensor = self.F.unflatten(1, [self.kernel] * self.axes)
        for axis, (before, behind) in enumerate(self._spans(shape), start=1):
            filters = filters.narrow(axis, middle - before, before + behind + 1)
        return filters.flatten(1)

    def _patches(
        self, past: Float[Tensor, "batch queries places"], shape: Sequence[int]
    ) -> Float[Tensor, "batch queries places patch"]:
        """The sum of earlier looks around each place, under F; zeros beyond the edge."""
        spans = self._spans(shape)
        widths = [before + behind + 1 for before, behind in spans]
        if self.axes == 1:
            return pad(past, spans[0]).unfold(-1, widths[0], 1)
        grid = pad(past.unflatten(-1, shape), (*spans[1], *spans[0]))
        return grid.unfold(-2, widths[0], 1).unfold(-2, widths[1], 1).flatten(2, 3).flatten(3)

    def _window_patches(
        self, past: Float[Tensor, "batch one places"], numbers: Int[Tensor, "batch window"], shape: Sequence[int]
    ) -> Float[Tensor, "batch one window patch"]:
        """The same around the candidates of a window alone."""
        offsets = [torch.arange(-before, behind + 1, device=numbers.device) for before, behind in self._spans(shape)]
        columns = (numbers % shape[-1])[..., None] + offsets[-1]
        at, inside = columns, (columns >= 0) & (columns < shape[-1])
        if self.axes == 2:
            rows = (numbers // shape[1])[..., None] + offsets[0]
            inside = ((rows >= 0) & (rows < shape[0]))[..., :, None] & inside[..., None, :]
            at = rows[..., :, None] * shape[1] + columns[..., None, :]
        at, inside = at.flatten(2).clamp(0, past.shape[-1] - 1), inside.flatten(2)
        looks = gather_places(past[:, 0], at.flatten(1)).view(at.shape)
        return (looks * inside)[:, None]


@register("static")
class Static(Score):
    """e_j = v' tanh(W_k k_j + b): learned from the content of a place, the same at every step"""

    Settings = SizedScoreSettings
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
    """e_j = 0: all places get the same weight, the control"""

    Settings = ScoreSettings
    uses_query = False
    constant = True

    def energies(
        self, query: Float[Tensor, "batch queries query"], keys: Float[Tensor, "batch places size"]
    ) -> Float[Tensor, "batch queries places"]:
        return query.new_zeros(query.shape[0], query.shape[1], keys.shape[1])


# --- Calling a score, with checks of what a user's own class returns


def compute_keys(score: Score, states: Float[Tensor, "batch places key"]) -> Float[Tensor, "batch places size"]:
    """The keys of a score, once per input; refused where their shape is wrong."""
    keys: Any = score.keys(states)
    if not isinstance(keys, Tensor) or keys.ndim != 3 or keys.shape[:2] != states.shape[:2]:
        wanted = f"(batch, places, size) = ({states.shape[0]}, {states.shape[1]}, any size)"
        raise UserError(f"{_title(score)}: keys are {wanted}, got {_shape(keys)}")
    checked: Tensor = keys
    return checked


def compute_energies(
    score: Score, query: Float[Tensor, "batch queries query"], candidates: Candidates
) -> Float[Tensor, "batch queries places"]:
    """The energies of the candidates; refused where their shape is wrong.

    A user's own score may not turn numbers into NaN or plus infinity, which no update of its weights could mend; minus
    infinity excludes a place.
    """
    energies: Any = score(query, candidates)
    wanted = (*query.shape[:2], candidates.keys.shape[1])
    if not isinstance(energies, Tensor) or energies.shape != wanted or not energies.is_floating_point():
        raise UserError(
            f"{_title(score)}: energies are numbers (batch, queries, places) = {wanted}, got {_shape(energies)}"
        )
    if _is_users_own(score) and not bool((energies < torch.inf).all()) and _finite(query) and _finite(candidates.keys):
        raise UserError(
            f"{_title(score)}: its energies are NaN or infinite, though query and keys are numbers "
            "(where an input is padded, keys are those of zeros)"
        )
    checked: Tensor = energies
    return checked


def _is_users_own(score: Score) -> bool:
    return type(score).__module__.partition(".")[0] != "seq2see"


def _finite(numbers: Tensor) -> bool:
    return bool(numbers.isfinite().all())


def _title(score: Score) -> str:
    return f"the score '{name_of(score)}' ({type(score).__name__})"


def _shape(result: object) -> str:
    if not isinstance(result, Tensor):
        return type(result).__name__
    return f"{tuple(result.shape)}{'' if result.is_floating_point() else f' of {result.dtype}'}"
