"""Checks of real edges before a real node: what is found, whose it is, and that what is printed mends it.

nginx, Caddy, HAProxy, Apache and Varnish as Debian has them, alone and two in a row; what leads nowhere; and
what a page in Chromium can read. The bulk is marked long, a slice of it runs with everything else.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from typing import Any, Final, NamedTuple

import pytest

from relaydesk.core.hopcheck.remedies.table import TABLE
from tests.support.browser import Browser
from tests.support.edges import PRODUCTS
from tests.support.edges.edge import Edge
from tests.support.edges.printed import parsed
from tests.support.namespaces import LACKING, Namespaces
from tests.support.operators import Operator, Operators
from tests.support.pebble import free_ports

# Checks at once: each waits most of its time.
AT_ONCE = 4
SILENCES = ("--long", "--silence", "2", "--silence", "4", "--silence", "6")
MARKER = "X-Zs-Relay-Hop"

SINGLE = [(name, wrong) for name, product in PRODUCTS.items() for wrong in ("", *product.ways)]
# Inner and outer product, how the inner one is wrong, and how the outer one.
LAYERED = [
    ("nginx", "caddy", "removed", ""),
    ("nginx", "caddy", "", "removed"),
    ("caddy", "haproxy", "pages", ""),
    ("caddy", "haproxy", "", "pages"),
    ("haproxy", "apache", "exposed", ""),
    ("haproxy", "apache", "", "exposed"),
    ("apache", "varnish", "buffered", ""),
    ("apache", "varnish", "", "buffered"),
    ("varnish", "nginx", "small", ""),
    ("varnish", "nginx", "", "small"),
    ("nginx", "nginx", "removed", ""),
    ("nginx", "nginx", "", "removed"),
    ("nginx", "haproxy", "removed", "small"),
    ("apache", "caddy", "", ""),
]
SLICE = [("nginx", ""), ("nginx", "removed"), ("haproxy", "exposed")]


class Checked(NamedTuple):
    """What ``check-hop --json`` printed, its exit code, and how long it took."""

    code: int
    report: dict[str, Any]
    seconds: float

    def found(self) -> set[tuple[str, str, str]]:
        """Code, layer and product of each finding."""
        return {(each["code"], each["layer"], each["product"]) for each in self.report["findings"]}

    def told(self) -> list[str]:
        """The beginnings of what was seen."""
        return [
            f"{each['code']} at {each['layer']}: {each['evidence'][:200]}" for each in self.report["findings"]
        ]

    def products(self) -> dict[str, str]:
        """What was recognised, by layer."""
        return {each["name"]: each["product"] for each in self.report["layers"]}

    def states(self, layer: str) -> dict[str, str]:
        """How each probe of a layer ended."""
        return {each["id"]: each["state"] for each in self.report["probes"] if each["layer"] == layer}

    def remedies(self, layer: str) -> list[str]:
        """Those of a layer."""
        return [each["remedy"] for each in self.report["findings"] if each["layer"] == layer]


class Outcome(NamedTuple):
    """A check of what is wrong, and one of what its remedies made of it (of what is right: of nothing)."""

    before: Checked
    after: Checked | None


def check(node: Operator, url: str, *words: str, prefix: Sequence[str] = ()) -> Checked:
    """Run the command beside the node; ``prefix`` are words before it."""
    return checked(url, "--attach", str(node.socket), *words, prefix=prefix)


def checked(url: str, *words: str, prefix: Sequence[str] = ()) -> Checked:
    """Run the command, with no settings but the lab's."""
    env = {name: value for name, value in os.environ.items() if not name.startswith("RELAY")}
    env |= {"RELAY_ALLOW_PRIVATE": "on", "XDG_CONFIG_HOME": "/nonexistent"}
    command = [*prefix, sys.executable, "-m", "relaydesk", "check-hop", url, "--json", *words]
    began = time.monotonic()
    ran = subprocess.run(command, env=env, capture_output=True, text=True, timeout=100, check=False)
    seconds = time.monotonic() - began
    assert ran.stdout, ran.stderr
    report = json.loads(ran.stdout)
    assert report["ok"] is (not report["findings"])
    assert ran.returncode == (0 if report["ok"] else 1)
    return Checked(ran.returncode, report, seconds)


