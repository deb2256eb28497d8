"""Attaches loaded models of this process, for Python programs whose loads the preloaded agent can't see.

    from opstreamd import agent
    agent.attach(model_id, name="resnet50", device=0)  # after the load
    agent.detach(model_id)                              # before the unload

It is the same agent, with the same environment variables (README): where one is preloaded, that one is asked, and
nothing is counted twice; else it is loaded at the first call. Only wrong arguments raise: with anything else wrong the
answer is False, and the logger "opstreamd.agent" says why, where the program has set up logging. Any thread. A forked
child starts anew.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

from opstreamd import engine

log = logging.getLogger(__name__)
log.addHandler(logging.NullHandler())  # nothing on stderr where the program has set up no logging

MODEL_ID_MAX = 0xFFFFFFFF
DEVICE_MAX = 63
NAME_BYTES_MAX = 255


def attach(model_id: int, *, name: str, device: int = 0) -> bool:
    """Subscribes a loaded model, whose operators run on `device`. One that is subscribed already gets this name.

    To be called after aclInit has returned. Waits for the vendor's call, 500 ms at most: then it is done later. False:
    it isn't subscribed; unless the vendor doesn't know the model it is tried again now and then, until it is detached.
    """
    _check_number(model_id, MODEL_ID_MAX, "model_id")
    _check_number(device, DEVICE_MAX, "device")
    if not name or "\0" in name or len(name.encode()) > NAME_BYTES_MAX:
        raise ValueError(f"name has 1 to {NAME_BYTES_MAX} bytes, none of them NUL")
    return _try(f"cannot attach model {name}", lambda: engine.agent_attach(model_id, device, name))


def detach(model_id: int) -> bool:
    """Unsubscribes it: what it has counted stays. To be called before the model is unloaded; waits 2 s at most."""
    _check_number(model_id, MODEL_ID_MAX, "model_id")
    return _try(f"cannot detach model {model_id}", lambda: engine.agent_detach(model_id))


def _check_number(number: int, most: int, what: str) -> None:
    if not isinstance(number, int):
        raise TypeError(f"{what} is a number")
    if not 0 <= number <= most:
        raise ValueError(f"{what} is 0 to {most}")


def _try(what: str, call: Callable[[], None]) -> bool:
    try:
        call()
    except engine.EngineError as error:
        if error.code == engine.Status.BUSY:
            return True  # it takes longer, and will be done
        log.warning("%s: %s", what, error)
        return False
    return True
