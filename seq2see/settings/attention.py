"""Settings of attention, and the scores a recipe may name with the settings each has."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Any, Literal

from pydantic import Field

from seq2see.settings.base import Layers, Scalar, Settings, Size, Temperature

ScoreName = str


class AttentionSettings(Settings):
    """Where the decoder looks; `attention: none` switches it off."""

    score: ScoreName = Field("additive", description="how well a query and a place agree; none: no attention")
    over: str | list[str] | None = Field(
        None, description="inputs to look at (NAME.words: the words of a document); not given: all that have places"
    )
    scope: Literal["global", "local-monotonic", "local-predicted"] = Field(
        "global", description="which places are candidates: all, or a window around p_t = t or around a predicted p_t"
    )
    window: Annotated[int, Field(gt=0, le=1_000_000)] = Field(
        5, description="local scopes: how far the window reaches to each side of p_t"
    )
    gaussian: bool = Field(True, description="local-monotonic: add the logarithm of a Gaussian of the distance to p_t")
    normaliser: Literal["softmax", "sparsemax", "entmax15"] = Field(
        "softmax", description="how energies become weights; the last two give most places exactly zero"
    )
    temperature: Temperature = Field(
        1.0, description="energies are divided by it: below 1 sharper looks, above 1 flatter ones"
    )
    choice: Literal["soft", "hard"] = Field(
        "soft", description="what weights become: a weighted mean of the places, or one place drawn by them"
    )
    estimator: Literal["score-function", "gumbel"] = Field(
        "score-function", description="hard: how the draw is learned; gumbel: straight through a relaxed draw"
    )
    gumbel_temperature: Temperature = Field(1.0, description="gumbel: of the relaxed draw")
    through: Literal["sentences"] | None = Field(
        None, description="words of a document: the weight of a sentence times that of a word in it; not given: of all"
    )
    heads: Size = Field(1, description="looks taken side by side, each at projections of its own; 1: none")
    query: Literal["previous", "current"] = Field("previous", description="the state s_{t-1}, or s_t")
    input_feeding: bool = Field(True, description="query current: the context also enters the next step")
    size: Size = Field(
        128,
        description="size of W_q q and W_k k in additive, concat, deep, coverage and static, and of a predicted p_t",
    )
    layers: Layers = Field(2, description="deep: hidden layers")
    learned_temperature: bool = Field(False, description="cosine: learn a temperature")
    filters: Size = Field(16, description="coverage: rows of F, the convolution of earlier looks")
    kernel: Annotated[int, Field(gt=0, le=255)] = Field(
        5, description="coverage: width of F (its side on a grid), as many numbers at every place and step"
    )
    positions: Size = Field(200, description="location: the longest input it can look at")
    options: dict[str, Scalar] = Field({}, description="a score of your own: settings that only it has, by name")

    @property
    def constant(self) -> bool:
        """Whether no weight of a look depends on anything that is learned."""
        return self.score == "uniform" and self.scope != "local-predicted"

    @property
    def conditions(self) -> str:
        """What the model's probabilities are given beside the input and the symbols so far; nothing for most."""
        drawn = self.score != "none" and self.choice == "hard"
        return "the places chosen" if drawn else ""

    @property
    def zeros(self) -> str:
        """What gives places exactly zero, however well they agree with the query; nothing where all have a share."""
        if self.normaliser != "softmax":
            return f"normaliser {self.normaliser} gives most places exactly zero"
        return "" if self.scope == "global" else f"scope {self.scope} gives places outside its window exactly zero"

    @property
    def score_settings(self) -> dict[str, Any]:
        """Every setting a score may want by its name, its own options beside those that recipes know."""
        return self.model_dump(exclude={"options"}) | self.options


SCORES: dict[str, frozenset[str]] = {
    "dot": frozenset(),
    "scaled-dot": frozenset(),
    "cosine": frozenset({"learned_temperature"}),
    "general": frozenset(),
    "additive": frozenset({"size"}),
    "concat": frozenset({"size"}),
    "deep": frozenset({"size", "layers"}),
    "location": frozenset({"positions"}),
    "coverage": frozenset({"size", "filters", "kernel"}),
    "static": frozenset({"size"}),
    "uniform": frozenset(),
}

BUILT_IN = frozenset(SCORES)
"""Those that come with the package; plug-ins declare others."""

ORDERED = {"location", "coverage"}
"""Scores that go by where a place lies."""


LOOKING_BACK = {"coverage"}
"""Scores that go by where was looked before: at the only step of a label nothing was."""


def declare(name: str, options: Iterable[str], *, ordered: bool = False) -> None:
    """Let recipes name a score: called where a class is registered, so that a score of one's own can be asked for.

    options: what its constructor takes beyond the sizes. Those that are keys of `attention` are set there; the others
    are the score's alone, and set under `attention.options`. ordered: it goes by where a place lies.
    """
    SCORES[name] = frozenset(options)
    (ORDERED.add if ordered else ORDERED.discard)(name)


def goes_by_order(settings: AttentionSettings) -> bool:
    """Whether the score goes by where a place lies. What coverage sees through one place is that place alone."""
    return settings.score in ORDERED and not (settings.score == "coverage" and settings.kernel == 1)


def reading_scores() -> list[str]:
    """The scores by which an encoder may look back at its own states while it reads: where they lie is not known."""
    return [name for name in SCORES if name not in ORDERED]


def own_options(name: str) -> list[str]:
    """The options of a score that no key of a recipe stands for.

    >>> own_options("deep")
    []
    """
    return sorted(SCORES[name] - AttentionSettings.model_fields.keys())