def single(node: Operator, name: str, wrong: str) -> Outcome:
    """One edge."""
    words = SILENCES if wrong == "impatient" else ()
    with Edge(PRODUCTS[name], node.bind, wrong) as edge:
        before = check(node, edge.url, *words)
        if before.report["ok"]:
            return Outcome(before, None)
        edge.mend(*before.remedies("public"))
        return Outcome(before, check(node, edge.url, *words))


def layered(node: Operator, inner: str, outer: str, inner_wrong: str, outer_wrong: str) -> Outcome:
    """Two edges in a row, each mended by what is laid at its own door."""
    with (
        Edge(PRODUCTS[inner], node.bind, inner_wrong) as near,
        Edge(PRODUCTS[outer], near.address, outer_wrong) as far,
    ):
        via = ("--via", f"inner={near.url}")
        before = check(node, far.url, *via)
        if before.report["ok"]:
            return Outcome(before, None)
        for edge, layer in ((near, "inner"), (far, "public")):
            if remedies := before.remedies(layer):
                edge.mend(*remedies)
        return Outcome(before, check(node, far.url, *via))


def made_possible(node: Operator) -> None:
    """HAProxy compresses nothing that says no-transform. Where one takes that away, it is another that
    compresses, and the same product further in is not taken for it."""
    haproxy = PRODUCTS["haproxy"]
    with (
        Edge(haproxy, node.bind, "transformable") as near,
        Edge(haproxy, near.address, "compressed") as far,
    ):
        via = ("--via", f"inner={near.url}")
        before = check(node, far.url, *via)
        assert before.found() == {("compressed", "public", "HAProxy")}
        assert before.products()["inner"] == "HAProxy"
        far.mend(*before.remedies("public"))
        assert check(node, far.url, *via).found() == set()


def printed(node: Operator) -> None:
    with Edge(PRODUCTS["nginx"], node.bind, "removed") as edge:
        ran = node.cli("check-hop", edge.url)
        assert ran.returncode == 1
        assert "nginx" in ran.stdout
        assert "[marker_removed]" in ran.stdout
        assert "layer: public    product: nginx" in ran.stdout
        edge.mend(ran.stdout)
        clean = node.cli("check-hop", edge.url)
        assert clean.returncode == 0, clean.stdout
        assert "nothing else was found" in clean.stdout


def elsewhere(node: Operator) -> None:
    """Without the node's socket: only the public URL is looked at."""
    nonce = json.loads(node.cli("check-hop", "--new-nonce", "--json").stdout)["nonce"]
    with Edge(PRODUCTS["nginx"], node.bind, "removed") as edge:
        seen = checked(edge.url, "--alone", "--nonce", nonce)
        assert seen.found() == {("marker_removed", "public", "nginx")}
        assert seen.products() == {"public": "nginx"}
        assert seen.states("public")["stream"] == "passed"
        edge.mend(*seen.remedies("public"))
        assert checked(edge.url, "--alone", "--nonce", nonce).found() == set()


def silent(node: Operator) -> None:
    with socket.create_server(("127.0.0.1", 0), backlog=64) as silent:
        seen = check(node, f"http://127.0.0.1:{silent.getsockname()[1]}")
    assert seen.found() == {("black_hole", "public", "")}
    assert seen.seconds <= 30


def refused(node: Operator) -> None:
    (port,) = free_ports(1)
    seen = check(node, f"http://127.0.0.1:{port}")
    assert seen.found() == {("unreachable", "public", "")}
    assert seen.seconds <= 30


def lost(_node: Operator) -> None:
    """One that nobody answers for, one to which everything is lost, one to which no way leads."""
    with Namespaces(1) as spaces:
        space = spaces[0]
        net = space.address.rpartition(".")[0]
        swallowed = ("neigh", "add", f"{net}.251", "lladdr", "02:00:00:00:00:09", "dev", space.interface)
        subprocess.run([*space.prefix, "ip", *swallowed], check=True, timeout=20)
        hosts = {f"{net}.250": "unreachable", f"{net}.251": "black_hole", "203.0.113.9": "unreachable"}
        with ThreadPoolExecutor(len(hosts)) as pool:
            ran = pool.map(lambda host: checked(f"http://{host}:8384", "--alone", prefix=space.prefix), hosts)
            for seen, code in zip(ran, hosts.values(), strict=True):
                assert seen.found() == {(code, "public", "")}
                assert seen.seconds <= 30


