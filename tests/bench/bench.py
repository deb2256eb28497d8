"""`make bench`: what the engine and the daemon cost, against others in the same run: `bench.py BUILD_FOLDER`.

Only ratios are worth comparing between machines. Everything is a median of several runs, the ways taken by turns.
Prints Markdown, as the README shows it.
"""

import argparse
import json
import os
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request

HERE = pathlib.Path(__file__).parent
RUNS = 5
DRAINED = 200_000
DRAINED_SLOWLY = 20_000
PARTS = ["getter_costs", "drain", "steady", "agent_costs", "idle"]


class Bench:
    def __init__(self, build: pathlib.Path) -> None:
        self.programs = build / "bench"
        self.agent = build / "agent" / "libopstream_agent.so"
        self.libraries = ":".join(str(p.parent) for p in sorted(build.glob("sim/**/lib*.so")))
        self.misses: list[str] = []

    def run(self, *command: object, **environment: str) -> dict:
        program, *arguments = (str(part) for part in command)
        path = program if "/" in program else str(self.programs / program)
        done = subprocess.run(
            [path, *arguments], stdout=subprocess.PIPE, check=True, text=True, env={**os.environ, **environment}
        )
        return json.loads(done.stdout)

    def row(self, what: str, measured: str, wanted: str, reached: bool) -> None:
        print(f"| {what} | {measured} | {wanted} | {'yes' if reached else '**no**'} |", flush=True)
        if not reached:
            self.misses.append(what)

    def note(self, what: str, measured: str, aim: str = "") -> None:
        """What is reported and not required."""
        print(f"| {what} | {measured} | {aim} | |", flush=True)

    # ---- the parts ----

    def getter_costs(self) -> None:
        runs = [self.run("getter_costs") for _ in range(3)]
        print("\n### The simulator's getters: ns a call, by records in the buffer\n")
        print("| getter | 1 | 10 | 100 | 1000 |\n| --- | --- | --- | --- | --- |")
        medians = {
            getter: {size: statistics.median(run[getter][size] for run in runs) for size in runs[0][getter]}
            for getter in runs[0]
        }
        for getter, costs in medians.items():
            print(f"| {getter} | " + " | ".join(f"{ns:,.0f}" for ns in costs.values()) + " |")
        ratio = statistics.median(costs["10"] / costs["1"] for costs in medians.values())
        self.header("Getters")
        self.row("10 records cost, in calls of one record", f"{ratio:.1f}", "6 to 8", 6 <= ratio <= 8)

    def header(self, title: str) -> None:
        print(f"\n### {title}\n\n| what | measured | wanted | reached |\n| --- | --- | --- | --- |", flush=True)

    def drain(self) -> None:
        self.header("Draining and decoding")
        ways: dict[str, list[float]] = {"engine": [], "sample": [], "python": []}
        for _ in range(RUNS):
            ways["engine"].append(self.run("drain", "engine", DRAINED)["ns_per_record"])
            ways["sample"].append(self.run("drain", "sample", DRAINED_SLOWLY)["ns_per_record"])
            python = self.run(sys.executable, HERE / "python_drain.py", self.libraries, DRAINED_SLOWLY)
            ways["python"].append(python["ns_per_record"])
        ns = {way: statistics.median(values) for way, values in ways.items()}
        self.note("engine, ns a record", f"{ns['engine']:,.0f}")
        self.row(
            "over the loop of the vendor's sample",
            f"{ns['sample'] / ns['engine']:.1f} × ({ns['sample']:,.0f} ns)",
            "≥ 15 ×",
            ns["sample"] >= 15 * ns["engine"],
        )
        self.row(
            "over the same job in Python",
            f"{ns['python'] / ns['engine']:.1f} × ({ns['python']:,.0f} ns)",
            "≥ 12 ×",
            ns["python"] >= 12 * ns["engine"],
        )
        pairs = self.run("drain", "pairs", DRAINED_SLOWLY, 31)
        self.note(
            "beyond the two string getters, median of 31 interleaved pairs",
            f"{pairs['beyond_ns']:.0f} ns (of {pairs['engine_ns']:.0f})",
            "aim: 100 ns",
        )
        instructions = self.instructions()
        self.row(
            "beyond the two string getters, instructions (callgrind)",
            f"{instructions:.0f}",
            "≤ 400",
            instructions <= 400,
        )

    def instructions(self) -> float:
        """Instructions a record of the reader thread, without those inside the two string getters."""
        records = 200_000
        with tempfile.TemporaryDirectory() as folder:
            out = f"{folder}/callgrind.out"
            subprocess.run(
                [
                    "valgrind",
                    "--tool=callgrind",
                    f"--callgrind-out-file={out}",
                    self.programs / "drain",
                    "engine",
                    str(records),
                ],
                check=True,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )
            annotated = subprocess.run(
                ["callgrind_annotate", "--inclusive=yes", "--threshold=100", out],
                check=True,
                capture_output=True,
                text=True,
            ).stdout

        def inclusive(function: str) -> int:
            found = re.search(rf"^\s*([\d,]+) .*:{function}(\s|$|')", annotated, re.MULTILINE)
            if found is None:
                raise SystemExit(f"callgrind saw no call of {function}")
            return int(found[1].replace(",", ""))

        thread = inclusive("reader_main")
        return (thread - inclusive("aclprofGetOpType") - inclusive("aclprofGetOpName")) / records

    def steady(self) -> None:
        self.header("A steady stream on one device, in real time")
        low = self.run("steady", 1_000, 10)
        self.row(
            "1,000 records/s: from an operator's end to being visible, p99",
            f"{low['delay_p99_ms']:.2f} ms (p50 {low['delay_p50_ms']:.2f} ms)",
            "≤ 5 ms",
            low["delay_p99_ms"] <= 5,
        )
        middle = self.run("steady", 100_000, 10)
        self.row(
            f"{middle['records_per_second']:,.0f} records/s: the reader thread",
            f"{middle['reader_cpu_percent']:.1f} % of a core",
            "≤ 12 %",
            middle["reader_cpu_percent"] <= 12,
        )
        with tempfile.TemporaryDirectory() as folder:
            journal = f"{folder}/journal"
            high = self.run("steady", 500_000, 30, OPSTREAM_SIM_JOURNAL=journal)
            blocked = journal_value(journal, "writer_blocked_ns") / (high["seconds"] * 1e9)
        rate = f"{high['records_per_second']:,.0f} records/s for 30 s"
        self.row(f"{rate}: rejected", str(high["rejected"]), "0", high["rejected"] == 0)
        self.row(f"{rate}: the writer was blocked", f"{blocked * 100:.3f} %", "≤ 0.1 %", blocked <= 0.001)
        fill = high["fill_p99_percent"]
        self.row(f"{rate}: the pipe's fill, p99", f"{fill:.1f} %", "≤ 50 %", fill <= 50)
        self.note(f"{rate}: the reader thread", f"{high['reader_cpu_percent']:.1f} % of a core")

    def agent_costs(self) -> None:
        """What the preloaded agent adds to a serving program, beyond what a subscription costs anyway."""
        self.header("In a serving program: the agent, for a model of 500 operators")
        with tempfile.TemporaryDirectory() as folder:
            model = pathlib.Path(folder) / "large.om"
            lines = [
                f"op\t{i * 2000}\t1500\tType{i % 30}\tdecoder/layers.{i}/self_attention/MatMul_{i}" for i in range(500)
            ]
            model.write_text("\n".join(["opstream-workload 1", *lines, ""]))
            preloaded = {"LD_PRELOAD": str(self.agent), "OPSTREAM_SOCKET": f"{folder}/nobody.sock"}
            ways = {"alone": ("alone", {}), "subscribed": ("subscribed", {}), "agent": ("alone", preloaded)}
            starts: dict[str, list[float]] = {way: [] for way in ways}
            resident: dict[str, list[float]] = {way: [] for way in ways}
            for _ in range(21):
                for way, (mode, environment) in ways.items():
                    begin_ns = time.monotonic_ns()
                    told = self.run("guest", model, 20, mode, OPSTREAM_SIM_SPEED="0", **environment)
                    starts[way].append((told["ready_ns"] - begin_ns) / 1e6)
                    resident[way].append(told["resident_kb"] / 1024)
        start = {way: statistics.median(values) for way, values in starts.items()}
        memory = {way: statistics.median(values) for way, values in resident.items()}
        added = start["agent"] - start["subscribed"]
        self.row(
            "start to the loaded model, beyond a subscription of the program's own",
            f"{added:.1f} ms ({start['alone']:.1f} alone, {start['subscribed']:.1f}, {start['agent']:.1f})",
            "≤ 20 ms",
            added <= 20,
        )
        added = memory["agent"] - memory["subscribed"]
        self.row(
            "resident memory, beyond a subscription of the program's own",
            f"{added:.1f} MB ({memory['alone']:.1f} alone, {memory['subscribed']:.1f}, {memory['agent']:.1f})",
            "≤ 4 MB",
            added <= 4,
        )

    def idle(self) -> None:
        self.header("Idle")
        publisher = self.run("steady", 0, 30)
        percent = publisher["process_cpu_percent"]
        self.row("publisher, all its threads", f"{percent:.3f} % of a core", "≤ 0.1 %", percent <= 0.1)
        with tempfile.TemporaryDirectory() as folder:
            percent, mebibytes = idle_daemon(pathlib.Path(folder))
        self.row("daemon with one idle publisher", f"{percent:.2f} % of a core", "≤ 0.3 %", percent <= 0.3)
        self.row("daemon with one idle publisher, resident", f"{mebibytes:.0f} MB", "≤ 80 MB", mebibytes <= 80)


