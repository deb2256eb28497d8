"""The configuration: what an empty file gives, and that each thing wrong with a file is named, all at once."""

from __future__ import annotations

import argparse
import dataclasses
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opstreamd.config import BOUNDS_NS, Config, Histograms, Places
from opstreamd.configfile import ConfigError, Reader, add_flags, from_flags, load, reference
from opstreamd.durations import Duration
from opstreamd.keys import Address


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "opstreamd.toml"


def read(file: Path, text: str, flags: dict[str, object] | None = None) -> Config:
    file.write_text(text, encoding="utf-8")
    return load(file, flags)


def problems(file: Path, text: str, flags: dict[str, object] | None = None) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        read(file, text, flags)
    return [line.removeprefix(f"{file}: ") for line in caught.value.problems]


def test_an_empty_file_gives_the_defaults(file: Path) -> None:
    config = read(file, "")
    assert config == Config() == load(None)
    assert config.web.listen_address == (Address("127.0.0.1", 9780),)
    assert config.web.telemetry_path == "/metrics"
    assert str(config.state.retention) == "5m"
    assert config.limits.segment_bytes == 64 * 2**20
    assert config.limits.label_length == 200
    assert config.labels.allow == ("pod", "namespace", "container")
    assert config.hosted.supervise is True
    assert config.hosted.models == ()


def test_every_key_of_the_contract_is_read(file: Path) -> None:
    config = read(
        file,
        """
        [web]
        listen_address = ["[::1]:0", ":80"]
        telemetry_path = "/m"
        config_file = ""
        [agent]
        socket = "/s/agent.sock"
        allow_uids = [0, 1000]
        [admin]
        socket = "/s/admin.sock"
        group = "ops"
        [state]
        directory = "/s"
        retention = "1m30s"
        [limits]
        label_length = 100
        [histograms]
        operator_buckets = [0.001, 1e-7, 100]
        model_buckets = [1]
        per_operator = true
        [labels]
        allow = ["team"]
        [acl]
        simulator = true
        library_path = ["/a", "/b"]
        [hosted]
        supervise = false
        [[hosted.models]]
        name = "resnet50"
        model = "/models/resnet50.om"
        [[hosted.models]]
        name = "resnet50"
        model = "resnet50"
        device = 1
        interval = "0s"
        executions = 5
        """,
    )
    assert [str(address) for address in config.web.listen_address] == ["[::1]:0", ":80"]
    assert config.agent.allow_uids == (0, 1000)
    assert config.admin.group == "ops"
    assert config.state.retention == Duration.parse("90s")
    assert [BOUNDS_NS[number] for number in config.histograms.operator_buckets] == [10**6, 100, 10**11]
    assert config.histograms.model_bounds == 1 << BOUNDS_NS.index(10**9)
    assert config.acl.library_path == ("/a", "/b")
    first, second = config.hosted.models
    assert (first.device, str(first.interval), first.executions) == (0, "1s", 0)
    assert (second.device, str(second.interval), second.executions) == (1, "0s", 5)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("[wbe]", "wbe: unknown key; did you mean web?"),
        ("[web]\nlisten_adress = []", "web.listen_adress: unknown key; did you mean web.listen_address?"),
        ("[web]\nretention = '5m'", "web.retention: unknown key; did you mean state.retention?"),
        ("[labels]\nzzz = 1", "labels.zzz: unknown key; known are allow"),
        ('[web]\n"a b\\n" = 1', 'web."a b\\n": unknown key; known are listen_address, telemetry_path, config_file'),
        ("web = 3", "web: 3 is not allowed here; allowed: a table"),
        ("[histograms]\nper_operator = 1", "histograms.per_operator: 1 is not allowed; allowed: true or false"),
        (
            "[limits]\nlabel_length = true",
            "limits.label_length: true is not allowed; allowed: a whole number from 64 to 4096",
        ),
        (
            "[limits]\nlabel_length = 4097",
            "limits.label_length: 4097 is not allowed; allowed: a whole number from 64 to 4096",
        ),
        (
            "[hosted]\nmodels = 1",
            "hosted.models: 1 is not allowed here; allowed: a list of tables, [[hosted.models]]",
        ),
        (
            "[[hosted.models]]\nname = 'a'\nmodel = 'a'\n[[hosted.models]]\nname = 'b'\nmodel = 'b'\ninterval = '5x'",
            'hosted.models[1].interval: "5x" is not allowed; allowed: a duration from "0s" to "24h" '
            'in units h, m, s, ms, us, ns, such as "1m30s"',
        ),
        (
            "[[hosted.models]]\nname = 'a'",
            "hosted.models[0].model: is missing; allowed: a string of 1 to 4095 bytes without control characters",
        ),
        (
            "[[hosted.models]]\nname = 'a'\nmodel = 'x'\n[[hosted.models]]\nname = 'a'\nmodel = 'y'",
            'hosted.models[1].name: "a" on device 0 is hosted.models[0] already',
        ),
        ("[web]\nconfig_file = '/w.yml'", 'web.config_file: "/w.yml" is not allowed; allowed: only "": TLS'),
    ],
)
def test_what_is_wrong_is_named_with_what_is_allowed(file: Path, text: str, problem: str) -> None:
    (line,) = problems(file, text)
    assert line.startswith(problem)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("web.listen_address", "[]"),
        ("web.listen_address", "'127.0.0.1:1'"),
        ("web.listen_address", "['127.0.0.1']"),
        ("web.listen_address", "['127.0.0.1:65536']"),
        ("web.listen_address", "['::1:80']"),
        ("web.listen_address", "[':1', ':1']"),
        ("web.telemetry_path", "'metrics'"),
        ("web.telemetry_path", "'/-/ready'"),
        ("agent.socket", "'relative'"),
        ("agent.socket", f"'/{'x' * 107}'"),
        ("agent.allow_uids", "[-1]"),
        ("agent.allow_uids", "[1, 1]"),
        ("state.retention", "5"),
        ("state.retention", "'0s'"),
        ("limits.segment_bytes", "1.5"),
        ("histograms.operator_buckets", "[0.003]"),
        ("histograms.operator_buckets", "[200.0]"),
        ("histograms.operator_buckets", "[true]"),
        ("histograms.operator_buckets", "[nan]"),
        ("histograms.model_buckets", "[1, 1.0]"),
        ("labels.allow", "['op_type']"),
        ("labels.allow", "['__x']"),
        ("labels.allow", "['a-b']"),
        ("labels.allow", "['le']"),
        ("acl.library_path", "['/a:/b']"),
        ("acl.library_path", "['lib']"),
        ("acl.simulator", "1979-05-27T07:32:00Z"),
    ],
)
def test_a_value_out_of_bounds_names_its_key(file: Path, key: str, value: str) -> None:
    (line,) = problems(file, f"{key} = {value}")
    assert line.startswith(f"{key}: ")
    assert "; allowed: " in line


