"""`opstreamd demo`: one command, no configuration, and every family that the contract promises."""

import re

from processes import Endpoint, Site, until
from scrapes import Watch

LABELS_OF_MODELS = {"app", "device", "model"}
FAMILIES = {
    "ascend_op_duration_seconds": ("histogram", LABELS_OF_MODELS | {"op_type"}),
    "ascend_op_executions_total": ("counter", LABELS_OF_MODELS | {"op_type", "op_name"}),
    "ascend_op_seconds_total": ("counter", LABELS_OF_MODELS | {"op_type", "op_name"}),
    "ascend_op_max_duration_seconds": ("gauge", LABELS_OF_MODELS | {"op_type", "op_name"}),
    "ascend_model_info": ("gauge", LABELS_OF_MODELS),
    "ascend_model_execution_duration_seconds": ("histogram", LABELS_OF_MODELS),
    "ascend_model_last_execution_timestamp_seconds": ("gauge", LABELS_OF_MODELS),
    "ascend_model_busy_seconds_total": ("counter", LABELS_OF_MODELS),
    "ascend_model_gap_seconds_total": ("counter", LABELS_OF_MODELS),
    "ascend_model_late_intervals_total": ("counter", LABELS_OF_MODELS),
    "ascend_subscribed_seconds_total": ("counter", LABELS_OF_MODELS),
}
SHOWN = {("opstreamd", "resnet50"): 1, ("search", "bert-base"): 1, ("chat", "llm-decode"): 1}
GROWING = [name for name, (kind, _) in FAMILIES.items() if kind == "counter" and "late" not in name] + [
    "ascend_op_duration_seconds_count",
    "ascend_op_duration_seconds_sum",
    "ascend_model_execution_duration_seconds_count",
    "ascend_model_execution_duration_seconds_sum",
]


def test_demo_shows_every_family_and_counters_that_grow(site: Site) -> None:
    site.simulate(speed=1)
    demo = site.start("demo", "--seconds", "12", "--web.listen-address", "127.0.0.1:0")
    address = until(lambda: re.search(r"http://[\d.]+:\d+", demo.output.read_text()), "the address")
    assert address
    daemon = Endpoint(address.group(), Watch())
    first = daemon.until(lambda scrape: scrape.by("ascend_model_info", "app", "model") == SHOWN, "its models")
    first = daemon.until(
        lambda scrape: all(scrape.has(name, app=app) for name in GROWING for app, _ in SHOWN), "the families"
    )
    for name, (kind, labels) in FAMILIES.items():
        assert first.types[name] == kind
        samples = [dict(its) for sample, its in first.samples if sample.startswith(name)]
        assert samples
        assert all(its.keys() - {"le"} == labels for its in samples)
    for app, _ in SHOWN:
        daemon.until(
            lambda it, app=app: all(it.total(name, app=app) > first.total(name, app=app) for name in GROWING), "growth"
        )
    status, page = daemon.get("/")
    assert status == 200
    assert "/metrics" in page
    assert demo.wait() == 0
    assert site.processes() == []