def inside(node: Operator) -> None:
    """The edge is as wrong as can be, and nobody is blamed by what was seen of the name."""
    hosts = node.dir / "hosts"
    hosts.write_text("127.0.0.1 localhost node.example.org\n")
    mount = 'mount --bind "$0" /etc/hosts && exec "$@"'
    prefix = ("unshare", "--mount", "sh", "-c", mount, str(hosts))
    with Edge(PRODUCTS["nginx"], node.bind, "removed") as edge:
        url = f"http://node.example.org:{edge.url.rpartition(':')[2]}"
        seen = check(node, url, prefix=prefix)
        assert seen.found() == {("seen_from_inside", "", "")}
        assert "127.0.0.1" in seen.report["findings"][0]["evidence"]
        # What the operator names is another matter.
        seen = check(node, url, "--via", f"nginx={edge.url}", prefix=prefix)
        assert seen.found() == {("marker_removed", "nginx", "nginx"), ("seen_from_inside", "", "")}


SCENES: Final[dict[str, Callable[[Operator], None]]] = {
    each.__name__: each for each in (made_possible, printed, elsewhere, silent, refused, lost, inside)
}


class Matrix:
    """Runs what this session's tests are going to ask for, several at once."""

    def __init__(self, node: Operator, pool: ThreadPoolExecutor) -> None:
        self._node = node
        self._pool = pool
        self._runs: dict[tuple[str, ...], Future[Outcome] | Future[None]] = {}

    def prepare(self, case: Sequence[str]) -> None:
        key = tuple(case)
        if key not in self._runs:
            if len(key) == 1:
                self._runs[key] = self._pool.submit(SCENES[key[0]], self._node)
            else:
                run: Callable[..., Outcome] = single if len(key) == 2 else layered
                self._runs[key] = self._pool.submit(run, self._node, *key)

    def outcome(self, *case: str) -> Outcome:
        self.prepare(case)
        found = self._runs[case].result()
        assert isinstance(found, Outcome)
        return found

    def scene(self, name: str) -> None:
        """Raises what it raised."""
        self.prepare((name,))
        self._runs[name,].result()


@pytest.fixture(scope="module")
def node() -> Iterator[Operator]:
    with Operators(1) as operators:
        yield operators[0]


@pytest.fixture(scope="module")
def matrix(node: Operator, request: pytest.FixtureRequest) -> Iterator[Matrix]:
    with ThreadPoolExecutor(AT_ONCE) as pool:
        made = Matrix(node, pool)
        for item in request.session.items:
            if item.path == request.path and "case" in getattr(item, "fixturenames", ()):
                made.prepare(item.callspec.params["case"])  # type: ignore[attr-defined]
        try:
            yield made
        finally:
            pool.shutdown(cancel_futures=True)


def named(case: Sequence[str]) -> str:
    return "-".join(each or "right" for each in case)


def expect(outcome: Outcome, found: set[tuple[str, str, str]], products: dict[str, str]) -> None:
    """Exactly this is found and recognised, and nothing is left after its remedies."""
    assert outcome.before.found() == found, outcome.before.told()
    assert outcome.before.products() == {"loopback": "relaydesk", **products}
    if not found:
        return
    for each in outcome.before.report["findings"]:
        assert parsed(each["remedy"]).tested, each["code"]
        assert each["effect"]
        assert each["evidence"]
    assert outcome.after is not None
    assert outcome.after.found() == set(), outcome.after.told()
    assert outcome.after.products() == outcome.before.products()


def of_single(matrix: Matrix, name: str, wrong: str) -> Outcome:
    product = PRODUCTS[name]
    outcome = matrix.outcome(name, wrong)
    codes = product.ways[wrong].finds if wrong else ()
    expect(outcome, {(code, "public", product.name) for code in codes}, {"public": product.name})
    return outcome