@pytest.mark.parametrize(
    ("key", "value"),
    [("name", "''"), ("name", f"'{'x' * 64}'"), ("name", '"a\\nb"'), ("device", "-1"), ("executions", "-1")],
)
def test_a_hosted_models_value_out_of_bounds_names_its_key(file: Path, key: str, value: str) -> None:
    given_keys = {"name": "'a'", "model": "'b'"} | {key: value}
    lines = [f"{name} = {text}" for name, text in given_keys.items()]
    (line,) = problems(file, "\n".join(["[[hosted.models]]", *lines]))
    assert line.startswith(f"hosted.models[0].{key}: ")


def test_all_that_is_wrong_is_said_at_once(file: Path) -> None:
    lines = problems(file, "x = 1\n[web]\ntelemetry_path = 1\n[state]\nretention = 2\n[[hosted.models]]")
    assert [line.partition(":")[0] for line in lines] == [
        "x",
        "web.telemetry_path",
        "state.retention",
        "hosted.models[0].name",
        "hosted.models[0].model",
    ]


def test_a_syntax_error_names_line_and_column(file: Path) -> None:
    assert problems(file, "[web]\nlisten_address = ") == ["no TOML: Invalid value (at line 2, column 18)"]
    assert problems(file, "[web\n") == ["no TOML: Expected ']' at the end of a table declaration (at line 1, column 5)"]


def test_a_file_that_cannot_be_read_says_why(tmp_path: Path, file: Path) -> None:
    with pytest.raises(ConfigError, match="absent: No such file"):
        load(tmp_path / "absent")
    file.write_bytes(b"[web]\nx = '\xff'")
    with pytest.raises(ConfigError, match="byte 11 is not UTF-8"):
        load(file)
    file.write_text("x = " + "[" * 100_000)
    with pytest.raises(ConfigError, match="nested too deeply"):
        load(file)


