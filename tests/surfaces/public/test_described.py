from __future__ import annotations

import jsonschema

from relaydesk.surfaces.public.app import route_table
from relaydesk.surfaces.public.described import DESCRIBED
from relaydesk.surfaces.public.middleware import OPEN_PATHS
from relaydesk.surfaces.public.openapi import operations

ROUTES = {f"{method} {path}" for method, path in operations(route_table())}


def test_every_route_has_its_row_and_every_row_its_route() -> None:
    missing = ROUTES - set(DESCRIBED)
    assert not missing, f"write a row in relaydesk/surfaces/public/described.py for {sorted(missing)}"
    assert not set(DESCRIBED) - ROUTES


def test_rows_say_which_routes_are_open() -> None:
    open_paths = {name.split()[1] for name, row in DESCRIBED.items() if row.open}
    assert open_paths == OPEN_PATHS


def test_schemas_are_schemas_and_summaries_are_short() -> None:
    for name, row in DESCRIBED.items():
        for schema in (row.request, row.answer):
            if schema is not None:
                jsonschema.Draft202012Validator.check_schema(schema)
        assert 0 < len(row.summary) < 80, name
        assert not row.summary.endswith(".")
        takes_a_body = name.startswith("POST") and row.answer is not None
        assert (row.request is not None) is takes_a_body, name
