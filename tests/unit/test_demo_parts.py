"""The demo's choices; that it runs is for the tests of whole processes."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from opstreamd.demo import APPLICATIONS, MODEL, configuration, free_address, guide, main
from opstreamd.keys import Address


def test_everything_of_it_is_in_its_folder() -> None:
    address = Address("127.0.0.1", 1)
    config = configuration(Path("/folder"), address)
    for path in (config.agent.socket, config.admin.socket, config.state.directory):
        assert path.startswith("/folder/")
    assert config.acl.simulator
    assert config.web.listen_address == (address,)
    assert len({model.device for model in (*config.hosted.models, *APPLICATIONS)}) == 3


def test_a_taken_port_gives_way_to_a_free_one() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        taken = Address(*listener.getsockname())
        assert free_address(taken) == Address("127.0.0.1", 0)
    assert free_address(taken) == taken


def test_the_guide_names_the_address_and_the_models() -> None:
    text = guide(Address("127.0.0.1", 7))
    assert "http://127.0.0.1:7/metrics" in text
    assert MODEL.name in text
    assert all(it.app in text and it.model in text for it in APPLICATIONS)


@pytest.mark.parametrize("flag", ["--seconds=0", "--seconds=nan", "--seconds=inf", "--web.listen-address=x"])
def test_bad_flags_are_refused(flag: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main([flag])
    assert caught.value.code == 2
    assert flag.partition("=")[0] in capsys.readouterr().err