@pytest.mark.long
@pytest.mark.parametrize("case", [case for case in SINGLE if case not in SLICE], ids=named)
def test_an_edge(matrix: Matrix, case: tuple[str, str]) -> None:
    outcome = of_single(matrix, *case)
    if case[1] == "":
        assert outcome.before.seconds <= 10
        states = outcome.before.states("public")
        left_out = {name for name, state in states.items() if state != "passed"}
        assert left_out == {"tls", "http2", "websocket", "silence-20", "silence-65", "silence-125"}
    if case[1] == "impatient":
        assert outcome.after is not None
        probes = ("silence-2", "silence-4", "silence-6")
        before, after = outcome.before.states("public"), outcome.after.states("public")
        assert [before[probe] for probe in probes] == ["passed", "failed", "failed"]
        assert [after[probe] for probe in probes] == ["passed"] * 3


@pytest.mark.parametrize("case", SLICE, ids=named)
def test_an_edge_of_the_slice(matrix: Matrix, case: tuple[str, str]) -> None:
    of_single(matrix, *case)


@pytest.mark.long
@pytest.mark.parametrize("case", LAYERED, ids=named)
def test_two_layers_in_a_row(matrix: Matrix, case: tuple[str, str, str, str]) -> None:
    inner, outer, *wrong = case
    products = {"inner": PRODUCTS[inner], "public": PRODUCTS[outer]}
    found = {
        (code, layer, product.name)
        for (layer, product), way in zip(products.items(), wrong, strict=True)
        if way
        for code in product.ways[way].finds
    }
    expect(matrix.outcome(*case), found, {layer: product.name for layer, product in products.items()})


def test_what_is_said_to_be_tested_is() -> None:
    apart = {("HAProxy", "compressed")}  # made_possible
    said = {
        (product.name, code)
        for product in PRODUCTS.values()
        for code, remedy in TABLE[product.name].items()
        if remedy.tested
    }
    found = {
        (each.name, code) for each in PRODUCTS.values() for way in each.ways.values() for code in way.finds
    }
    assert said == found | apart


@pytest.mark.parametrize("case", [("printed",), ("elsewhere",)], ids=named)
def test_a_scene_of_the_slice(matrix: Matrix, case: tuple[str]) -> None:
    """What is printed for people mends it as well; another machine sees the same with a nonce."""
    matrix.scene(case[0])


@pytest.mark.long
@pytest.mark.parametrize("case", [("made_possible",), ("silent",), ("refused",)], ids=named)
def test_a_scene(matrix: Matrix, case: tuple[str]) -> None:
    """One layer makes another's fault possible; a port that never answers, one where nobody listens."""
    matrix.scene(case[0])


@pytest.mark.long
@pytest.mark.net
@pytest.mark.skipif(bool(LACKING), reason=LACKING)
@pytest.mark.parametrize("case", [("lost",), ("inside",)], ids=named)
def test_a_scene_with_a_network_of_its_own(matrix: Matrix, case: tuple[str]) -> None:
    """Addresses that lead nowhere; a name that leads to the inside."""
    matrix.scene(case[0])


@pytest.mark.long
def test_a_page_reads_what_the_check_says_that_it_can(matrix: Matrix, node: Operator) -> None:
    """Before every edge that rewrites the exposed list, and after what was printed was done."""
    with Browser() as browser, ExitStack() as stack:
        names = [name for name, product in PRODUCTS.items() if product.path is not None]
        if not names:
            pytest.skip("no edge is installed")
        edges = [stack.enter_context(Edge(PRODUCTS[name], node.bind, "exposed")) for name in names]
        bare = stack.enter_context(Edge(PRODUCTS["nginx"], node.bind, "cors"))
        asked = [(f"{edge.url}/v1/zs/relay", {"method": "POST"}, [MARKER]) for edge in (*edges, bare)]
        *hidden, refused = browser.fetch(*asked)
        assert [(each["status"], each["headers"][MARKER]) for each in hidden] == [(400, None)] * len(edges)
        assert "failed" in refused
        for name, edge in zip(names, edges, strict=True):
            edge.mend(*matrix.outcome(name, "exposed").before.remedies("public"))
        bare.mend(*matrix.outcome("nginx", "cors").before.remedies("public"))
        shown = browser.fetch(*asked)
        assert [(each["status"], each["headers"][MARKER]) for each in shown] == [(400, "1")] * len(asked)
