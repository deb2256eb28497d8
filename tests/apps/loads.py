"""The same in Python (loads.c says what it does), through an extension module as pyACL is one (acl.c)."""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import acl


def call(function: Callable[..., Any], *arguments: object) -> Any:
    answer = function(*arguments)
    *made, error = answer if isinstance(answer, tuple) else (answer,)
    if error:
        raise SystemExit(f"{function.__name__}: aclError {error}")
    return made[0] if len(made) == 1 else made


def memory(path: str) -> list[int]:
    return [word for bytes_ in call(acl.query_size, path) for word in (call(acl.device_malloc, bytes_), bytes_)]


def load(variant: str, path: str) -> int:
    match variant:
        case "file":
            return call(acl.load_from_file, path)
        case "file-mem":
            return call(acl.load_from_file_with_mem, path, *memory(path))
        case "mem":
            return call(acl.load_from_mem, Path(path).read_bytes())
        case "mem-mem":
            return call(acl.load_from_mem_with_mem, Path(path).read_bytes(), *memory(path))
        case "config-file":
            return call(acl.load_with_config_file, path)
        case "config-mem":
            return call(acl.load_with_config_mem, Path(path).read_bytes())
        case "bundle":
            bundles.append(call(acl.bundle_load_from_file, path))
            return call(acl.bundle_get_model_id, bundles[-1])
    raise SystemExit(f"{variant}: unknown variant")


bundles: list[int] = []
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])
call(acl.init)
words = sys.argv[1:]
models = []
for variant, path, device, executions in zip(*[iter(words)] * 4, strict=True):
    call(acl.set_device, int(device))
    models.append((variant, int(device), load(variant, path), int(executions)))
for _, device, model, executions in models:
    call(acl.set_device, device)
    for _ in range(executions):
        call(acl.execute, model)
print("executed", flush=True)
signal.sigwait([signal.SIGTERM])
for variant, _, model, _ in models:
    if variant != "bundle":
        call(acl.unload, model)
for bundle in bundles:
    call(acl.bundle_unload, bundle)
call(acl.finalize)
