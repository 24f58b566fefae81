"""Client-side bug reports about such servers (ids: B01 …), and the tests that hold each of them."""

from __future__ import annotations

import ast

import pytest

from tests.support.tree import ROOT

SCRIPTED = "tests/surfaces/public/test_reports.py"
E2E = "tests/e2e/test_client_reports.py"
NODE = "tests/e2e/test_node_clients.py"
OLLAMA = "tests/e2e/test_ollama_libraries.py"
GENERATE = "tests/surfaces/public/test_generate.py"
FAULTS = "tests/e2e/test_faults.py"
CORS = "tests/surfaces/public/test_cors.py"
QUOTAS = "tests/surfaces/public/test_quotas.py"
BODY = "tests/surfaces/public/test_body.py"
AMENDS = "tests/surfaces/public/test_amends.py"

HELD_BY: dict[str, tuple[str, ...]] = {
    "B01": (
        f"{SCRIPTED}::test_b01_two_calls_stay_two",
        f"{SCRIPTED}::test_b01_arguments_in_the_history_that_are_no_json",
        f"{NODE}::test_openai_keeps_two_calls_apart",
        "tests/core/gateway/test_toolcalls.py::test_arguments_join_to_what_each_call_said",
    ),
    "B02": (
        f"{SCRIPTED}::test_b02_why_an_answer_ended",
        f"{SCRIPTED}::test_b02_calls_end_with_stop_in_ollamas_words",
        f"{AMENDS}::test_b02_calls_that_the_engine_ended_with_stop",
    ),
    "B03": (
        f"{GENERATE}::test_a_client_that_leaves_in_any_phase_frees_its_place",
        f"{FAULTS}::test_leaving_frees_the_slot_within_a_second",
        f"{FAULTS}::test_leaving_during_a_long_prompt_frees_the_slot_within_two_seconds",
        f"{NODE}::test_openai_leaves_a_stream_and_the_hub_stops",
    ),
    "B05": (
        f"{SCRIPTED}::test_b05_a_failure_behind_the_headers_is_the_last_frame",
        f"{FAULTS}::test_a_killed_worker_ends_its_stream_and_the_next_request_is_served",
        f"{SCRIPTED}::test_b05_a_failure_in_a_stream_of_lines_is_the_last_line",
        f"{NODE}::test_openai_throws_what_fails_behind_the_headers",
        f"{OLLAMA}::test_js_throws_what_fails_behind_the_headers",
        f"{NODE}::test_ai_sdk_is_told_what_fails_behind_the_headers",
    ),
    "B06": (
        f"{SCRIPTED}::test_b06_usage_is_said_once_and_only_where_asked",
        f"{NODE}::test_openai_is_told_the_usage_where_it_asked_and_once",
        f"{NODE}::test_openai_completes_bare_prompts",
        "tests/e2e/test_accounting.py::test_a_stream_that_did_not_ask_is_counted_and_shows_nothing",
    ),
    "B07": (
        f"{E2E}::test_b07_an_answer_that_fills_the_context_ends_with_length",
        "tests/e2e/test_accounting.py::test_an_overflow_is_a_400_with_both_numbers",
        f"{GENERATE}::test_an_overflow_of_a_warm_model_is_a_400",
        f"{NODE}::test_openai_is_told_of_an_overflow_by_status",
        f"{OLLAMA}::test_js_is_told_of_an_overflow_by_status_in_a_stream_too",
    ),
    "B08": (
        f"{SCRIPTED}::test_b08_a_byte_that_is_no_character_becomes_one_mark",
        f"{E2E}::test_b08_characters_of_several_tokens_come_whole",
        f"{AMENDS}::test_b08_characters_cut_in_two_come_whole",
        "tests/core/gateway/test_sse.py::test_the_events_do_not_depend_on_the_cuts",
    ),
    "B09": (
        f"{CORS}::test_a_preflight_needs_no_key",
        f"{CORS}::test_a_foreign_origin_gets_no_header_anywhere",
        f"{CORS}::test_only_a_genuine_preflight_passes_the_key",
        f"{CORS}::test_every_answer_may_be_read_by_an_allowed_page",
    ),
    "B11": (f"{SCRIPTED}::test_b11_nothing_on_the_way_has_a_reason_to_hold_a_stream_back",),
    "B12": (
        f"{E2E}::test_b12_the_text_before_a_stop_text_and_a_near_miss",
        f"{E2E}::test_b12_in_every_dialect",
        f"{AMENDS}::test_b12_stop_texts_whatever_the_engine_makes_of_them",
        f"{NODE}::test_openai_gets_the_text_before_a_stop_text_and_no_more",
        "tests/core/gateway/test_request.py::test_stop_in_every_spelling",
    ),
    "B13": (f"{SCRIPTED}::test_b13_legal_assistant_messages",),
    "B14": (
        f"{SCRIPTED}::test_b14_developer_is_system_and_an_invented_role_is_named",
        "tests/core/gateway/test_messages.py::test_leading_system_messages_become_one_and_later_ones_stay",
    ),
    "B15": (
        f"{SCRIPTED}::test_b15_lines_are_never_empty_however_long_the_silence",
        f"{GENERATE}::test_headers_of_a_cold_stream_come_at_once_and_silence_is_only_comments",
        f"{FAULTS}::test_a_cold_stream_has_headers_within_a_second_and_heartbeats",
        f"{NODE}::test_openai_reads_text_whatever_is_between_it",
        f"{NODE}::test_ai_sdk_reads_text_whatever_is_between_it",
        f"{OLLAMA}::test_js_reads_text_whatever_is_between_it",
    ),
    "B16": (
        f"{E2E}::test_b16_prompt_tokens_are_the_same_with_and_without_the_cache",
        f"{OLLAMA}::test_js_streams_what_it_is_told_whole",
    ),
    "B18": (
        f"{SCRIPTED}::test_b18_unknown_and_null_fields_pass_and_wrong_types_do_not",
        f"{NODE}::test_openai_may_send_null_and_what_we_do_not_know_but_no_wrong_type",
    ),
    "B19": (
        f"{E2E}::test_b19_a_schema_is_obeyed",
        f"{E2E}::test_b19_a_format_without_a_schema_is_refused",
        f"{AMENDS}::test_a_schema_that_is_not_kept_to_is_refused_by_its_keyword",
    ),
    "B21": (
        f"{NODE}::test_openai_gets_vectors_by_its_own_default",
        f"{NODE}::test_openai_is_told_which_input_cannot_be_embedded",
        f"{NODE}::test_ai_sdk_completes_bare_prompts_and_gets_vectors",
    ),
    "B22": (
        f"{BODY}::test_nearly_eight_mib_pass",
        f"{BODY}::test_more_is_refused_by_its_announced_length_before_it_is_sent",
        f"{BODY}::test_more_is_refused_where_no_length_was_announced",
        f"{BODY}::test_a_small_bomb_is_refused_by_what_it_becomes",
        f"{BODY}::test_nobody_is_told_to_go_on_in_vain",
    ),
    "B24": (
        f"{QUOTAS}::test_three_refusals_with_three_codes",
        f"{QUOTAS}::test_headers_say_how_the_key_stands",
        f"{GENERATE}::test_the_three_refusals_byte_for_byte",
        f"{NODE}::test_openai_does_not_hammer_where_a_quota_is_spent",
    ),
    "B25": (
        "tests/surfaces/public/test_models.py::test_any_name_is_found_escaped_or_not",
        "tests/surfaces/public/test_models.py::test_an_alias_is_the_model_itself",
        "tests/surfaces/public/test_models.py::test_an_unknown_model_is_404_in_the_dialects_shape",
        f"{NODE}::test_openai_lists_and_finds_models_and_says_which_are_not_there",
    ),
    "B26": (
        f"{SCRIPTED}::test_b26_no_slot_is_lost_however_requests_end",
        f"{QUOTAS}::test_no_way_of_ending_leaks_a_place_or_a_token",
    ),
    "B28": (f"{QUOTAS}::test_a_burst_over_both_dialects_never_has_more_than_its_limit_at_the_engine",),
    "B31": ("tests/e2e/test_sharing.py::test_the_longest_unused_makes_room_and_one_in_use_is_waited_for",),
    "B33": (
        f"{SCRIPTED}::test_b33_a_load_that_takes_too_long_is_a_503_with_a_time",
        f"{GENERATE}::test_headers_of_a_cold_stream_come_at_once_and_silence_is_only_comments",
        f"{GENERATE}::test_what_fails_after_the_headers_is_one_frame_and_the_end",
    ),
    "B34": (
        "tests/engine/tls/test_clients.py::test_node_fetch_with_extra_ca",
        "tests/engine/tls/test_clients.py::test_python_connects_by_every_name_and_to_both_families",
        "tests/engine/tls/test_clients.py::test_the_leaf_is_what_every_client_demands",
        "tests/engine/tls/test_listener.py::test_plain_http_gets_a_readable_answer",
        "tests/e2e/test_langchain.py::test_a_chat_whole_and_streamed",
    ),
    "B35": (
        f"{SCRIPTED}::test_b35_a_key_in_every_spelling",
        f"{SCRIPTED}::test_b35_what_is_no_key_is_a_401_that_names_nothing",
    ),
    "B37": (f"{SCRIPTED}::test_b37_a_second_request_waits_and_the_first_ends_by_itself",),
}

REPORTS = (
    *("B01", "B02", "B03", "B05", "B06", "B07", "B08", "B09", "B11", "B12", "B13", "B14", "B15", "B16"),
    *("B18", "B19", "B21", "B22", "B24", "B25", "B26", "B28", "B31", "B33", "B34", "B35", "B37"),
)


def test_every_report_is_held() -> None:
    assert sorted(HELD_BY) == list(REPORTS)


@pytest.mark.parametrize("report", HELD_BY)
def test_the_tests_of_a_report_are_there(report: str) -> None:
    for entry in HELD_BY[report]:
        path, _, name = entry.partition("::")
        tree = ast.parse((ROOT / path).read_text())
        functions = [n.name for n in tree.body if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef)]
        assert name in functions, entry
        if path in (SCRIPTED, E2E):
            assert name.startswith(f"test_{report.lower()}_")
