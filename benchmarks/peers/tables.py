"""Medians, spread and ratios of rounds, as a table of Markdown."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

Rounds = Mapping[str, Sequence[float]]
"""The values of each engine, one per round."""

UNFAIR = """\
Known unfairness: OpenNMT-py and Joey NMT feed the attentional vector (a dense layer over state and context) back inside
the loop over time; seq2see feeds the context back and computes its readout for all steps at once. OpenNMT-py pads its
vocabularies to a multiple of 8. Joey NMT does not sort rows by length, so that it computes more padding. CTranslate2
decodes the weights of seq2see's Transformer, exported; OpenNMT-py's has weights of its own. Decoding by seq2see also
returns the attention and the probability of every symbol."""


@dataclass
class Row:
    """A measure of several engines. higher: whether more is better; the ratio is then ours over the best peer."""

    name: str
    rounds: Rounds
    digits: int = 0
    higher: bool = True
    own: list[str] = field(default_factory=list)

    def ratios(self) -> str:
        """Ours over the best peer by the medians, with the least and the largest of single rounds."""
        peers = {name: values for name, values in self.rounds.items() if name not in self.own}
        if not peers or not self.own:
            return ""
        pick = max if self.higher else min
        best = pick(peers, key=lambda name: statistics.median(peers[name]))
        shown = []
        for name in self.own:
            ours = self.rounds[name]
            ratio = statistics.median(ours) / statistics.median(peers[best])
            single = [mine / theirs for mine, theirs in zip(ours, peers[best], strict=True)]
            shown.append(f"{ratio:.2f} x ({min(single):.2f}-{max(single):.2f})")
        return f"{' and '.join(shown)} of {best}"


def cell(values: Sequence[float], digits: int) -> str:
    """The median, with the least and the largest behind it."""
    if not values:
        return "-"
    median, low, high = (f"{value:,.{digits}f}" for value in (statistics.median(values), min(values), max(values)))
    return median if low == high else f"{median} ({low}-{high})"


def table(rows: Sequence[Row]) -> str:
    engines = list(dict.fromkeys(name for row in rows for name in row.rounds))
    lines = [f"| | {' | '.join(engines)} | ours over the best peer |", "|---" * (len(engines) + 2) + "|"]
    for row in rows:
        cells = [cell(row.rounds.get(name, []), row.digits) for name in engines]
        lines.append(f"| {row.name} | {' | '.join(cells)} | {row.ratios()} |")
    return "\n".join(lines)