def test_flags_override_the_file_and_are_named_when_wrong(file: Path) -> None:
    config = read(file, "[state]\ndirectory = 'wrong'", {"--state.directory": "/right"})
    assert config.state.directory == "/right"
    assert problems(file, "[state]\ndirectory = '/right'", {"--state.directory": "wrong"}) == [
        '--state.directory: "wrong" is not allowed; '
        "allowed: an absolute path of at most 4095 bytes without colons and control characters"
    ]


def test_the_flags_of_the_contract_are_parsed() -> None:
    parser = argparse.ArgumentParser()
    add_flags(parser)
    line = "--web.listen-address :1 --web.listen-address :2 --web.telemetry-path /x --agent.socket /a"
    config = from_flags(parser.parse_args([*line.split(), "--state.directory", "/s"]))
    assert config.web.listen_address == (Address("", 1), Address("", 2))
    assert (config.web.telemetry_path, config.agent.socket, config.state.directory) == ("/x", "/a", "/s")
    assert from_flags(parser.parse_args([])) == Config()


def test_a_command_offers_the_flags_of_its_own_sections_only() -> None:
    parser = argparse.ArgumentParser(exit_on_error=False)
    add_flags(parser, "agent", "state")
    assert parser.parse_args(["--agent.socket", "/a"])
    assert parser.parse_known_args(["--web.telemetry-path", "/x"])[1] == ["--web.telemetry-path", "/x"]


def test_the_paths_belong_to_the_system_or_to_the_person() -> None:
    person = {"XDG_RUNTIME_DIR": "/run/user/7", "XDG_STATE_HOME": "/home/p/state"}
    system = Places("/run/opstreamd", "/var/lib/opstreamd")
    assert Places.of(0, 1, person) == system
    assert Places.of(7, 1, person) == Places("/run/user/7/opstreamd", "/home/p/state/opstreamd")
    assert Places.of(7, 1, {"XDG_STATE_HOME": "/s"}) == Places("/s/opstreamd", "/s/opstreamd")
    assert Places.of(7, 1, {"SYSTEMD_EXEC_PID": "1"}) == system
    assert Places.of(7, 1, person | {"SYSTEMD_EXEC_PID": "1"}).runtime == "/run/user/7/opstreamd"


def test_a_default_that_the_environment_spoils_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.geteuid", lambda: 7)
    monkeypatch.setenv("XDG_RUNTIME_DIR", "/" + "x" * 107)
    with pytest.raises(ConfigError, match=r"^agent\.socket: ") as caught:
        load(None)
    assert len(caught.value.problems) == 1
    assert load(None, {"--agent.socket": "/a"}).agent.socket == "/a"


def test_the_bounds_are_the_fixed_set() -> None:
    assert len(BOUNDS_NS) == 28
    assert (BOUNDS_NS[0], BOUNDS_NS[-1]) == (100, 100 * 10**9)
    assert Histograms().operator_bounds.bit_count() == 19
    assert Histograms().model_bounds.bit_count() == 16


@given(st.sets(st.sampled_from(range(28)), min_size=1))
def test_each_bound_of_the_set_is_found_as_people_write_it(numbers: set[int]) -> None:
    written = [float(f"{BOUNDS_NS[number]}e-9") for number in sorted(numbers)]
    kind = next(part for part in dataclasses.fields(Histograms) if part.name == "operator_buckets").metadata["kind"]
    assert kind.read(written) == tuple(sorted(numbers))


_VALUES = st.recursive(
    st.one_of(st.booleans(), st.integers(), st.floats(), st.text(max_size=8), st.dates()),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=5,
)


_KEYS = [
    (part.name, key.name) for part in dataclasses.fields(Config) for key in dataclasses.fields(part.default_factory)
]


@given(st.sampled_from(_KEYS), _VALUES)
def test_any_value_is_read_or_its_key_is_named(path: tuple[str, str], value: Any) -> None:
    section, key = path
    reader = Reader("f", {})
    reader.config({section: {key: value}})
    assert all(line.startswith(f"f: {section}.{key}") and "\n" not in line for line in reader.problems)


@given(st.text(max_size=40))
def test_an_address_reads_back_as_it_was(text: str) -> None:
    try:
        address = Address.parse(text)
    except ValueError:
        return
    assert Address.parse(str(address)) == address


def test_the_reference_names_every_key_with_its_default() -> None:
    text = reference()
    for part in dataclasses.fields(Config):
        assert f"[{part.name}]\n" in text
        for key in dataclasses.fields(part.default_factory):
            assert f"\n{key.name} = " in text or key.name == "models"
    assert "[[hosted.models]]\n" in text
    assert 'retention = "5m"\n' in text
