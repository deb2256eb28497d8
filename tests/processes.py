"""The program's processes, as a test starts, watches, asks, kills and outlives them."""

import http.client
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self, TypeVar

from journal import Journal
from opstreamd.engine import Counters, EngineError, Exposition, View
from scrapes import Scrape, Watch, parse

PATIENCE_SECONDS = 90.0
"""Nothing that is waited for takes nearly as long, not even on a slow machine with sanitizers: whatever does, hangs."""

T = TypeVar("T")
MARK = "OPSTREAMD_TEST_SITE"
COMPLAINTS = ("Traceback (most recent call last)", "ERROR: AddressSanitizer", "runtime error:")
SEGMENT_BYTES = 64 * 2**20


def until(find: Callable[[], T | None], what: str, seconds: float = PATIENCE_SECONDS) -> T:
    """Waits for what `find` finds."""
    deadline = time.monotonic() + seconds
    while not (found := find()):
        assert time.monotonic() < deadline, f"not within {seconds:.0f} s: {what}"
        time.sleep(0.05)
    return found


@dataclass(frozen=True)
class Model:
    """A model to host, as the configuration names it."""

    name: str
    model: Path | str
    executions: int = 0
    interval: str = "0s"
    device: int = 0


class Process:
    """A command of the program, running. What it says is in files, so that nobody has to read along."""

    def __init__(self, site: "Site", name: str, command: list[str], *, user: int | None = None) -> None:
        """As another user it has no other group than his."""
        self.output = site.folder / f"{name}.out"
        self.log = site.folder / f"{name}.log"
        with self.output.open("wb") as output, self.log.open("wb") as log:
            self._child = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=log,
                env=site.environment,
                user=user,
                group=user,
                extra_groups=None if user is None else [],
            )
        self.pid = self._child.pid
        site.started.append(self)

    def records(self) -> Iterator[dict[str, Any]]:
        """The records of its structured log so far."""
        for line in self.log.read_text(errors="replace").splitlines():
            if line.startswith("{") and line.endswith("}"):
                yield json.loads(line)

    def said(self, message: str, **fields: object) -> dict[str, Any]:
        """Waits for a log record with this message and these fields."""

        def find() -> dict[str, Any] | None:
            found = (
                record for record in self.records() if record["msg"] == message and record.items() >= fields.items()
            )
            record = next(found, None)
            assert record or self._child.poll() is None, f"ended without saying {message}: {self.log.read_text()}"
            return record

        return until(find, f"log record {message} {fields}") or {}

    def signal(self, number: signal.Signals) -> None:
        self._child.send_signal(number)

    def wait(self) -> int:
        return self._child.wait(PATIENCE_SECONDS)

    def kill(self) -> None:
        """As the kernel does it: without a word."""
        self._child.kill()
        self._child.wait()

    def stop(self) -> int:
        self.signal(signal.SIGTERM)
        return self.wait()


class Endpoint:
    """What a daemon answers over HTTP."""

    def __init__(self, address: str, watch: Watch) -> None:
        """The address is HOST:PORT, or a URL."""
        self.host, _, port = address.removeprefix("http://").strip("/").rpartition(":")
        self.port = int(port)
        self.watch = watch

    def get(self, path: str, **headers: str) -> tuple[int, str]:
        connection = http.client.HTTPConnection(self.host, self.port, timeout=PATIENCE_SECONDS)
        try:
            connection.request("GET", path, headers=headers)
            response = connection.getresponse()
            return response.status, response.read().decode()
        finally:
            connection.close()

    def scrape(self) -> Scrape:
        """A scrape. Whatever it is made for, it is checked for what must hold in each."""
        return until(self._scrape, "a scrape")

    def _scrape(self) -> Scrape | None:
        status, text = self.get("/metrics")
        # Not before all publishers of the last checkpoint are back, or known dead.
        if status == 503:
            return None
        assert status == 200
        scrape = parse(text)
        self.watch.see(scrape)
        return scrape

    def until(self, holds: Callable[[Scrape], object], what: str) -> Scrape:
        """Scrapes on and on until one scrape has what is waited for, and returns it."""
        last: Scrape | None = None

        def find() -> Scrape | None:
            nonlocal last
            last = self._scrape()
            return last if last and holds(last) else None

        try:
            found = until(find, what)
        except AssertionError as error:
            state = [
                line
                for line in (last.text.splitlines() if last else [])
                if line.startswith(("opstreamd_", "ascend_model_"))
            ]
            raise AssertionError(f"{error}; the last scrape:\n" + "\n".join(state)) from error
        assert found
        return found


class Daemon(Process, Endpoint):
    """`opstreamd serve`, listening."""

    def __init__(self, site: "Site", name: str, command: list[str]) -> None:
        Process.__init__(self, site, name, command)
        Endpoint.__init__(self, self.said("listening")["address"], site.watch)


@dataclass(frozen=True)
class Segment:
    """A worker's segment, mapped by the test too: it outlives its publisher."""

    pid: int
    view: View
    descriptor: Path

    def read(self) -> bytes:
        """Its bytes, while its publisher lives."""
        return self.descriptor.read_bytes()

    def counters(self) -> Counters:
        """The loss budget of a publisher that is dead."""
        return self.view.counters(departed=True, now_ns=time.monotonic_ns())

    def exposition(self, label_bytes_max: int = 1024) -> Scrape:
        """The segment's own series, of a publisher that is dead."""
        exposition = Exposition()
        now_ns = time.monotonic_ns()
        exposition.add(self.view, "opstreamd", "", now_ns=now_ns, alive_until_ns=now_ns)
        text = exposition.text(operator_bounds=0, model_bounds=0, label_bytes_max=label_bytes_max, per_operator=False)
        return parse(text.decode())


