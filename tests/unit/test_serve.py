"""The command line, and the daemon's process from its start to its end."""

import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import opstreamd

ENVIRONMENT = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
COMMAND = [sys.executable, "-m", "opstreamd"]


@pytest.fixture
def folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="opstreamd-") as name:
        yield Path(name)


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*COMMAND, *arguments], env=ENVIRONMENT, capture_output=True, text=True, check=False)


def flags(folder: Path, address: str = "127.0.0.1:0") -> list[str]:
    return [
        f"--web.listen-address={address}",
        f"--agent.socket={folder}/publish/agent.sock",
        f"--state.directory={folder}/state",
        "--log.format=json",
    ]


class Daemon:
    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process
        self.addresses: list[str] = []
        while (record := self.record())["msg"] == "listening":
            self.addresses.append(record["address"])
        assert record["msg"] == "started"

    def record(self) -> dict[str, str]:
        """The next record of its log."""
        assert self.process.stderr is not None
        record: dict[str, str] = json.loads(self.process.stderr.readline())
        return record

    def said(self, message: str) -> dict[str, str]:
        while (record := self.record())["msg"] != message:
            pass
        return record

    def get(self, path: str) -> http.client.HTTPResponse:
        connection = http.client.HTTPConnection(self.addresses[0], timeout=60)
        connection.request("GET", path, headers={"Connection": "close"})
        return connection.getresponse()


@contextmanager
def daemon(folder: Path, *more: str) -> Iterator[Daemon]:
    command = [*COMMAND, "serve", *flags(folder), *more]
    with subprocess.Popen(command, env=ENVIRONMENT, stderr=subprocess.PIPE, text=True) as process:
        try:
            yield Daemon(process)
        finally:
            process.kill()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_it_serves_and_ends_in_good_order(folder: Path, number: signal.Signals) -> None:
    with daemon(folder) as running:
        with running.get("/-/healthy") as answer:
            assert answer.status == 200
        assert (folder / "publish" / "agent.sock").is_socket()
        running.process.send_signal(number)
        assert running.record().items() >= {"msg": "stopping", "signal": number.name}.items()
        assert running.record()["msg"] == "stopped"
        assert running.process.wait() == 0
        assert not (folder / "publish" / "agent.sock").exists()


def test_a_second_signal_ends_it_at_once(folder: Path) -> None:
    configuration = folder / "opstreamd.toml"
    configuration.write_text('[acl]\nsimulator = true\n[[hosted.models]]\nname = "stuck"\nmodel = "resnet50"\n')
    with daemon(folder, "--config.file", str(configuration)) as running:
        worker = int(running.said("hosted worker started")["pid"])
        try:
            # A worker that doesn't end when it is told to is what a stopping daemon waits for.
            os.kill(worker, signal.SIGSTOP)
            running.process.send_signal(signal.SIGTERM)
            running.said("stopping")
            running.process.send_signal(signal.SIGTERM)
            assert running.process.wait() == 128 + signal.SIGTERM
        finally:
            os.kill(worker, signal.SIGKILL)


def test_a_killed_daemons_successor_starts(folder: Path) -> None:
    with daemon(folder) as running:
        running.process.kill()
        running.process.wait()
        assert (folder / "publish" / "agent.sock").is_socket()
    with daemon(folder) as running:
        assert running.get("/-/healthy").status == 200


def test_the_mask_of_who_starts_it_keeps_no_publisher_out(folder: Path) -> None:
    mask = os.umask(0o077)
    try:
        with daemon(folder):
            expected = 0o755 if os.getuid() == 0 else 0o700
            assert (folder / "publish").stat().st_mode & 0o777 == expected
    finally:
        os.umask(mask)


def test_a_port_in_use_is_one_line_and_status_1(folder: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        done = run("serve", *flags(folder, f"127.0.0.1:{taken.getsockname()[1]}"))
    assert done.returncode == 1
    (line,) = done.stderr.splitlines()
    assert "address already in use" in json.loads(line)["error"]
    assert not (folder / "publish" / "agent.sock").exists()


def test_a_second_daemon_on_the_same_socket_is_one_line_and_status_1(folder: Path) -> None:
    with daemon(folder) as running:
        done = run("serve", *flags(folder))
        assert done.returncode == 1
        (line,) = done.stderr.splitlines()
        assert "another daemon listens" in json.loads(line)["error"]
        assert running.get("/-/healthy").status == 200


def test_a_folder_that_cannot_be_made_is_one_line_and_status_1(folder: Path) -> None:
    (folder / "publish").write_text("in the way")
    done = run("serve", *flags(folder))
    assert done.returncode == 1
    assert len(done.stderr.splitlines()) == 1


def test_configurations_are_checked(folder: Path) -> None:
    good, bad = folder / "good.toml", folder / "bad.toml"
    good.write_text('[web]\nlisten_address = ["127.0.0.1:0"]\n')
    bad.write_text('[web]\nlisten_adress = ["127.0.0.1:0"]\n[state]\nretention = "soon"\n')
    assert run("serve", "--config.check", "--config.file", str(good)).returncode == 0
    for more in ([], ["--config.check"]):
        done = run("serve", *more, "--config.file", str(bad))
        assert done.returncode == 2
        assert len(done.stderr.splitlines()) == 2
        assert "did you mean web.listen_address" in done.stderr


def test_several_addresses_are_listened_on(folder: Path) -> None:
    with daemon(folder, "--web.listen-address=[::1]:0") as running:
        assert [address.rpartition(":")[0] for address in running.addresses] == ["127.0.0.1", "[::1]"]


def test_the_command_line() -> None:
    version = run("--version")
    assert (version.returncode, version.stdout) == (0, f"opstreamd {opstreamd.__version__}\n")
    for wrong in ([], ["nonsense"], ["serve", "--nonsense"], ["serve", "--log.level=loud"]):
        assert run(*wrong).returncode == 2
    for command in ("serve", "hosted"):
        assert "--config.file" in run(command, "--help").stdout
