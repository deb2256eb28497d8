"""What people get wrong: said where they look, and harmless to the rest."""

from pathlib import Path

import pytest

from expectations import executed
from processes import Model, Site, until
from profiles import Profile

BROKEN = {
    "broken.csv": (
        "Name,Type,Start Time(us),Duration(us)\n"
        "add_1,Add,1736412474730135.222\t,55.161\n"
        "add_2,Add,1736412474730296.625\t,soon\n",
        "3:33",
    ),
    "broken.workload": ("opstream-workload 1\nop\t0\t1000\tAdd\tadd_1\nop\t0\t-1\tAdd\tadd_2\n", "3:6"),
}


@pytest.mark.parametrize(("name", "text", "place"), [(name, *its) for name, its in BROKEN.items()], ids=BROKEN.keys())
def test_malformed_model_is_named_with_line_and_column(
    site: Site, summary: Profile, tmp_path: Path, name: str, text: str, place: str
) -> None:
    path = tmp_path / name
    path.write_text(text)
    site.configure(Model("broken", path), Model("good", summary.path, interval="10ms"))
    daemon = site.serve()
    until(lambda: f"{path}:{place}" in daemon.log.read_text(), "its place in the log")
    scrape = daemon.until(executed(20, model="good"), "executions of the other model")
    assert scrape.total("opstreamd_hosted_up", model="broken") == 0
    assert scrape.total("opstreamd_hosted_up", model="good") == 1
    assert not scrape.has("ascend_op_executions_total", model="broken")


def test_model_that_does_not_exist(site: Site, summary: Profile, tmp_path: Path) -> None:
    missing = tmp_path / "missing.csv"
    site.configure(Model("missing", missing), Model("good", summary.path, interval="10ms"))
    daemon = site.serve()
    until(lambda: str(missing) in daemon.log.read_text(), "its path in the log")
    scrape = daemon.until(executed(20, model="good"), "executions of the other model")
    assert scrape.total("opstreamd_hosted_up", model="missing") == 0


def test_missing_vendor_library_is_named(site: Site, summary: Profile, tmp_path: Path) -> None:
    site.environment = {name: value for name, value in site.environment.items() if not name.startswith("ASCEND")}
    site.configure(Model("nowhere", summary.path), acl={"simulator": False, "library_path": [str(tmp_path)]})
    daemon = site.serve()
    until(lambda: "libascendcl.so" in daemon.log.read_text(), "the library's name in the log")
    assert str(tmp_path) in daemon.log.read_text()
    scrape = daemon.scrape()
    assert scrape.total("opstreamd_hosted_up", model="nowhere") == 0


CONFIGURATIONS = {
    "unknown section": ("[webb]\n", "webb"),
    "unknown key": ("[web]\nlisten_adress = []\n", "web.listen_address"),
    "wrong type": ("[limits]\nlabel_length = true\n", "limits.label_length"),
    "out of bounds": ("[limits]\nlabel_length = 1\n", "limits.label_length"),
    "no duration": ('[state]\nretention = "soon"\n', "state.retention"),
    "no address": ('[web]\nlisten_address = ["nowhere"]\n', "web.listen_address"),
    "no bucket": ("[histograms]\noperator_buckets = [0.003]\n", "histograms.operator_buckets"),
    "model without a path": ('[[hosted.models]]\nname = "x"\n', "hosted.models[0].model"),
    "the same model twice": (
        '[[hosted.models]]\nname = "x"\nmodel = "a"\n[[hosted.models]]\nname = "x"\nmodel = "b"\n',
        "hosted.models[1]",
    ),
    "no TOML": ("[web\n", "line 1"),
}


@pytest.mark.parametrize(("text", "named"), CONFIGURATIONS.values(), ids=CONFIGURATIONS.keys())
def test_wrong_configuration_is_told(site: Site, tmp_path: Path, text: str, named: str) -> None:
    file = tmp_path / "opstreamd.toml"
    file.write_text(text)
    ended = site.run("serve", "--config.check", "--config.file", str(file))
    assert ended.returncode == 2
    assert str(file) in ended.stderr
    assert named in ended.stderr
    assert "Traceback" not in ended.stderr


@pytest.mark.parametrize("command", ["serve", "hosted"])
def test_nothing_runs_with_a_wrong_configuration(site: Site, tmp_path: Path, command: str) -> None:
    file = tmp_path / "opstreamd.toml"
    file.write_text("[web]\nunknown = 1\n")
    ended = site.run(command, "--config.file", str(file))
    assert ended.returncode == 2
    assert f"{file}: web.unknown" in ended.stderr


@pytest.mark.parametrize(
    "arguments",
    [
        ["serve", "--config.file", "/nonexistent/opstreamd.toml"],
        ["serve", "--web.listen-address", "nowhere"],
        ["serve", "--unknown"],
        ["unknown"],
    ],
    ids=" ".join,
)
def test_wrong_flags_are_refused(site: Site, arguments: list[str]) -> None:
    ended = site.run(*arguments)
    assert ended.returncode == 2
    assert ended.stderr
    assert "Traceback" not in ended.stderr


def test_good_configuration_passes_the_check(site: Site) -> None:
    site.configure(Model("resnet50", "resnet50"))
    assert site.run("serve", "--config.check", "--config.file", str(site.configuration)).returncode == 0


def test_second_daemon_on_the_same_socket_is_refused(site: Site) -> None:
    first = site.serve()
    second = site.run("serve", "--config.file", str(site.configuration))
    assert second.returncode not in (0, None)
    assert str(site.socket) in second.stderr
    assert "Traceback" not in second.stderr
    assert first.scrape().has("opstreamd_build_info")


def test_address_in_use_is_told(site: Site) -> None:
    first = site.serve()
    site.configure(
        web={"listen_address": [f"127.0.0.1:{first.port}"]}, agent={"socket": str(site.folder / "other" / "agent.sock")}
    )
    second = site.run("serve", "--config.file", str(site.configuration))
    assert second.returncode not in (0, None)
    assert str(first.port) in second.stderr
    assert "Traceback" not in second.stderr
