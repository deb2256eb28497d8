"""Whose series are whose: a name belongs to who has published it first, and nobody can add to somebody else's."""

from __future__ import annotations

import json
import shutil
from decimal import Decimal
from typing import Any

import pytest

from opstreamd import engine
from processes import Process, Site
from scrapes import Scrape

NOBODY = 65534


@pytest.fixture
def common(site: Site) -> Site:
    """A place with the simulator and the agent, where every user may run them."""
    site.folder.chmod(0o755)
    shutil.copytree(engine.simulator_path(), site.folder / "simulator")
    shutil.copy(engine.agent_library(), site.folder)
    site.environment.pop("OPSTREAM_SIM_JOURNAL")
    return site


class Serving(Process):
    """Executes a model so often, and ends; as the user."""

    def __init__(self, site: Site, app: str, executions: int, *, user: int = 0, **environment: str) -> None:
        before = site.environment
        agent = site.folder / engine.agent_library().name
        preloaded = ":".join(filter(None, [before.get("LD_PRELOAD"), str(agent)]))
        site.environment = before | {"LD_PRELOAD": preloaded, "OPSTREAM_SOCKET": str(site.socket)} | environment
        if app:
            site.environment["OPSTREAM_APP"] = app
        program = str(site.folder / "simulator" / "opstream-sim-app")
        name = f"{len(site.started)}-serving"
        super().__init__(site, name, [program, "resnet50", "model", "0", str(executions), "0", "0"], user=user)
        site.environment = before

    def made(self) -> dict[str, Any]:
        assert self.wait() == 0, self.log.read_text()
        made: dict[str, Any] = json.loads(self.output.read_text())
        return made


def recorded(scrape: Scrape, app: str) -> Decimal:
    return scrape.by("opstreamd_records_recorded_total", "app").get((app,), Decimal(0))


def assert_shown(scrape: Scrape, app: str, *made: dict[str, Any]) -> None:
    for name, what, scale in (("count", "count", 0), ("sum", "nanoseconds", -9)):
        assert scrape.by(f"ascend_op_duration_seconds_{name}", "op_type", app=app) == {
            (op_type,): Decimal(sum(it["op_types"][op_type][what] for it in made)).scaleb(scale)
            for op_type in made[0]["op_types"]
        }


def test_one_name_of_two_users_is_two_series(common: Site) -> None:
    daemon = common.serve()
    mine = Serving(common, "search", 30).made()
    daemon.until(lambda it: recorded(it, "search") == mine["records"], "the first")
    strangers = Serving(common, "search", 50, user=NOBODY).made()
    scrape = daemon.until(lambda it: recorded(it, f"search@{NOBODY}") == strangers["records"], "the stranger's")
    assert_shown(scrape, "search", mine)
    assert_shown(scrape, f"search@{NOBODY}", strangers)
    # The owner's next process goes on with his name, though the stranger's came in between.
    more = Serving(common, "search", 20).made()
    scrape = daemon.until(lambda it: recorded(it, "search") == mine["records"] + more["records"], "the owner's next")
    assert_shown(scrape, "search", mine, more)
    assert_shown(scrape, f"search@{NOBODY}", strangers)


def test_a_user_past_the_quota_is_refused_and_the_others_are_not(common: Site) -> None:
    common.configure(limits={"label_length": 1024, "segments_per_uid": 2})
    daemon = common.serve()
    mine = Serving(common, "mine", 10).made()
    first, second = (Serving(common, name, 10, user=NOBODY).made() for name in ("first", "second"))
    daemon.until(lambda it: recorded(it, "second") == second["records"], "what is within the quota")
    assert Serving(common, "third", 10, user=NOBODY).made()["executions"] == 10
    scrape = daemon.until(
        lambda it: it.by("opstreamd_publisher_refusals_total", "reason").get(("quota",), 0) >= 1, "the refusal"
    )
    assert not scrape.has("opstreamd_records_read_total", app="third")
    assert_shown(scrape, "mine", mine)
    assert_shown(scrape, "first", first)
    more = Serving(common, "mine", 5).made()
    scrape = daemon.until(lambda it: recorded(it, "mine") == mine["records"] + more["records"], "the others'")
    assert_shown(scrape, "mine", mine, more)


def test_labels_of_the_environment_are_shown(common: Site) -> None:
    daemon = common.serve()
    labels = "app=search,namespace=shop,pod=search-7d9f,container=server,team=a"
    made = Serving(common, "", 10, OPSTREAM_LABELS=labels).made()
    scrape = daemon.until(lambda it: recorded(it, "search") == made["records"], "all records")
    seen = scrape.by("ascend_model_info", "app", "namespace", "pod", "container")
    assert seen == {("search", "shop", "search-7d9f", "server"): 1}
    assert "team=" not in scrape.text  # not in labels.allow
