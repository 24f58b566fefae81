"""What sealed parts are bound to, spelled out."""

from __future__ import annotations

from relaydesk.core.relay.sealed.aad import (
    RECEIPT,
    SETTLE_GROUP,
    body_aad,
    frame_aad,
    frame_prefix,
    header_aad,
)


def test_the_bytes() -> None:
    assert body_aad("TX", "T1") == b"zs\x00body\x00TX\x00T1"
    assert body_aad("TX", "") == b"zs\x00body\x00TX\x00"
    assert frame_aad("TX", "T1", 258) == b"zs\x00frame\x00TX\x00T1\x00" + b"\x00" * 6 + b"\x01\x02"
    assert frame_aad("TX", "", 0) == b"zs\x00frame\x00TX\x00\x00" + b"\x00" * 8
    assert frame_prefix("TX", "T1") == b"zs\x00frame\x00TX\x00T1\x00"
    assert header_aad("TX", "T1", RECEIPT) == b"zs\x00hdr\x00TX\x00T1\x00receipt"
    assert header_aad("TX", "T1", SETTLE_GROUP) == b"zs\x00hdr\x00TX\x00T1\x00settle-group"
