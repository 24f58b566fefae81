"""What to change where the product is not known: the rule, to be put into its own words."""

from __future__ import annotations

from typing import Final

from relaydesk.core.hopcheck.remedies.remedy import EXPOSED

RULES: Final = {
    "unresolved": "Give the name an address record (A or AAAA) that leads to this edge.",
    "unreachable": "Let the edge listen there, and let the firewall and the router lead the port to it.",
    "black_hole": "Something drops what is sent or never answers: look at the firewall, at the router's "
    "forwarding of the port, and at whether the edge reaches the node.",
    "tls_failed": "Let the edge speak TLS there, with a certificate for that name.",
    "tls_untrusted": "Serve a certificate of a public authority for that name, with its whole chain: "
    "RELAY_TLS_DOMAIN gets one where this node is the edge.",
    "tls_ends_soon": "Renew the certificate, and find out why it does not renew itself.",
    "another_node": "Lead this address to this node, or advertise another (RELAY_PUBLIC_URL).",
    "redirected": "Advertise the URL that answers itself (RELAY_PUBLIC_URL), or take the redirect away for "
    "/v1/ on it.",
    "wrong_route": "Pass /v1/ on to the network listener (RELAY_NETWORK_LISTEN, port 8384), not to the "
    "hub's, "
    "and leave the path as it is, or as RELAY_PUBLIC_URL has it.",
    "edge_answers": "Pass every method of /v1/ on to the network listener (port 8384), without log-in, "
    "challenge, rate limit or rule of a firewall before it.",
    "request_headers_lost": "Pass the request headers X-Zs-Relay-Target, X-Zs-Relay-Target-Node, "
    "X-Zs-Relay-Path and X-Zs-Relay-Method on, each once and unchanged.",
    "marker_removed": "Let the response header X-Zs-Relay-Hop through: take away the rule that removes "
    "it, or "
    "add it to the list of headers that pass.",
    "answer_replaced": "Pass the node's own answers on, errors too: no error pages of the edge in their "
    "place.",
    "http2_broken": "Let the edge answer over HTTP/2 what it answers over HTTP/1.1, or do not offer it.",
    "headers_dropped": "Let every response header that begins with X-Zs- through, and Retry-After.",
    "headers_changed": "Do not join or drop headers that are there twice.",
    "marker_everywhere": "Do not set X-Zs-Relay-Hop at the edge: it is the node's word that it did its part.",
    "preflight_refused": "Pass OPTIONS on to the node, which answers it for every origin.",
    "origin_refused": "Leave Access-Control-Allow-Origin to the node, which sets it to * once.",
    "marker_not_exposed": f"Leave Access-Control-Expose-Headers to the node, or set it to: {EXPOSED}",
    "stream_cut": "Let answers last as long as they do: no limit on the time or size of a response.",
    "stream_buffered": "Do not buffer responses below /v1/: pass each piece on when it comes.",
    "body_limited": "Let request bodies of 12 MiB through.",
    "body_failed": "The edge failed at the body, where a limit would answer 413: see the proxy's error log. "
    "Often it cannot write what it keeps of a request (rights or space of its temporary directory), or it "
    "gives up on the node while it sends.",
    "details_hidden": "Pass GET /v1/zs/details on to the node.",
    "silence_cut": "Wait at least 310 s for an answer, and as long between two pieces of one: a relay is "
    "silent until its target answers.",
    "compressed": "Do not compress what is below /v1/.",
    "node_busy": "Wait until the node has drained or has room again; `relaydesk status` tells.",
    "version_old": "Update relaydesk there, and let the edge cache nothing below /v1/.",
    "not_seen_from_inside": "Run the check on a machine elsewhere: `relaydesk check-hop --new-nonce` here "
    "prints the command.",
    "seen_from_inside": "Run the check on a machine elsewhere: `relaydesk check-hop --new-nonce` here prints "
    "the command.",
}
NODE_RULE: Final = (
    "The node itself shows it: look at its log and its version. Where nothing answers, start it with "
    "`relaydesk serve` and RELAY_NETWORK=on."
)
