"""Each module has a test file of its own, at the same place below ``tests``."""

from __future__ import annotations

from pathlib import Path

from tests.support.tree import ROOT, SOURCE, TESTS, modules

# A module without a test file of its own, and the one that drives it. A line goes when its module gets one.
TESTED_BY: dict[str, str] = {
    "relaydesk/__main__.py": "tests/e2e/test_faults.py",
    "relaydesk/config/secret_file.py": "tests/config/test_load.py",
    "relaydesk/config/show.py": "tests/config/test_load.py",
    "relaydesk/config/table.py": "tests/config/test_model.py",
    "relaydesk/config/toml_file.py": "tests/config/test_load.py",
    "relaydesk/core/gateway/anthropic/schema.py": "tests/surfaces/public/test_openapi.py",
    "relaydesk/core/gateway/chat_schema.py": "tests/surfaces/public/test_openapi.py",
    "relaydesk/core/gateway/completions/schema.py": "tests/surfaces/public/test_openapi.py",
    "relaydesk/core/gateway/embeddings/schema.py": "tests/surfaces/public/test_openapi.py",
    "relaydesk/core/gateway/ollama/schema.py": "tests/surfaces/public/test_openapi.py",
    "relaydesk/core/gateway/responses/schema.py": "tests/surfaces/public/test_openapi.py",
    "relaydesk/core/gateway/completions/fields.py": "tests/core/gateway/completions/test_request.py",
    "relaydesk/core/gateway/decode.py": "tests/core/gateway/test_request.py",
    "relaydesk/core/gateway/fields.py": "tests/core/gateway/test_request.py",
    "relaydesk/core/gateway/output.py": "tests/core/gateway/test_chat_output.py",
    "relaydesk/core/gateway/work.py": "tests/core/gateway/test_chat.py",
    "relaydesk/core/gateway/schema/exclusive.py": "tests/core/gateway/schema/test_shapes.py",
    "relaydesk/core/gateway/schema/keywords.py": "tests/core/gateway/schema/test_shapes.py",
    "relaydesk/core/gateway/schema/merge.py": "tests/core/gateway/schema/test_shapes.py",
    "relaydesk/core/gateway/schema/types.py": "tests/core/gateway/schema/test_shapes.py",
    "relaydesk/core/gateway/schema/values.py": "tests/core/gateway/schema/test_shapes.py",
    "relaydesk/core/gateway/schema/writer.py": "tests/core/gateway/schema/test_shapes.py",
    "relaydesk/core/gateway/usage.py": "tests/core/gateway/test_chat_output.py",
    "relaydesk/engine/gateway/held.py": "tests/engine/gateway/test_network_lease.py",
    "relaydesk/core/gateway/ollama/request.py": "tests/core/gateway/ollama/test_chat.py",
    "relaydesk/core/pool/ggml.py": "tests/core/pool/test_gguf.py",
    "relaydesk/core/pool/gguf_reader.py": "tests/core/pool/test_gguf.py",
    "relaydesk/core/pool/kvcache.py": "tests/core/pool/test_fit.py",
    "relaydesk/core/pool/model.py": "tests/store/test_models.py",
    "relaydesk/core/pool/need.py": "tests/core/pool/test_fit.py",
    "relaydesk/surfaces/cli/demo.py": "tests/surfaces/demo/test_demo.py",
    "relaydesk/surfaces/demo/crowd.py": "tests/surfaces/demo/test_demo.py",
    "relaydesk/surfaces/demo/exchange.py": "tests/surfaces/demo/test_demo.py",
    "relaydesk/surfaces/demo/hub.py": "tests/surfaces/demo/test_demo.py",
    "relaydesk/core/hopcheck/model.py": "tests/core/hopcheck/test_decide.py",
    "relaydesk/core/hopcheck/remedies/general.py": "tests/core/hopcheck/remedies/test_table.py",
    "relaydesk/core/hopcheck/remedies/hosted.py": "tests/core/hopcheck/remedies/test_table.py",
    "relaydesk/core/hopcheck/remedies/nginx.py": "tests/core/hopcheck/remedies/test_table.py",
    "relaydesk/core/hopcheck/remedies/remedy.py": "tests/core/hopcheck/remedies/test_table.py",
    "relaydesk/core/hopcheck/remedies/servers.py": "tests/core/hopcheck/remedies/test_table.py",
    "relaydesk/core/view/hopcheck.py": "tests/core/view/test_sections.py",
    "relaydesk/engine/hopcheck/sends.py": "tests/engine/hopcheck/test_run.py",
    "relaydesk/core/view/network.py": "tests/core/view/test_sections.py",
    "relaydesk/core/ledger/port.py": "tests/engine/relay/target/test_desk.py",
    "relaydesk/core/relay/directory/certificate.py": "tests/core/relay/directory/test_record.py",
    "relaydesk/core/relay/directory/envelope.py": "tests/core/relay/directory/test_document.py",
    "relaydesk/core/relay/directory/refusal.py": "tests/core/relay/directory/test_document.py",
    "relaydesk/engine/relay/directory/fetch.py": "tests/engine/relay/directory/test_sources.py",
    "relaydesk/surfaces/cli/directory/group.py": "tests/surfaces/cli/directory/test_keep.py",
    "relaydesk/surfaces/cli/directory/serve.py": "tests/surfaces/cli/directory/test_keep.py",
    "relaydesk/surfaces/cli/operators/decide.py": "tests/surfaces/cli/operators/test_operators.py",
    "relaydesk/surfaces/cli/operators/group.py": "tests/surfaces/cli/operators/test_operators.py",
    "relaydesk/surfaces/cli/operators/keys.py": "tests/surfaces/cli/operators/test_operators.py",
    "relaydesk/surfaces/cli/operators/listing.py": "tests/surfaces/cli/operators/test_operators.py",
    "relaydesk/engine/relay/exchange/passed_over.py": "tests/engine/relay/exchange/test_reserve.py",
    "relaydesk/engine/relay/exchange/sealing_peer.py": "tests/engine/relay/exchange/test_reserve.py",
    "relaydesk/engine/relay/exchange/request.py": "tests/engine/relay/exchange/test_exchange.py",
    "relaydesk/engine/relay/parts.py": "tests/engine/relay/test_service.py",
    "relaydesk/surfaces/network/attestation.py": "tests/surfaces/network/test_listener.py",
    "relaydesk/surfaces/network/details.py": "tests/surfaces/network/test_listener.py",
    "relaydesk/surfaces/network/models.py": "tests/surfaces/network/test_listener.py",
    "relaydesk/core/relay/ref.py": "tests/core/relay/test_eligible.py",
    "relaydesk/engine/relay/asking/answered.py": "tests/engine/relay/asking/test_send.py",
    "relaydesk/engine/relay/asking/ask.py": "tests/engine/relay/asking/test_send.py",
    "relaydesk/engine/relay/asking/judge.py": "tests/engine/relay/asking/test_send.py",
    "relaydesk/core/ports.py": "tests/engine/test_clock.py",
    "relaydesk/core/ledger/compare.py": "tests/core/ledger/test_statement.py",
    "relaydesk/core/ledger/keys.py": "tests/engine/ledger/test_purse.py",
    "relaydesk/core/ledger/paid.py": "tests/engine/ledger/test_purse.py",
    "relaydesk/core/ledger/refusal.py": "tests/engine/ledger/test_ledger.py",
    "relaydesk/core/view/ledger.py": "tests/engine/ledger/test_ledger.py",
    "relaydesk/engine/ledger/statements.py": "tests/core/ledger/test_statement.py",
    "relaydesk/engine/ledger/view.py": "tests/engine/ledger/test_ledger.py",
    "relaydesk/store/ledger_sums.py": "tests/store/test_ledger.py",
    "relaydesk/store/paid.py": "tests/engine/ledger/test_purse.py",
    "relaydesk/surfaces/cli/ledger/balance.py": "tests/surfaces/cli/ledger/test_ledger_verbs.py",
    "relaydesk/surfaces/cli/ledger/credit.py": "tests/surfaces/cli/ledger/test_ledger_verbs.py",
    "relaydesk/surfaces/cli/ledger/group.py": "tests/surfaces/cli/ledger/test_ledger_verbs.py",
    "relaydesk/surfaces/cli/ledger/statement.py": "tests/surfaces/cli/ledger/test_ledger_verbs.py",
    "relaydesk/engine/doctor/finding.py": "tests/surfaces/cli/test_doctor.py",
    "relaydesk/engine/doctor/report.py": "tests/surfaces/cli/test_doctor.py",
    "relaydesk/engine/infer/child/main.py": "tests/engine/infer/test_worker.py",
    "relaydesk/engine/infer/child/params.py": "tests/engine/infer/test_worker.py",
    "relaydesk/engine/infer/connection.py": "tests/engine/infer/test_client.py",
    "relaydesk/engine/infer/engine.py": "tests/engine/infer/test_worker.py",
    "relaydesk/engine/infer/memory.py": "tests/engine/infer/test_worker.py",
    "relaydesk/engine/infer/spec.py": "tests/engine/infer/test_worker.py",
    "relaydesk/engine/pull/hub_child.py": "tests/engine/pull/test_hub.py",
    "relaydesk/engine/pull/listing.py": "tests/engine/pull/test_hub.py",
    "relaydesk/engine/pull/part.py": "tests/engine/pull/test_fetch.py",
    "relaydesk/engine/pull/pulled.py": "tests/engine/pull/test_hub.py",
    "relaydesk/engine/pull/siblings.py": "tests/engine/pull/test_add.py",
    "relaydesk/engine/pull/tether.py": "tests/engine/pull/test_hub.py",
    "relaydesk/engine/tls/acme/faults.py": "tests/engine/tls/acme/test_client.py",
    "relaydesk/engine/tls/acme/net.py": "tests/engine/tls/acme/test_client.py",
    "relaydesk/engine/tls/acme/plan.py": "tests/engine/tls/acme/test_order.py",
    "relaydesk/engine/tls/addresses.py": "tests/engine/tls/test_service.py",
    "relaydesk/engine/tls/files.py": "tests/engine/tls/test_authority.py",
    "relaydesk/engine/tls/leaf.py": "tests/engine/tls/test_clients.py",
    "relaydesk/node_api.py": "tests/contract/test_node_api.py",
    "relaydesk/store/keyring_secrets.py": "tests/store/test_secret_store.py",
    "relaydesk/surfaces/cli/follow.py": "tests/surfaces/cli/model/test_jobs.py",
    "relaydesk/core/gateway/sampling.py": "tests/core/gateway/test_rebuild.py",
    "relaydesk/core/gateway/incoming.py": "tests/surfaces/public/test_quotas.py",
    "relaydesk/engine/gateway/books.py": "tests/surfaces/public/test_quotas.py",
    "relaydesk/engine/access/audit.py": "tests/e2e/test_keys.py",
    "relaydesk/engine/access/service.py": "tests/e2e/test_keys.py",
    "relaydesk/engine/access/key_commands.py": "tests/e2e/test_keys.py",
    "relaydesk/surfaces/cli/key/edit.py": "tests/surfaces/cli/key/test_keys.py",
    "relaydesk/surfaces/cli/key/group.py": "tests/surfaces/cli/key/test_keys.py",
    "relaydesk/surfaces/cli/key/options.py": "tests/surfaces/cli/key/test_keys.py",
    "relaydesk/surfaces/cli/key/show.py": "tests/surfaces/cli/key/test_keys.py",
    "relaydesk/surfaces/cli/lazy.py": "tests/surfaces/cli/test_main.py",
    "relaydesk/surfaces/cli/model/add.py": "tests/surfaces/cli/model/test_model_verbs.py",
    "relaydesk/surfaces/cli/model/discover.py": "tests/surfaces/cli/model/test_model_verbs.py",
    "relaydesk/surfaces/cli/model/edit.py": "tests/surfaces/cli/model/test_model_verbs.py",
    "relaydesk/surfaces/cli/model/listing.py": "tests/surfaces/cli/model/test_model_verbs.py",
    "relaydesk/surfaces/cli/model/load.py": "tests/surfaces/cli/model/test_jobs.py",
    "relaydesk/surfaces/cli/model/pull.py": "tests/surfaces/cli/model/test_jobs.py",
    "relaydesk/surfaces/cli/prompt.py": "tests/surfaces/cli/test_tls.py",
    "relaydesk/surfaces/cli/serve.py": "tests/e2e/test_faults.py",
    "relaydesk/surfaces/cli/settings.py": "tests/surfaces/cli/model/test_fit.py",
    "relaydesk/surfaces/console/filter_bar.py": "tests/surfaces/console/test_app.py",
    "relaydesk/surfaces/console/help.py": "tests/surfaces/console/test_app.py",
    "relaydesk/surfaces/console/leaving.py": "tests/surfaces/console/test_app.py",
    "relaydesk/surfaces/console/notice.py": "tests/surfaces/console/test_app.py",
    "relaydesk/surfaces/console/palette.py": "tests/surfaces/console/test_app.py",
    "relaydesk/surfaces/console/pane.py": "tests/surfaces/console/test_app.py",
    "relaydesk/surfaces/console/list_pane.py": "tests/surfaces/console/panes/hops/test_pane.py",
    "relaydesk/surfaces/console/piece_line.py": "tests/surfaces/console/test_app.py",
    "relaydesk/surfaces/console/session.py": "tests/surfaces/console/test_app.py",
    "relaydesk/surfaces/console/action.py": "tests/surfaces/console/test_bindings.py",
    "relaydesk/surfaces/console/registry.py": "tests/surfaces/console/test_bindings.py",
    "relaydesk/surfaces/console/panes/log/actions.py": "tests/surfaces/console/test_bindings.py",
    "relaydesk/surfaces/cli/console.py": "tests/surfaces/console/test_run.py",
    "relaydesk/engine/relay/outbound/connection.py": "tests/engine/relay/outbound/test_outbound.py",
    "relaydesk/engine/relay/outbound/reply.py": "tests/engine/relay/outbound/test_outbound.py",
    "relaydesk/engine/relay/outbound/request.py": "tests/engine/relay/outbound/test_outbound.py",
    "relaydesk/engine/relay/outbound/unreachable.py": "tests/engine/relay/outbound/test_outbound.py",
    "relaydesk/surfaces/network/body.py": "tests/surfaces/network/test_relay.py",
    "relaydesk/surfaces/network/cors.py": "tests/surfaces/network/test_app.py",
    "relaydesk/surfaces/network/errors.py": "tests/surfaces/network/test_app.py",
    "relaydesk/surfaces/network/health.py": "tests/surfaces/network/test_app.py",
    "relaydesk/surfaces/network/server.py": "tests/surfaces/network/test_app.py",
    "relaydesk/surfaces/network/state.py": "tests/surfaces/network/test_app.py",
    "relaydesk/surfaces/network/sealed.py": "tests/surfaces/network/test_inference.py",
    "relaydesk/engine/relay/target/reserve.py": "tests/surfaces/network/test_reserve.py",
}
# Written, but driven by no test yet. Only a way to shrink: nothing new belongs here.
UNTESTED: frozenset[str] = frozenset({})
MODULES = [path for path in modules(SOURCE) if path.name != "__init__.py"]


def _name(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def _twin(path: Path) -> Path:
    return TESTS / path.relative_to(SOURCE).with_name(f"test_{path.stem.strip('_')}.py")


def test_every_module_has_its_tests() -> None:
    known = {*TESTED_BY, *UNTESTED}
    missing = [
        _name(_twin(path)) for path in MODULES if not _twin(path).exists() and _name(path) not in known
    ]
    assert not missing


def test_packages_hold_little_code() -> None:
    # What stands in an __init__ has no place in the mirror: a docstring, at most a group of commands.
    for path in modules(SOURCE):
        if path.name == "__init__.py":
            assert len(path.read_text().splitlines()) <= 30, _name(path)


def test_the_lists_are_true() -> None:
    for name in (*TESTED_BY, *UNTESTED):
        assert (ROOT / name).exists(), f"{name} is gone: so goes its line"
        assert not _twin(ROOT / name).exists(), f"{name} has its own tests now: so goes its line"
        assert name not in TESTED_BY or (ROOT / TESTED_BY[name]).exists(), name
    assert not (name in TESTED_BY and name in UNTESTED)