def journal_value(path: str, name: str) -> int:
    data = pathlib.Path(path).read_bytes()
    for at in range(32, len(data), 32):
        if data[at : at + 24].rstrip(b"\0").decode() == name:
            return int.from_bytes(data[at + 24 : at + 32], "little")
    raise SystemExit(f"{path} has no counter {name}")


def idle_daemon(folder: pathlib.Path) -> tuple[float, float]:
    """Per cent of a core and megabytes resident: of a daemon whose only publisher, a hosted worker, has ended its
    executions. Nobody scrapes it meanwhile."""
    config = folder / "opstreamd.toml"
    config.write_text(
        "[acl]\nsimulator = true\n"
        '[[hosted.models]]\nname = "resnet50"\nmodel = "resnet50"\ninterval = "0s"\nexecutions = 10\n'
    )
    listen = "127.0.0.1:19780"
    daemon = subprocess.Popen(
        [
            sys.executable,
            "-m",
            "opstreamd",
            "serve",
            f"--config.file={config}",
            f"--web.listen-address={listen}",
            f"--agent.socket={folder}/publish/agent.sock",
            f"--state.directory={folder}/state",
            "--log.level=warning",
        ]
    )
    try:
        deadline = time.monotonic() + 30
        while True:
            try:
                with urllib.request.urlopen(f"http://{listen}/metrics") as answer:
                    text = answer.read().decode()
                if re.search(r"^ascend_model_execution_duration_seconds_count.* 10$", text, re.MULTILINE):
                    break
            except OSError:
                pass
            if time.monotonic() > deadline:
                raise SystemExit("the daemon did not show the hosted model's ten executions")
            time.sleep(0.2)
        time.sleep(3)
        begin, cpu = time.monotonic(), cpu_seconds(daemon.pid)
        time.sleep(30)
        percent = 100 * (cpu_seconds(daemon.pid) - cpu) / (time.monotonic() - begin)
        status = pathlib.Path(f"/proc/{daemon.pid}/status").read_text()
        resident = re.search(r"^VmRSS:\s+(\d+) kB", status, re.MULTILINE)
        assert resident is not None
        return percent, int(resident[1]) / 1000
    finally:
        daemon.terminate()
        daemon.wait(30)


def cpu_seconds(pid: int) -> float:
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("build", type=pathlib.Path, help="folder of the native release build")
    parser.add_argument("--only", action="append", choices=PARTS)
    arguments = parser.parse_args()
    bench = Bench(arguments.build)
    for part in arguments.only or PARTS:
        getattr(bench, part)()
    if bench.misses:
        raise SystemExit("not reached: " + "; ".join(bench.misses))


if __name__ == "__main__":
    main()
