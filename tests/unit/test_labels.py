"""Nobody can add to somebody else's series, and extra labels are only those that are allowed."""

from opstreamd.labels import HOSTED_APP, AppNames, extra_labels
from opstreamd.peer import Peer

CONTAINER = "ab" * 32
ANN = Peer(1000, 11, "/user.slice/user-1000.slice")
BOB = Peer(1001, 12, "/user.slice/user-1001.slice")
POD = Peer(0, 13, f"/kubepods.slice/cri-containerd-{CONTAINER}.scope")


def test_a_name_is_its_first_publishers() -> None:
    names = AppNames()
    assert names.claim("serving", ANN, hosted=False) == "serving"
    assert names.claim("serving", ANN, hosted=False) == "serving"
    assert names.claim("serving", BOB, hosted=False) == "serving@1001"
    assert names.claim("serving", POD, hosted=False) == f"serving@{CONTAINER[:12]}"


def test_a_name_is_free_when_all_its_publishers_are_gone() -> None:
    names = AppNames()
    for _ in range(2):
        names.claim("serving", ANN, hosted=False)
    names.release("serving")
    assert names.claim("serving", BOB, hosted=False) == "serving@1001"
    names.release("serving")
    assert names.claim("serving", BOB, hosted=False) == "serving"


def test_another_cgroup_of_the_same_user_is_another_owner() -> None:
    names = AppNames()
    other = Peer(1000, 14, "/system.slice/other.service")
    third = Peer(1000, 15, "/system.slice/third.service")
    assert names.claim("serving", ANN, hosted=False) == "serving"
    assert names.claim("serving", other, hosted=False) == "serving@1000"
    assert names.claim("serving", third, hosted=False) == "serving@1000.2"


def test_a_name_that_looks_like_anothers_is_not_shared() -> None:
    names = AppNames()
    assert names.claim("serving@1000", BOB, hosted=False) == "serving@1000"
    assert names.claim("serving", BOB, hosted=False) == "serving"
    assert names.claim("serving", ANN, hosted=False) == "serving@1000.2"


def test_the_hosted_models_name_is_nobody_elses() -> None:
    names = AppNames()
    root = Peer(0, 16, "")
    assert names.claim(HOSTED_APP, root, hosted=False) == "opstreamd@0"
    assert names.claim(HOSTED_APP, root, hosted=True) == HOSTED_APP
    names.release(HOSTED_APP)
    assert names.claim(HOSTED_APP, root, hosted=False) == "opstreamd@0"


def test_containers_are_known_by_their_cgroup() -> None:
    assert POD.container == CONTAINER[:12]
    assert Peer(0, 1, f"/docker/{CONTAINER}").container == CONTAINER[:12]
    assert Peer(0, 1, f"/docker/{CONTAINER}0").container == ""
    assert ANN.container == ""


def test_extra_labels_are_chosen_sorted_and_escaped() -> None:
    allow = ("pod", "namespace")
    assert extra_labels("pod=a,team=x,namespace=b", allow) == ',namespace="b",pod="a"'
    assert extra_labels('pod=say "hi"\\\n', allow) == ',pod="say \\"hi\\"\\\\\\n"'
    assert extra_labels("pod=first,pod=second", allow) == ',pod="first"'
    assert extra_labels("pod", allow) == extra_labels("pod=", allow) == extra_labels("", allow) == ""


def test_at_most_eight_extra_labels_are_looked_at() -> None:
    assert extra_labels("x=1," * 8 + "pod=a", ("pod",)) == ""
    assert extra_labels("x=1," * 7 + "pod=a", ("pod",)) == ',pod="a"'
