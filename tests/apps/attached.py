"""A Python program that loads its model through ctypes, where nothing can be wrapped, and attaches it itself.

attached.py WORKLOAD EXECUTIONS
"""

import ctypes
import sys

from opstreamd import agent

acl = ctypes.CDLL("libascendcl.so")


def call(name: str, *arguments: object) -> None:
    error = getattr(acl, name)(*arguments)
    if error:
        raise SystemExit(f"{name}: aclError {error}")


workload, executions = sys.argv[1], int(sys.argv[2])
acl.aclmdlCreateDataset.restype = ctypes.c_void_p
model = ctypes.c_uint32()
call("aclInit", None)
call("aclrtSetDevice", 1)
call("aclmdlLoadFromFile", workload.encode(), ctypes.byref(model))
print(agent.attach(model.value, name="attached", device=1))
inputs, outputs = (ctypes.c_void_p(acl.aclmdlCreateDataset()) for _ in range(2))
for _ in range(executions):
    call("aclmdlExecute", model, inputs, outputs)
print(agent.detach(model.value), agent.detach(model.value))
call("aclmdlUnload", model)
call("aclFinalize")
