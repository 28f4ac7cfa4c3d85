"""What is minimised: one group of keys for the loss and what may be added to it."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from seq2see.recipe.basics import Amount, Settings, Share, Weight


class AlignmentSettings(Settings):
    """Supervised attention: where a decoder should look, as far as the table tells."""

    column: str | None = Field(
        None,
        description="column of links `0-0 1-2 1?3` (place of the first input looked at, symbol of the output, from 0; "
        "?: possible, not sure); not given: none",
    )
    weight: Amount = Field(
        1.0, description="of -sum_j a_true_tj log a_tj, a_true being even over a symbol's sure links; 0: measured alone"
    )


class LossSettings(Settings):
    """What is minimised: -sum log P of the outputs."""

    label_smoothing: Share = Field(0.0, description="share of the target spread over all symbols")
    class_weights: Literal["none", "balanced"] | dict[str, Weight] = Field(
        "none", description="label outputs: balanced by frequency, or a weight for each class"
    )
    doubly_stochastic: Amount = Field(
        0.0, description="weight of sum_j (T / M - sum_t a_tj) ** 2: each place is looked at about as much as any other"
    )
    entropy: Amount = Field(0.0, description="weight of the entropy of each look: sharper looks")
    coverage: Amount = Field(
        0.0, description="weight of sum_j min(a_tj, sum_{i<t} a_ij): do not look again where you looked before"
    )
    consistency: Amount = Field(
        0.0,
        description="every row is read twice a batch, under two dropouts: weight of how much the two P differ (R-Drop)",
    )
    ctc: Amount = Field(
        0.0,
        description="weight of -log of the chance that the output is read off the encoder's places one after the other "
        "(CTC, blanks between; columns of a grid), by a layer of its own",
    )
    alignment: AlignmentSettings = AlignmentSettings()
    exploration: Amount = Field(
        0.01,
        description="choice hard, by score-function: weight of the entropy that keeps draws from settling too soon",
    )
    baseline_decay: Share = Field(
        0.9, description="choice hard, by score-function: how slowly the moving baseline of the rewards moves"
    )
