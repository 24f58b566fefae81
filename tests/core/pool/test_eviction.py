from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from relaydesk.core.pool.eviction import LoadedModel, choose_victims, decide


def model(name: str, size: int, used: float, in_flight: int = 0, pinned: bool = False) -> LoadedModel:
    return LoadedModel(name, size, used, in_flight, pinned)


def test_nothing_is_unloaded_where_it_fits() -> None:
    assert choose_victims([model("a", 10, 1)], 5, 5) == ()


def test_the_longest_unused_goes_first() -> None:
    loaded = [model("new", 10, 3), model("old", 10, 1), model("mid", 10, 2)]
    assert choose_victims(loaded, 10, 0) == ("old",)
    assert choose_victims(loaded, 11, 0) == ("old", "mid")


def test_a_model_in_use_or_pinned_stays() -> None:
    loaded = [model("used", 50, 1, in_flight=1), model("pinned", 50, 2, pinned=True), model("idle", 5, 3)]
    assert choose_victims(loaded, 5, 0) == ("idle",)
    assert choose_victims(loaded, 6, 0) is None


def test_what_does_not_help_is_spared() -> None:
    loaded = [model("small-old", 1, 1), model("large-new", 100, 2)]
    assert choose_victims(loaded, 50, 0) == ("large-new",)
    assert choose_victims(loaded, 101, 0) == ("small-old", "large-new")


def test_whether_it_can_ever_fit_is_decided_first() -> None:
    idle = [model("a", 10, 1)]
    assert decide(idle, 21, 10, 20).verdict == "never"
    assert decide(idle, 20, 10, 20).victims == ("a",)
    assert decide(idle, 10, 10, 20).verdict == "load"
    assert decide([model("a", 10, 1, in_flight=2)], 20, 10, 20).verdict == "wait"
    assert decide([model("a", 10, 1, pinned=True)], 20, 10, 20).verdict == "blocked"
    assert decide(idle, 25, 10, 30).verdict == "blocked"  # another program has the rest


models = st.lists(
    st.builds(
        LoadedModel,
        name=st.uuids().map(str),
        bytes=st.integers(0, 100),
        last_used=st.floats(0, 100),
        in_flight=st.integers(0, 2),
        pinned=st.booleans(),
    ),
    max_size=8,
)


@settings(max_examples=200, deadline=None)
@given(models, st.integers(0, 400), st.integers(0, 200), st.integers(0, 600))
def test_victims_are_idle_enough_and_all_needed(
    loaded: list[LoadedModel], need: int, free: int, total: int
) -> None:
    by_name = {item.name: item for item in loaded}
    may_go = [item for item in loaded if item.in_flight == 0 and not item.pinned]
    victims = choose_victims(loaded, need, free)
    if victims is None:
        assert free + sum(item.bytes for item in may_go) < need
    else:
        chosen = [by_name[name] for name in victims]
        gained = sum(item.bytes for item in chosen)
        assert all(item in may_go for item in chosen)
        assert free + gained >= need
        assert [item.last_used for item in chosen] == sorted(item.last_used for item in chosen)
        assert all(free + gained - item.bytes < need for item in chosen)
    decision = decide(loaded, need, free, total)
    assert decision.now == (need <= total and victims is not None)
    assert decision.now or not decision.victims
