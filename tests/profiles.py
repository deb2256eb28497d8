"""Profiles: tables as the vendor's tools write them, made here from a seed, and read exactly: the oracle of replays."""

import csv
import random
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path

# The two dialects' headers.
KERNEL_DETAILS = (
    "Step Id,Device_id,Model ID,Task ID,Stream ID,Name,Type,OP State,Accelerator Core,Start Time(us),Duration(us),"
    "Wait Time(us),Block Dim,HF32 Eligible,Input Shapes,Input Data Types,Input Formats,Output Shapes,"
    "Output Data Types,Output Formats,Context ID,aicore_time(us)"
)
OP_SUMMARY = (
    "Step Id,Model ID,Task ID,Stream ID,Op Name,OP Type,Task Type,Start Time(us),Task Duration(us),Task Wait Time(us),"
    "Block Dim,Input Shapes,Input Data Types,Input Formats,Output Shapes,Output Data Types,Output Formats,"
    "aicore_time(us),aic_l0a_read_bw(GB/s)"
)

TYPES = ("MatMulV2", "Conv2D", "Add", "Cast", "TransData", "Slice", "LayerNorm", "SoftmaxV2", "MemSet", "Range", "Tril")
COMMUNICATION = ("hcom_allReduce_", "hcom_broadcast_")
NO_MODEL = 4294967295


@dataclass(frozen=True)
class Run:
    """One row: an operator's run."""

    op_type: str
    op_name: str
    start_ns: int
    duration_ns: int

    @property
    def end_ns(self) -> int:
        return self.start_ns + self.duration_ns


@dataclass(frozen=True)
class Profile:
    """What a table says: the runs of one execution."""

    path: Path
    runs: tuple[Run, ...]

    @property
    def name(self) -> str:
        return self.path.name.partition(".")[0]

    def durations_ns(self) -> dict[tuple[str, ...], list[int]]:
        """By (type, name)."""
        durations: defaultdict[tuple[str, ...], list[int]] = defaultdict(list)
        for run in self.runs:
            durations[run.op_type, run.op_name].append(run.duration_ns)
        return dict(durations)

    def durations_of_type_ns(self, op_type: str) -> list[int]:
        """Ascending."""
        return sorted(run.duration_ns for run in self.runs if run.op_type == op_type)

    @property
    def span_ns(self) -> int:
        """From the first start to the last end: a whole execution."""
        return max(run.end_ns for run in self.runs) - min(run.start_ns for run in self.runs)

    @property
    def busy_ns(self) -> int:
        """Time in which at least one operator ran."""
        busy = reached = 0
        for run in sorted(self.runs, key=lambda run: run.start_ns):
            busy += max(0, run.end_ns - max(run.start_ns, reached))
            reached = max(reached, run.end_ns)
        return busy


def nanoseconds(microseconds: str) -> int:
    """A cell in microseconds: exact, and below a nanosecond truncated."""
    return int(Decimal(microseconds.strip()) * 1000)


def read(path: Path) -> Profile:
    """Reads a table of either dialect."""
    with path.open(newline="", encoding="utf-8-sig") as file:
        rows = csv.DictReader(file)
        columns = rows.fieldnames or ()
        name, op_type = ("Name", "Type") if "Name" in columns else ("Op Name", "OP Type")
        duration = "Duration(us)" if "Duration(us)" in columns else "Task Duration(us)"
        runs = tuple(
            Run(row[op_type], row[name], nanoseconds(row["Start Time(us)"]), nanoseconds(row[duration])) for row in rows
        )
    return Profile(path, runs)


