"""The engine's job as one would write it in Python: `python_drain.py LIBRARY_FOLDERS RECORDS`; one line of JSON.

os.read, the vendor's getters through cffi (one record a call: more would cost more), prometheus-client with children
kept at hand, the same families. The records are made by the simulator into a memfd, as drain.c does it.
"""

import json
import os
import sys
import threading
import time

import cffi
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

ffi = cffi.FFI()
ffi.cdef("""
    int aclInit(const char *); int aclrtSetDevice(int32_t); int aclmdlLoadFromFile(const char *, uint32_t *);
    void *aclmdlCreateDesc(void); int aclmdlGetDesc(void *, uint32_t);
    size_t aclmdlGetNumInputs(void *); size_t aclmdlGetNumOutputs(void *);
    size_t aclmdlGetInputSizeByIndex(void *, size_t); size_t aclmdlGetOutputSizeByIndex(void *, size_t);
    void *aclmdlCreateDataset(void); int aclmdlAddDatasetBuffer(void *, void *);
    void *aclCreateDataBuffer(void *, size_t);
    int aclrtMalloc(void **, size_t, int); int aclmdlExecute(uint32_t, void *, void *);
    void *aclprofCreateSubscribeConfig(int8_t, int, void *);
    int aclprofModelSubscribe(uint32_t, void *); int aclprofModelUnSubscribe(uint32_t);
    int aclprofGetOpDescSize(size_t *);
    int aclprofGetOpType(const void *, size_t, uint32_t, char *, size_t);
    int aclprofGetOpName(const void *, size_t, uint32_t, char *, size_t);
    uint64_t aclprofGetOpStart(const void *, size_t, uint32_t);
    uint64_t aclprofGetOpEnd(const void *, size_t, uint32_t);
    size_t aclprofGetModelId(const void *, size_t, uint32_t);
""")

BUCKETS = [m * 10.0**e for e in range(-6, 0) for m in (1, 2, 5)] + [1.0]


def check(code: int) -> None:
    if code != 0:
        raise SystemExit(f"AscendCL answered {code}")


def make_records(acl, prof, records: int) -> tuple[int, int]:
    """A memfd with at least that many records, and a record's size."""
    check(acl.aclInit(ffi.NULL))
    check(acl.aclrtSetDevice(0))
    model = ffi.new("uint32_t *")
    check(acl.aclmdlLoadFromFile(b"llm-decode", model))
    desc = acl.aclmdlCreateDesc()
    check(acl.aclmdlGetDesc(desc, model[0]))

    def dataset(number, size_of):
        made = acl.aclmdlCreateDataset()
        for i in range(number):
            memory = ffi.new("void **")
            check(acl.aclrtMalloc(memory, size_of(desc, i), 2))
            check(acl.aclmdlAddDatasetBuffer(made, acl.aclCreateDataBuffer(memory[0], size_of(desc, i))))
        return made

    inputs = dataset(acl.aclmdlGetNumInputs(desc), acl.aclmdlGetInputSizeByIndex)
    outputs = dataset(acl.aclmdlGetNumOutputs(desc), acl.aclmdlGetOutputSizeByIndex)
    size = ffi.new("size_t *")
    check(prof.aclprofGetOpDescSize(size))
    file = os.memfd_create("records")
    make_records.fd = ffi.new("int *", os.dup(file))  # must live as long as the process
    check(prof.aclprofModelSubscribe(model[0], prof.aclprofCreateSubscribeConfig(1, 0xFF, make_records.fd)))
    while os.lseek(file, 0, os.SEEK_END) < records * size[0]:
        check(acl.aclmdlExecute(model[0], inputs, outputs))
    check(prof.aclprofModelUnSubscribe(model[0]))
    return file, size[0]


def drain(prof, fd: int, size: int) -> int:
    registry = CollectorRegistry()
    names = ["app", "device", "model", "op_type"]
    durations = Histogram("ascend_op_duration_seconds", "-", names, buckets=BUCKETS, registry=registry)
    executions = Counter("ascend_op_executions", "-", [*names, "op_name"], registry=registry)
    seconds = Counter("ascend_op_seconds", "-", [*names, "op_name"], registry=registry)
    longest = Gauge("ascend_op_max_duration_seconds", "-", [*names, "op_name"], registry=registry)
    models = Histogram("ascend_model_execution_duration_seconds", "-", names[:3], registry=registry)
    children, maxima = {}, {}
    type_text, name_text = ffi.new("char[]", 4096), ffi.new("char[]", 4096)
    records = 0
    rest = b""
    while data := os.read(fd, 1 << 20):
        data = rest + data
        whole = len(data) // size * size
        rest = data[whole:]
        buffer = ffi.from_buffer(data)
        for at in range(0, whole, size):
            info = buffer + at
            check(prof.aclprofGetOpType(info, size, 0, type_text, 4096))
            check(prof.aclprofGetOpName(info, size, 0, name_text, 4096))
            op_type, op_name = ffi.string(type_text), ffi.string(name_text)
            ffi.memmove(type_text, bytes(len(op_type)), len(op_type))
            ffi.memmove(name_text, bytes(len(op_name)), len(op_name))
            model = prof.aclprofGetModelId(info, size, 0)
            duration = (prof.aclprofGetOpEnd(info, size, 0) - prof.aclprofGetOpStart(info, size, 0)) * 1e-9
            key = (model, op_type, op_name)
            child = children.get(key)
            if child is None:
                labels = ("bench", "0", str(model))
                operator = (*labels, op_type.decode(), op_name.decode())
                if op_name == b"keypoint_op":
                    child = (models.labels(*labels), None, None, None)
                else:
                    child = (
                        durations.labels(*operator[:4]),
                        executions.labels(*operator),
                        seconds.labels(*operator),
                        longest.labels(*operator),
                    )
                children[key] = child
            histogram, count, total, most = child
            histogram.observe(duration)
            if count is not None:
                count.inc()
                total.inc(duration)
                if duration > maxima.get(key, -1.0):
                    maxima[key] = duration
                    most.set(duration)
            records += 1
    return records


def main(folders: str, wanted: str) -> None:
    acl, prof = (
        ffi.dlopen(next(p for f in folders.split(":") if os.path.exists(p := f"{f}/{name}")))
        for name in ("libascendcl.so", "libmsprofiler.so")
    )
    file, size = make_records(acl, prof, int(wanted))
    total = int(wanted) * size
    read_fd, write_fd = os.pipe()

    def feed() -> None:
        at = 0
        while at < total:
            at += os.write(write_fd, os.pread(file, min(1 << 16, total - at), at))
        os.close(write_fd)

    feeder = threading.Thread(target=feed)
    feeder.start()
    begin = time.monotonic_ns()
    records = drain(prof, read_fd, size)
    ns = time.monotonic_ns() - begin
    feeder.join()
    print(json.dumps({"way": "python", "records": records, "ns_per_record": ns / records}))


if __name__ == "__main__":
    os.environ["OPSTREAM_SIM_SPEED"] = "0"
    main(*sys.argv[1:])
