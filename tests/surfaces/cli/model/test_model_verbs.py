"""`relaydesk model add, set, rm, list, discover`: what reaches the node, and what people see."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from relaydesk.core.commands import (
    AddModel,
    DiscoverModels,
    FitModel,
    Outcome,
    RemoveModel,
    SetModel,
    UnloadModel,
)
from relaydesk.core.pool.fit import FitReport
from relaydesk.core.pool.model import ModelSpec
from relaydesk.core.text import SafeText
from relaydesk.core.view.sections import FaultView, MemoryView, ModelsView, ModelView


def test_add_a_file_with_everything(
    cli: Any, node: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    options = "--name tiny --ctx 4096 --slots 2 --kv-k q8_0 --kv-v Q8_0 --template t.jinja --draft d.gguf"
    more = "--projector p.gguf --gpu-layers -1 --keep-alive -1 --preload --no-spill --host-only"
    result = cli("model", "add", "m.gguf", *options.split(), *more.split(), "--alias", "a", "--alias", "b,c")
    assert result.code == 0
    assert "tiny is registered: `relaydesk model fit tiny` says whether it fits" in result.out
    path = str(tmp_path / "m.gguf")
    assert node.seen[:1] == [
        AddModel(
            ModelSpec(
                name="tiny",
                path=path,
                source=path,
                aliases=("a", "b", "c"),
                ctx=4096,
                slots=2,
                kv_k="q8_0",
                kv_v="q8_0",
                template=str(tmp_path / "t.jinja"),
                draft=str(tmp_path / "d.gguf"),
                projector=str(tmp_path / "p.gguf"),
                gpu_layers=-1,
                keep_alive_s=-1,
                preload=True,
                spill=False,
                host_only=True,
            )
        )
    ]


def test_what_strangers_pay_is_typed_in_usd(cli: Any, node: Any) -> None:
    node.answer(SetModel, {"spec": {"offer": True, "input_rate": 70_000}, "note": ""})
    result = cli("model", "set", "tiny", "--offer", "--input-price", "0.07", "output-price=1.0000001")
    assert node.seen[-1].changes == {"offer": True, "input_rate": 70_000, "output_rate": 1_000_001}
    assert result.out.splitlines() == [
        "tiny: offer → yes",
        "tiny: input-price → 0.07 USD",
        "tiny: output-price → 1.000001 USD",
    ]
    assert cli("model", "set", "tiny", "--no-offer").code == 0
    assert node.seen[-1].changes == {"offer": False}
    for wrong in ("-1", "free", "1e10", "nan"):
        result = cli("model", "set", "tiny", "--output-price", wrong)
        assert result.code == 2 and repr(wrong) in result.err


COLD = SafeText("it is not loaded: strangers never load a model")


def test_an_offer_of_a_cold_model_says_what_is_missing(cli: Any, node: Any) -> None:
    row = ModelView(
        "tiny", "cold", True, SafeText(""), "host", 99, offer=True, unoffered=COLD, keep_alive_s=900
    )
    node.views["models"] = ModelsView(MemoryView("ram", 1, 1), (row,))
    said = (
        "tiny is not offered until it is loaded: `relaydesk model load tiny`; "
        "`relaydesk model set tiny --preload --keep-alive forever` keeps it so"
    )
    assert said in " ".join(cli("model", "set", "tiny", "--offer").out.split())
    assert said in " ".join(cli("status").out.split())
    assert "not offered" not in cli("model", "set", "tiny", "--slots", "2").out


def test_the_list_shows_offers_where_there_are_any(cli: Any, node: Any) -> None:
    rows = (
        ModelView(
            "dear", "warm", True, SafeText(""), "host", 99, offer=True, input_rate=70_000, output_rate=200_000
        ),
        ModelView("shut", "cold", True, SafeText(""), "host", 99, offer=True, unoffered=COLD),
        ModelView("mine", "cold", True, SafeText(""), "host", 99),
    )
    node.views["models"] = ModelsView(MemoryView("ram", 1, 1), rows)
    head, *lines = cli("model", "list").out.splitlines()
    assert "OFFER, USD" in head
    assert "0.07/0.2 " in lines[0] and "not now" not in lines[0]
    assert "free not now" in lines[1]
    assert " no " in lines[2]
    assert "shut is not offered until it is loaded" in "\n".join(lines)


def test_without_a_name_the_node_gives_one(cli: Any, node: Any) -> None:
    node.answer(AddModel, ModelSpec(name="smollm2"))
    result = cli("model", "add", "/models/SmolLM2-135M-Instruct.Q4_1.gguf")
    assert "relaydesk model fit smollm2" in result.out
    assert node.seen[0].spec == ModelSpec(
        name="",
        path="/models/SmolLM2-135M-Instruct.Q4_1.gguf",
        source="/models/SmolLM2-135M-Instruct.Q4_1.gguf",
    )


def test_add_another_server(cli: Any, node: Any) -> None:
    assert cli("model", "add", "https://gpu.lan:8000", "--url-model", "qwen3", "--keep-alive", "0").code == 0
    spec = node.seen[0].spec
    assert (spec.kind, spec.url, spec.url_model, spec.name) == (
        "url",
        "https://gpu.lan:8000",
        "qwen3",
        "qwen3",
    )
    assert (spec.path, spec.keep_alive_s) == ("", 0)


@pytest.mark.parametrize(
    ("url", "name"),
    [
        ("http://127.0.0.1:8000/v1", "server"),
        ("http://[::1]:8000/v1", "server"),
        ("http://localhost:8000", "server"),
        ("http://gpu.lan:8000/v1", "gpu.lan"),
    ],
)
def test_a_servers_name_is_no_number_and_the_next_step_works(
    cli: Any, node: Any, url: str, name: str
) -> None:
    result = cli("model", "add", url)
    assert (
        result.out == f"{name} is registered: `relaydesk model load {name}` says whether its server answers\n"
    )
    assert node.seen[0].spec.name == name


@pytest.mark.parametrize(
    ("source", "says"),
    [
        (
            "ftp://host/x.gguf",
            "speaks OpenAI's API: give one that begins with http",
        ),
        ("", "the path is empty: give a GGUF file or a server's URL"),
        ("smollm2", "smollm2 is no file: fetch it with `relaydesk model pull smollm2`"),
        ("hf:owner/repo", "fetch it with `relaydesk model pull hf:owner/repo`"),
        ("localhost:8000/v1", "a server is written http://localhost:8000/v1"),
    ],
)
def test_what_is_neither_a_file_nor_a_server(cli: Any, node: Any, source: str, says: str) -> None:
    result = cli("model", "add", source)
    assert (result.code, result.out, node.seen) == (2, "", [])
    assert says in result.err


def test_a_context_beyond_the_training_is_warned_of(cli: Any, node: Any) -> None:
    report = FitReport(
        model="tiny", fits=True, ever_fits=True, constraint="", reason="", components=(), need_mib=1,
        free_mib=2, total_mib=3, ctx=9000, slots=4, trained_ctx=8192,
    )  # fmt: skip
    node.answer(FitModel, report)
    for args in (("set", "tiny", "ctx=9000"), ("add", "/x.gguf", "--name", "tiny", "--ctx", "9000")):
        result = cli("model", *args)
        assert result.code == 0
        assert "warning: 9000 tokens are more than the 8192 that tiny was trained for" in result.err
    assert cli("model", "set", "tiny", "slots=1").err == ""


def test_url_options_do_not_go_with_a_file(cli: Any, node: Any) -> None:
    result = cli("model", "add", "m.gguf", "--url-model", "x")
    assert (result.code, node.seen) == (2, [])


TINY = ModelView(
    "tiny", "warm", True, SafeText(""), "host", 2048, ("t",), slots=4, need_mib=180, keep_alive_s=900
)


def test_set_by_pairs_and_options(cli: Any, node: Any) -> None:
    node.views["models"] = ModelsView(MemoryView("ram", 1, 1), (TINY,))
    result = cli(
        "model", "set", "tiny", "ctx=8192", "keep-alive=1h30m", "preload=no", "alias=", "--slots", "1"
    )
    assert result.code == 0
    changes = {"ctx": 8192, "keep_alive_s": 5400, "preload": False, "aliases": [], "slots": 1}
    assert node.seen[:1] == [SetModel("tiny", changes)]
    assert result.out.splitlines() == [
        "tiny: alias t → none",
        "tiny: ctx 2048 → 8192",
        "tiny: slots 4 → 1",
        "tiny: keep-alive 15m → 1h30m",
        "tiny: preload is no already",
    ]


def test_what_was_is_what_the_node_says_it_was(cli: Any, node: Any) -> None:
    node.answer(SetModel, {"old": {"kv_k": "f16"}, "spec": {"kv_k": "q8_0"}})
    assert cli("model", "set", "tiny", "kv-k=q8_0").out == "tiny: kv-k f16 → q8_0\n"
    node.answer(SetModel, {"spec": {"kv_k": "q8_0"}})
    assert cli("model", "set", "tiny", "kv-k=q8_0").out == "tiny: kv-k → q8_0\n"


def test_what_the_node_adds_is_said(cli: Any, node: Any) -> None:
    node.views["models"] = ModelsView(MemoryView("ram", 1, 1), (TINY,))
    node.answer(SetModel, {"spec": {}, "note": "it counts from the next load"})
    assert cli("model", "set", "tiny", "slots=2").out == (
        "tiny: slots 4 → 2\n"
        "tiny is loaded as it was: `relaydesk model unload tiny`, and its next load takes this up\n"
    )
    node.answer(UnloadModel, {"name": "tiny", "note": "it was not loaded"})
    assert cli("model", "unload", "tiny").out == "tiny: it was not loaded\n"
    node.answer(RemoveModel, {"name": "tiny", "deleted": ["/m/a.gguf"]})
    assert cli("model", "rm", "tiny", "--yes").out == "tiny is removed\n  deleted /m/a.gguf\n"
    node.answer(RemoveModel, {"name": "tiny", "deleted": []})
    assert cli("model", "rm", "tiny", "--yes").out == "tiny is removed; no file was deleted\n"


def test_rm_without_a_terminal_needs_yes(cli: Any, node: Any) -> None:
    node.views["models"] = ModelsView(MemoryView("ram", 1, 1), (TINY,))
    result = cli("model", "rm", "t")  # by its alias
    assert (result.code, node.seen) == (4, [])
    assert result.err.startswith(
        "relaydesk: `relaydesk model rm t` forgets tiny: this loses the registration"
    )
    assert result.err.endswith("add `--yes` if that is wanted\n")
    assert cli("model", "rm", "tiny", "--yes").code == 0
    assert node.seen == [RemoveModel("tiny")]


def test_rm_asks_nothing_about_a_model_that_is_not_there(cli: Any, node: Any) -> None:
    async def absent(_command: Any) -> Outcome:
        return Outcome(ok=False, fault=FaultView("model_not_found", SafeText("there is no model 'nope'")))

    node.answers[RemoveModel] = absent
    result = cli("model", "rm", "nope")
    assert (result.code, result.err) == (1, "relaydesk: there is no model 'nope'\n")


def test_list_for_people_and_programs(cli: Any, node: Any) -> None:
    fault = FaultView("bad_model_file", SafeText("the file is gone"), SafeText("add it again"))
    rows = (
        ModelView(
            "tiny", "loading", True, SafeText(""), "host", 2048, ("t",), progress=0.4, slots=4, need_mib=180,
            quantization=SafeText("Q4_1"), keep_alive_s=900, source=SafeText("smollm2"),
        ),
        ModelView("gone", "unavailable", False, SafeText("no"), "", 0, fault=fault, keep_alive_s=-1),
    )  # fmt: skip
    node.views["models"] = ModelsView(MemoryView("gpu", 24_000, 12_000), rows)
    out = cli("model", "list").out
    for text in (
        "tiny (t)",
        "▲ loading 40%",
        "~180 MiB",
        "Q4_1",
        "15 min",
        "smollm2",
        "✗ unavailable",
        "for ever",
    ):
        assert text in out
    assert "gone: the file is gone: add it again" in out
    assert "GPU memory: 12000 MiB free of 24000 MiB" in out
    document = cli("model", "list", "--json").json
    assert [row["name"] for row in document["models"]] == ["tiny", "gone"]
    assert document["memory"]["free_mib"] == 12_000


def test_the_list_fits_80_columns(
    cli: Any, node: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    rows = (
        ModelView(
            "tiny", "unavailable", False, SafeText('"tiny" needs about 9 MB ' + "and more " * 12), "", 99,
            slots=4, need_mib=180, quantization=SafeText("Q4_1"), keep_alive_s=900,
            source=SafeText(f"{tmp_path}/models/a/very/long/path/to/SmolLM2-135M-Instruct.Q4_1.gguf"),
        ),
        ModelView("large", "cold", True, SafeText(""), "host", 0, need_mib=48_000, keep_alive_s=900),
    )  # fmt: skip
    node.views["models"] = ModelsView(MemoryView("ram", 64_000, 60_000), rows)
    out = cli("model", "list").out
    assert max(map(len, out.splitlines())) <= 80
    assert "truct.Q4_1.gguf" in out
    assert "`relaydesk model fit tiny`" in " ".join(out.split())
    assert "MiB" not in out and "46.9 GiB" in out and "58.6 GiB free of 62.5 GiB" in out


def test_discover_prints_lines_to_type(cli: Any, node: Any) -> None:
    found = [
        {"name": "qwen3", "path": "/a b/q.gguf", "size_bytes": 5 << 30, "source": "ollama"},
        {"name": "odd", "path": "/x\x1b[2J.gguf", "size_bytes": 1, "source": "hub"},
        {"name": "here", "path": "/h.gguf", "size_bytes": 1, "source": "hub", "registered": True},
    ]
    node.answer(DiscoverModels, found)
    out = cli("model", "discover").out
    assert "qwen3  5.0 GiB  ollama\n  relaydesk model add '/a b/q.gguf' --name qwen3\n" in out
    assert "\x1b" not in out
    assert "here  1 B  hub\n  registered already\n" in out
    assert cli("model", "discover", "--json").json["models"][0]["path"] == "/a b/q.gguf"


def test_discover_nothing(cli: Any, node: Any) -> None:
    node.answer(DiscoverModels, [])
    assert "relaydesk model pull smollm2" in cli("model", "discover").out