@dataclass(frozen=True)
class Recipe:
    """How a table is made. All that makes real tables awkward is in it, and the seed decides the rest."""

    name: str
    header: str
    rows: int
    operators: int
    seed: int
    longest_us: float = 2000.0
    longest_communication_us: float = 2000.0
    start_decimals: int = 3
    duration_decimals: int = 3
    tabs: bool = False
    communication: bool = False
    longest_name: int = 90

    def write(self, folder: Path) -> Profile:
        """Writes the table into the folder, and reads it back."""
        path = folder / f"{self.name}.csv"
        with path.open("w", newline="", encoding="utf-8") as file:
            table = csv.DictWriter(file, self.header.split(","), restval="N/A", lineterminator="\n")
            table.writeheader()
            table.writerows(self._rows(random.Random(self.seed)))
        return read(path)

    def _rows(self, chance: random.Random) -> Iterator[dict[str, str]]:
        operators = self._operators(chance)
        start_ns = 1_736_412_474_730_135_222
        for row in range(self.rows):
            # Every operator appears, whatever the rest of the draw says.
            op_type, op_name = operators[row] if row < len(operators) else chance.choice(operators)
            longest_us = self.longest_communication_us if op_type in COMMUNICATION else self.longest_us
            duration_us = Decimal(repr(0.5 * (longest_us / 0.5) ** chance.random()))
            duration = str(round(duration_us, chance.randint(0, self.duration_decimals)))
            yield self._row(chance, op_type, op_name, start_ns, duration)
            # Most wait for the one before; some run beside it, on another stream.
            duration_ns = nanoseconds(duration)
            step_ns = (
                duration_ns + chance.randrange(100_000) if chance.random() < 0.7 else chance.randrange(duration_ns + 1)
            )
            start_ns += step_ns - step_ns % 10 ** (3 - self.start_decimals)

    def _row(self, chance: random.Random, op_type: str, op_name: str, start_ns: int, duration: str) -> dict[str, str]:
        tab = "\t" if self.tabs else ""
        summary = self.header == OP_SUMMARY
        row = {
            "Step Id": "13",
            "Model ID": str(NO_MODEL),
            "Op Name" if summary else "Name": op_name,
            "OP Type" if summary else "Type": op_type,
            "Start Time(us)": f"{start_ns // 1000}.{start_ns % 1000:03d}"[: 17 + self.start_decimals] + tab,
            "Task Duration(us)" if summary else "Duration(us)": duration,
            "Task Wait Time(us)" if summary else "Wait Time(us)": f"{chance.random() * 100:.6f}",
            "Task Type" if summary else "Accelerator Core": "HCCL",
            "Block Dim": "0",
        }
        if op_type not in COMMUNICATION:
            shape = ";".join(
                ",".join(str(chance.randint(1, 4096)) for _ in range(4)) for _ in range(chance.randint(1, 3))
            )
            row |= {
                "Task ID": str(chance.randint(1, 65535)) + tab,
                "Stream ID": str(chance.randint(1, 40)),
                "Task Type" if summary else "Accelerator Core": chance.choice(["AI_CORE", "AI_VECTOR_CORE", "MIX_AIC"]),
                # The quotes belong to the value; in the file they are tripled.
                "Input Shapes": f'"{shape}"',
                "Output Shapes": f'"{shape}"',
                "Input Data Types": "DT_BF16;INT64",
                "aicore_time(us)": f"{chance.random() * 100:.3f}",
            }
        return row

    def _operators(self, chance: random.Random) -> list[tuple[str, str]]:
        operators: list[tuple[str, str]] = []
        for number in range(self.operators):
            if self.communication and number % 9 == 4:
                op_type = chance.choice(COMMUNICATION)
                op_name = f"{op_type}_{chance.randint(100, 999)}_{number}"
            else:
                op_type = chance.choice(TYPES)
                op_name = (
                    f"Gradients/Default/network-TrainOneStep.layers.{number}/{op_type}-op{chance.randint(1, 9999)}"
                )
                op_name += "/" + "encoder_layer." * 40
                op_name = op_name[: chance.randint(60, self.longest_name)]
            operators.append((op_type, op_name))
        # The longest that was ever seen.
        op_type, op_name = operators[0]
        operators[0] = (op_type, op_name.ljust(self.longest_name, "x"))
        # Equal names under two types are two operators.
        operators[1] = ("Identity", operators[0][1])
        return operators


LARGE = Recipe("large", KERNEL_DETAILS, rows=2500, operators=59, seed=1, tabs=True)
COMMUNICATING = Recipe(
    "communicating",
    KERNEL_DETAILS,
    rows=600,
    operators=200,
    seed=2,
    start_decimals=1,
    communication=True,
    longest_communication_us=309_000,
)
SUMMARY = Recipe("summary", OP_SUMMARY, rows=190, operators=80, seed=3, duration_decimals=4, communication=True)
LONG_NAMES = Recipe(
    "longnames",
    OP_SUMMARY,
    rows=60,
    operators=50,
    seed=4,
    tabs=True,
    duration_decimals=4,
    longest_name=414,
    longest_us=300,
)
# Each operator runs once an execution, so that all its runs take the same time.
STEADY = Recipe("steady", KERNEL_DETAILS, rows=100, operators=100, seed=5)
RECIPES = (LARGE, COMMUNICATING, SUMMARY, LONG_NAMES, STEADY)
