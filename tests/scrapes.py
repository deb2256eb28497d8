"""Scrapes: text expositions read exactly, and what must hold in every one of them."""

import re
from collections import defaultdict
from dataclasses import dataclass
from decimal import Decimal

LINE = re.compile(r"([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{(.*)\})? (\S+)")
LABEL = re.compile(r'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\]|\\.)*)"(?:,|$)')
ESCAPES = {"\\\\": "\\", '\\"': '"', "\\n": "\n"}
# What the publishers count: it outlives the daemon, whose own counters begin anew with it.
PUBLISHED = ("ascend_", "opstreamd_records_", "opstreamd_bytes_", "opstreamd_reader_", "opstreamd_subscribe_")

Labels = frozenset[tuple[str, str]]
Key = tuple[str, Labels]


@dataclass(frozen=True)
class Scrape:
    """One exposition: each sample's value as it is printed, without a float in between."""

    text: str
    types: dict[str, str]
    samples: dict[Key, Decimal]

    def total(self, name: str, **labels: str) -> Decimal:
        """Sum of the samples that have these labels, at least one."""
        found = [value for (sample, its), value in self.samples.items() if sample == name and its >= labels.items()]
        assert found, f"no sample {name} with {labels}"
        return sum(found, Decimal(0))

    def has(self, name: str, **labels: str) -> bool:
        return any(sample == name and its >= labels.items() for sample, its in self.samples)

    def by(self, name: str, *labels: str, **where: str) -> dict[tuple[str, ...], Decimal]:
        """The samples' sums by some of their labels."""
        sums: defaultdict[tuple[str, ...], Decimal] = defaultdict(Decimal)
        for (sample, its), value in self.samples.items():
            if sample == name and its >= where.items():
                of = dict(its)
                sums[tuple(of[label] for label in labels)] += value
        return dict(sums)

    def published_counters(self) -> dict[Key, Decimal]:
        """Every sample that may never go back: counters, and the parts of histograms."""
        return {
            key: value
            for key, value in self.samples.items()
            if key[0].startswith(PUBLISHED) and self._type_of(key[0]) in ("counter", "histogram")
        }

    def _type_of(self, sample: str) -> str:
        if sample in self.types:
            return self.types[sample]
        for suffix in ("_bucket", "_count", "_sum"):
            if self.types.get(sample.removesuffix(suffix)) == "histogram":
                return "histogram"
        return "untyped"


def parse(text: str) -> Scrape:
    """Reads text format 0.0.4. A line that isn't of it is an error, and so is a sample that comes twice."""
    types: dict[str, str] = {}
    samples: dict[Key, Decimal] = {}
    for line in text.splitlines():
        if line.startswith("# TYPE "):
            _, _, name, kind = line.split(" ")
            types[name] = kind
        elif line and not line.startswith("#"):
            match = LINE.fullmatch(line)
            assert match, f"no sample: {line}"
            name, labels, value = match.groups()
            key = (name, _labels(labels or ""))
            assert key not in samples, f"twice: {line}"
            samples[key] = Decimal(value)
    return Scrape(text, types, samples)


def _labels(text: str) -> Labels:
    assert LABEL.sub("", text) == "", f"not labels: {text}"
    return frozenset(
        (name, re.sub(r"\\.", lambda found: ESCAPES[found.group()], value)) for name, value in LABEL.findall(text)
    )


def _app(key: Key) -> str:
    return dict(key[1])["app"]


class Watch:
    """Sees one scrape after the other, and checks what holds in all of them whatever is killed, restarted or broken."""

    def __init__(self) -> None:
        self.last: dict[Key, Decimal] = {}
        self.mortal: set[str] = set()
        """Applications whose series may end."""

    def see(self, scrape: Scrape) -> None:
        self._budget(scrape)
        self._types(scrape)
        counters = scrape.published_counters()
        ended = {_app(key) for key in self.last.keys() - counters.keys()}
        assert ended <= self.mortal, f"series went away: {self.last.keys() - counters.keys()}"
        assert not ended & {_app(key) for key in counters}, f"some series of {ended} went away before the others"
        back = {key: (old, counters[key]) for key, old in self.last.items() if key in counters and counters[key] < old}
        assert not back, f"counters went back: {back}"
        self.last = counters

    def _budget(self, scrape: Scrape) -> None:
        read = scrape.by("opstreamd_records_read_total", "app")
        counted = scrape.by("opstreamd_records_recorded_total", "app")
        for app, rejected in scrape.by("opstreamd_records_rejected_total", "app").items():
            counted[app] += rejected
        assert read == counted, f"loss budget: read {read}, counted {counted}"

    def _types(self, scrape: Scrape) -> None:
        """A type's histogram is the sum of its operators, of the same moment."""
        labels = ("app", "device", "model", "op_type")
        for histogram, operators in (("count", "executions_total"), ("sum", "seconds_total")):
            by_type = scrape.by(f"ascend_op_duration_seconds_{histogram}", *labels)
            assert by_type == scrape.by(f"ascend_op_{operators}", *labels), (
                f"{histogram} of types and of operators differ"
            )
        buckets: dict[Labels, list[tuple[Decimal, Decimal]]] = defaultdict(list)
        for (name, its), value in scrape.samples.items():
            if name.startswith("ascend_") and name.endswith("_bucket"):
                bound = Decimal(dict(its)["le"])
                buckets[its - {("le", dict(its)["le"])} | {("", name)}].append((bound, value))
        for series, cumulative in buckets.items():
            counts = [value for _, value in sorted(cumulative)]
            assert counts == sorted(counts), f"buckets of {series} fall"