class Site:
    """A place for one test: a folder with configuration, state and socket, and all processes that are started there."""

    def __init__(self) -> None:
        # A socket's path is at most 107 bytes long; pytest's own folders are deeper.
        self.folder = Path(tempfile.mkdtemp(prefix="opstreamd-"))
        self.socket = self.folder / "publish" / "agent.sock"
        self.configuration = self.folder / "opstreamd.toml"
        self.journal = Journal(self.folder / "journal")
        self.watch = Watch()
        self.started: list[Process] = []
        self._mark = f"{MARK}={uuid.uuid4()}"
        name, _, value = self._mark.partition("=")
        self.environment = os.environ | {
            name: value,
            "OPSTREAM_SIM_JOURNAL": str(self.journal.path),
            "OPSTREAM_SIM_SPEED": "0",
        }
        self.configure()

    def configure(self, *models: Model, **sections: Mapping[str, object]) -> None:
        """Writes the configuration: what every test needs, the sections, and the models."""
        known: dict[str, Mapping[str, object]] = {
            "web": {"listen_address": ["127.0.0.1:0"]},
            "agent": {"socket": str(self.socket)},
            "admin": {"socket": str(self.folder / "admin" / "admin.sock")},
            "state": {"directory": str(self.folder / "state")},
            # Names are to be compared whole.
            "limits": {"label_length": 1024},
            "acl": {"simulator": True},
            "hosted": {},
        }
        lines: list[str] = []
        for name in known | sections:
            lines.append(f"[{name}]")
            lines += _lines({**known.get(name, {}), **sections.get(name, {})})
        for model in models:
            lines.append("[[hosted.models]]")
            lines += _lines(vars(model) | {"model": str(model.model)})
        self.configuration.write_text("\n".join(lines) + "\n", encoding="utf-8")

    def simulate(self, *faults: str, **settings: object) -> None:
        """Settings of the simulator in whatever is started from now on: simulate("corrupt=0.01", speed=1)."""
        self.environment["OPSTREAM_SIM_FAULTS"] = ",".join(faults)
        self.environment |= {f"OPSTREAM_SIM_{name.upper()}": str(value) for name, value in settings.items()}

    def serve(self) -> Daemon:
        return Daemon(self, self._name("serve"), self._command("serve"))

    def hosted(self) -> Process:
        return Process(self, self._name("hosted"), self._command("hosted"))

    def start(self, *arguments: str) -> Process:
        return Process(self, self._name(arguments[0]), [sys.executable, "-m", "opstreamd", *arguments])

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """A command that ends on its own."""
        command = [sys.executable, "-m", "opstreamd", *arguments]
        return subprocess.run(
            command,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=PATIENCE_SECONDS,
            check=False,
        )

    def processes(self) -> list[int]:
        """Everything that lives and was started here, by whomever: workers outlive those who started them."""
        return [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit() and self._is_ours(entry)]

    def segments(self) -> list[Segment]:
        """The segments of the publishers that live now."""
        return [segment for pid in self.processes() for segment in _segments(pid)]

    def segment(self) -> Segment:
        """The only publisher's segment, as soon as there is one."""
        (found,) = until(self.segments, "a publisher")
        return found

    def kill(self, pid: int) -> None:
        """Kills a process of this place, and waits until it is dead."""
        assert pid in self.processes()
        os.kill(pid, signal.SIGKILL)
        until(lambda: pid not in self.processes(), f"death of {pid}")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for process in self.started:
            process.kill()
        for pid in self.processes():
            os.kill(pid, signal.SIGKILL)
        until(lambda: not self.processes(), "death of all")
        said = {file.name: file.read_text(errors="replace") for file in sorted(self.folder.glob("*-*.*"))}
        shutil.rmtree(self.folder)
        for name, text in said.items():
            # Shown by pytest when the test has failed.
            print(f"---- {name}\n{text[-20_000:]}")
        complaints = {name for name, text in said.items() for sign in COMPLAINTS if sign in text}
        assert not complaints, f"an exception that nobody has caught, or a sanitizer's finding, in {complaints}"

    def _command(self, name: str) -> list[str]:
        return [
            sys.executable,
            "-m",
            "opstreamd",
            name,
            "--config.file",
            str(self.configuration),
            "--log.format",
            "json",
        ]

    def _name(self, command: str) -> str:
        return f"{len(list(self.folder.glob('*.log')))}-{command}"

    def _is_ours(self, process: Path) -> bool:
        try:
            environment = (process / "environ").read_bytes()
            state = (process / "stat").read_text().rpartition(")")[2].split()[0]
        except OSError:
            return False
        return self._mark.encode() in environment.split(b"\0") and state not in "ZX"


def _segments(pid: int) -> Iterator[Segment]:
    folder = Path(f"/proc/{pid}/fd")
    try:
        descriptors = [entry for entry in folder.iterdir() if os.readlink(entry).startswith("/memfd:")]
    except OSError:
        return
    for descriptor in descriptors:
        try:
            fd = os.open(descriptor, os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            continue
        try:
            view = View(fd, SEGMENT_BYTES)
        except EngineError:
            continue
        finally:
            os.close(fd)
        # The daemon may hold the same descriptor.
        if view.info.pid == pid:
            yield Segment(pid, view, descriptor)


def _lines(table: Mapping[str, object]) -> list[str]:
    """TOML writes text, numbers, booleans and lists as JSON does."""
    return [f"{key} = {json.dumps(value)}" for key, value in table.items()]
