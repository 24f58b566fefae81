"""`relaydesk status`: the document as it is, the page for people, and its time budget."""

from __future__ import annotations

import resource
import subprocess
import sys
from typing import Any

import msgspec
import pytest

from relaydesk.core.text import SafeText
from relaydesk.core.view.network import NetworkView
from relaydesk.core.view.node_view import WorkersView
from relaydesk.core.view.sections import Alert, AlertsView, MemoryView, ModelsView, ModelView, WorkerView
from relaydesk.surfaces.control import light

WARM = ModelView("smollm2", "warm", True, SafeText(""), "host", 2048, in_flight=2, queued=1)
UNFIT = ModelView("big", "unavailable", False, SafeText('"big" needs about 48000 MB'), "", 8192)


def fill(node: Any) -> None:
    node.views["models"] = ModelsView(MemoryView("ram", 16_000, 9_000), (WARM, UNFIT))
    node.views["workers"] = WorkersView((WorkerView("smollm2", "xllamacpp", "warm", "unix:/w", 99, 180),))
    alert = Alert("disk_low", "warning", SafeText("the disk is nearly full"), SafeText("free some space"), 1)
    node.views["alerts"] = AlertsView((alert,))


def test_json_is_the_nodes_document_on_one_line(cli: Any, node: Any) -> None:
    fill(node)
    result = cli("status", "--json")
    assert result.code == 0
    assert result.out.count("\n") == 1
    direct = msgspec.json.decode(light.request(node.socket, "GET", "/status")[1])
    assert {**result.json, "uptime_s": 0} == {**direct, "uptime_s": 0}
    assert {"operator", "node", "listening", "fingerprint", "uptime_s", "members", "relays"} <= set(
        result.json
    )
    assert result.json["workers"][0]["memory_mb"] == 180


def test_people_see_what_matters(cli: Any, node: Any) -> None:
    fill(node)
    out = cli("status").out
    assert "shed is ready · up 1 h 2 min" in out
    for text in ("https://0.0.0.0:8383", "AB:CD:EF", "/state/tls/ca.pem", "● warm", "2 running, 1 waiting"):
        assert text in out
    assert '  "big" needs about 48000 MB: `relaydesk model fit big` says what would help\n' in out
    assert "PRIVATE ADDRESS" not in out and "unix:/w" not in out
    assert "warning: the disk is nearly full" in out
    assert "next: free some space" in out
    assert "\x1b" not in out


def test_the_page_fits_80_columns(
    cli: Any, node: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Any
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    fill(node)
    print_ = ":".join(f"{number:02X}" for number in range(32))
    node.views["meta"] = msgspec.structs.replace(
        node.views["meta"], fingerprint=print_, ca_path=f"{tmp_path}/state/tls/ca.pem"
    )
    alert = Alert("x", "error", SafeText("word " * 40), SafeText("next step " * 20), 1)
    node.views["alerts"] = AlertsView((alert,))
    lines = cli("status").out.splitlines()
    assert max(map(len, lines)) <= 80
    first = next(at for at, line in enumerate(lines) if "fingerprint" in line)
    assert (lines[first] + lines[first + 1]).replace(" ", "") == "fingerprint" + print_
    assert "  CA file     ~/state/tls/ca.pem" in lines


def test_a_servers_model_has_no_context_of_ours(cli: Any, node: Any) -> None:
    far = ModelView("far", "cold", True, SafeText(""), "server", 0, kind="url")
    node.views["models"] = ModelsView(MemoryView("ram", 1, 1), (far,))
    assert "far    ○ cold  –        server  –" in cli("status").out


UP = NetworkView(on=True, listening=("http://127.0.0.1:8384",), public_url=SafeText("https://n.example"))


@pytest.mark.parametrize(
    ("view", "lines"),
    [
        (NetworkView(), ""),
        (UP, "network     http://127.0.0.1:8384\n  public URL  https://n.example\n  listed      yes\n"),
        (
            msgspec.structs.replace(UP, unpublished=SafeText("nobody admits it")),
            "listed      no: nobody admits it\n",
        ),
        (
            NetworkView(on=True, problem=SafeText("no door: open one")),
            "network     closed: no door: open one\n",
        ),
    ],
)
def test_the_place_in_the_network(cli: Any, node: Any, view: NetworkView, lines: str) -> None:
    node.views["network"] = view
    out = cli("status").out
    assert (f"\n  {lines}" in out) if lines else ("  network" not in out)
    assert cli("status", "--json").json["network"]["on"] == view.on


def test_no_model_says_how_to_get_one(cli: Any, node: Any) -> None:
    assert "relaydesk model pull smollm2" in cli("status").out


def test_no_node_is_code_3_and_says_where_it_looked(cli: Any, state_dir: Any) -> None:
    result = cli("status")
    assert (result.code, result.out) == (3, "")
    assert result.err == (
        f"relaydesk: no node is running (looked at {state_dir}/control.sock, "
        f"{state_dir.parent}/system/control.sock): start one with `relaydesk serve`\n"
    )


def test_takes_200_ms_and_imports_nothing_heavy(node: Any) -> None:
    code = (
        "import sys; from relaydesk.surfaces.cli.main import run;"
        "code = run(['relaydesk', 'status', '--json']);"
        "heavy = {'aiohttp', 'asyncio', 'cryptography', 'huggingface_hub', 'textual', 'numpy', 'xllamacpp',"
        "'psutil', 'uvloop'};"
        "print(code, sorted(heavy & set(sys.modules)), file=sys.stderr)"
    )
    spent = []
    for _ in range(3):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        spent.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
        assert done.stderr == "0 []\n"
    # Processor time, which is what it costs on an idle machine; the wall clock shows what else runs here.
    assert min(spent) < 0.2, spent
