"""Traefik, Envoy, Kong, and what is only reached through somebody's console: none of them was tested here."""

from __future__ import annotations

from typing import Final

from relaydesk.core.hopcheck.remedies.remedy import EXPOSED, Remedy

_TRAEFIK: Final = "the dynamic configuration of the router that leads to the node"
TRAEFIK: Final = {
    "marker_removed": Remedy(
        "A `headers` middleware with an empty value removes a header.",
        "yaml",
        _TRAEFIK,
        'X-Zs-Relay-Hop: ""',
    ),
    "marker_not_exposed": Remedy(
        "",
        "yaml",
        _TRAEFIK,
        "accessControlExposeHeaders",
        "http:\n  middlewares:\n    relay-cors:\n      headers:\n        accessControlExposeHeaders:\n"
        + "".join(f"          - {name.strip()}\n" for name in EXPOSED.split(",")),
    ),
    "stream_buffered": Remedy("Take the `buffering` middleware off the router.", "yaml", _TRAEFIK),
    "compressed": Remedy("Take the `compress` middleware off the router.", "yaml", _TRAEFIK),
    "body_limited": Remedy("", "yaml", _TRAEFIK, "maxRequestBodyBytes"),
    "answer_replaced": Remedy("Take the `errors` middleware off the router.", "yaml", _TRAEFIK),
}

_ENVOY: Final = "the `route` to the node"
ENVOY: Final = {
    "marker_removed": Remedy("", "yaml", _ENVOY, "- X-Zs-Relay-Hop\n- x-zs-relay-hop"),
    "silence_cut": Remedy("", "yaml", _ENVOY, "timeout:\nidle_timeout:", "timeout: 0s\nidle_timeout: 310s"),
    "body_limited": Remedy("", "yaml", _ENVOY, "", "per_request_buffer_limit_bytes: 13631488"),
    "stream_buffered": Remedy("Take the `buffer` filter out of `http_filters`.", "yaml", _ENVOY),
    "compressed": Remedy("Take the `compressor` filter out of `http_filters`.", "yaml", _ENVOY),
}

_KONG: Final = "the declarative configuration of the service"
KONG: Final = {
    "marker_removed": Remedy(
        "Take X-Zs-Relay-Hop out of the plug-in `response-transformer` (`remove.headers`).", "yaml", _KONG
    ),
    "marker_not_exposed": Remedy(
        "The plug-in `cors` sets the list itself.",
        "yaml",
        _KONG,
        "",
        "plugins:\n- name: cors\n  config:\n    exposed_headers:\n"
        + "".join(f"    - {name.strip()}\n" for name in EXPOSED.split(",")),
    ),
    "stream_buffered": Remedy("", "yaml", _KONG, "response_buffering: true", "response_buffering: false"),
    "body_limited": Remedy(
        "Raise `allowed_payload_size` of the plug-in `request-size-limiting`.", "yaml", _KONG
    ),
    "silence_cut": Remedy("", "yaml", _KONG, "read_timeout", "read_timeout: 310000"),
}

CLOUDFLARE: Final = {
    "marker_removed": Remedy(
        "Rules > Transform Rules > Modify Response Header: take out the rule that removes X-Zs-Relay-Hop (or "
        "headers in general); then Security > WAF: no rule may remove or replace responses below /v1/. A "
        "tunnel (cloudflared) removes nothing by itself."
    ),
    "marker_not_exposed": Remedy(
        "Rules > Transform Rules > Modify Response Header: take out the rule that sets "
        f"Access-Control-Expose-Headers, or set it to: {EXPOSED}"
    ),
    "edge_answers": Remedy(
        "Security > WAF > Custom rules: a rule that skips the managed rules, bot fight mode and challenges "
        'for `starts_with(http.request.uri.path, "/v1/")`.'
    ),
    "answer_replaced": Remedy("Take out Custom Pages for errors of the origin; serve none below /v1/."),
    "silence_cut": Remedy(
        "A proxied name answers 524 after 100 s of silence; only the Enterprise plan changes that. Set the "
        "name to DNS only, or use a tunnel."
    ),
    "body_limited": Remedy("Network > Maximum Upload Size; a WAF rule may set a lower one."),
    "compressed": Remedy("Rules > Compression Rules: no compression where the path begins with /v1/."),
    "stream_buffered": Remedy("Take out a Worker or a rule that reads responses below /v1/ as a whole."),
}
CLOUDFRONT: Final = {
    "marker_removed": Remedy(
        "Take X-Zs-Relay-Hop out of `RemoveHeadersConfig` of the behaviour's response headers policy, and "
        "let "
        "no function on viewer or origin response remove it."
    ),
    "marker_not_exposed": Remedy(
        f"Set `AccessControlExposeHeaders` of the response headers policy to: {EXPOSED}; or take the CORS "
        "part out of the policy."
    ),
    "request_headers_lost": Remedy(
        "Give the behaviour the origin request policy `AllViewerExceptHostHeader`, and all HTTP methods."
    ),
    "edge_answers": Remedy("Allow all HTTP methods for the behaviour of /v1/*, and turn caching off there."),
    "answer_replaced": Remedy("Take out the custom error responses of the distribution."),
    "silence_cut": Remedy("Raise the origin response timeout; above 60 s it is a quota to be asked for."),
    "compressed": Remedy("Turn `Compress` off for the behaviour of /v1/*."),
}
GATEWAY: Final = {
    "marker_removed": Remedy(
        "Gateways pass listed headers alone: add X-Zs-Relay-Hop to the integration's response headers "
        "(`method.response.header.X-Zs-Relay-Hop` mapped from `integration.response.header.X-Zs-Relay-Hop`), "
        "or use a proxy integration, which passes all."
    ),
    "marker_not_exposed": Remedy(f"Set the exposed headers of its CORS settings to: {EXPOSED}"),
    "body_limited": Remedy("Many gateways end at 10 MB: pass /v1/ around the gateway."),
    "silence_cut": Remedy("Many gateways end at 29 or 30 s: pass /v1/ around the gateway."),
    "stream_buffered": Remedy("Most gateways hold answers until they are whole: pass /v1/ around it."),
}
