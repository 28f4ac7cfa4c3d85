"""Numbers for whoever watches the server, in Prometheus' text format."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator, Sequence

SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)
ROWS = (1, 2, 4, 8, 16, 32, 64, 128, 256)
Labels = tuple[tuple[str, str], ...]


class Histogram:
    """How many observations were at most each bound, by labels."""

    def __init__(self, name: str, about: str, bounds: Sequence[float]):
        self.name, self.about, self.bounds = name, about, bounds
        self._counts: dict[Labels, list[int]] = {}
        self._sums: Counter[Labels] = Counter()

    def add(self, value: float, labels: Labels) -> None:
        counts = self._counts.setdefault(labels, [0] * (len(self.bounds) + 1))
        for number, bound in enumerate(self.bounds):
            counts[number] += value <= bound
        counts[-1] += 1
        self._sums[labels] += value  # type: ignore[assignment]

    def lines(self) -> Iterator[str]:
        yield from _head(self.name, self.about, "histogram")
        for labels, counts in self._counts.items():
            for bound, count in zip([*map(str, self.bounds), "+Inf"], counts, strict=True):
                yield f"{self.name}_bucket{_labels((*labels, ('le', bound)))} {count}"
            yield f"{self.name}_sum{_labels(labels)} {self._sums[labels]!r}"
            yield f"{self.name}_count{_labels(labels)} {counts[-1]}"


class Counters:
    """What the server has done since it began; any thread may count."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._requests: Counter[Labels] = Counter()
        self._seconds = Histogram("seq2see_request_seconds", "Seconds from a request to its answer.", SECONDS)
        self._rows = Histogram("seq2see_batch_rows", "Inputs that were answered together.", ROWS)

    def request(self, path: str, status: int, seconds: float) -> None:
        """path: the route, not what a client typed, so that nobody can make up series."""
        with self._lock:
            self._requests[(("path", path), ("status", str(status)))] += 1
            self._seconds.add(seconds, (("path", path),))

    def batch(self, model: str, rows: int) -> None:
        with self._lock:
            self._rows.add(rows, (("model", model),))

    def text(self, waiting: dict[str, int]) -> str:
        """All of it; waiting: inputs that wait for each model now."""
        with self._lock:
            lines = [*_head("seq2see_requests_total", "Requests answered, by route and status.", "counter")]
            lines += [f"seq2see_requests_total{_labels(labels)} {n}" for labels, n in self._requests.items()]
            lines += [*self._seconds.lines(), *self._rows.lines()]
        lines += [*_head("seq2see_waiting", "Inputs that wait for a model.", "gauge")]
        lines += [f"seq2see_waiting{_labels((('model', name),))} {n}" for name, n in waiting.items()]
        return "\n".join(lines) + "\n"


def _head(name: str, about: str, kind: str) -> tuple[str, str]:
    return f"# HELP {name} {about}", f"# TYPE {name} {kind}"


def _labels(labels: Labels) -> str:
    """{path="/api/predict"}, with what would end a value escaped."""

    def escaped(value: str) -> str:
        return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")

    return "{" + ",".join(f'{name}="{escaped(value)}"' for name, value in labels) + "}"
