"""What a node says of itself: ``GET /v1/zs/details`` (wire §5.1).

Only the advert of its key is signed; the rest advises, and is read field by field. Identity is compared
with the directory by whoever asked.
"""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal

import msgspec
from msgspec import Meta

from relaydesk.core.relay.records.canonical import U64_MAX, RecordError
from relaydesk.core.relay.records.ephemeral import Ephemeral
from relaydesk.core.relay.records.lenient import Lenient, items, members, read_fields
from relaydesk.core.text import SafeText, safe_text

# A document larger than this is nobody's; nor are more models than this.
DETAILS_LIMIT: Final = 1024 * 1024
MODELS_LIMIT: Final = 2048
LIST_LIMIT: Final = 64
# What a round of server-side tools adds to the input where a node does not say.
TOOL_HEADROOM: Final = 4000
MIN_CHARGE_TOKENS: Final = 1000

Count = Annotated[int, Meta(ge=0, le=2**53)]
Usd = Annotated[float, Meta(ge=0, le=1e9)]
Name = Annotated[str, Meta(pattern=r"\A[!-~]{1,128}\Z")]
Address = Annotated[str, Meta(pattern=r"\A[A-Z2-7]{58}\Z")]
Words = Annotated[tuple[SafeText, ...], Meta(max_length=LIST_LIMIT)]
Retention = Literal[
    "tee_attested", "upstream_confirmed", "upstream_enforced", "no_upstream", "operator_declared"
]
# A version is compared as it stands, so nothing may be trimmed off it.
Version = Annotated[str, Meta(pattern=r"\A[ -~]{0,32}\Z")]
Ledger = bool | int | Annotated[str, Meta(pattern=r"\A[0-9A-Za-z._-]{1,32}\Z")]


class Reasoning(Lenient, frozen=True, kw_only=True):
    """Whether a model thinks first, and how hard it can be told to."""

    supported: bool = False
    allowed_efforts: Words = ()
    default_effort: SafeText | None = None


class Coordinates(Lenient, frozen=True, kw_only=True):
    """Which model it is, in parts. All advisory text."""

    family: SafeText | None = None
    parameters: SafeText | None = None
    active_parameters: SafeText | None = None
    quantization: SafeText | None = None
    variant: SafeText | None = None


class BuiltinTool(Lenient, frozen=True, kw_only=True):
    """A tool the node runs itself."""

    type: SafeText

    __fallback__ = {"type": safe_text("")}


class OfferedModel(Lenient, frozen=True, kw_only=True):
    """A model that is served now. Rates are USD per million tokens; a window of 0 is not known."""

    id: str
    input_rate_usd_per_1m: Usd
    output_rate_usd_per_1m: Usd
    # None: cached input costs as much as other. 0: it is free.
    cache_read_rate_usd_per_1m: Usd | None = None
    long_context_threshold_tokens: Count = 0
    long_context_input_rate_usd_per_1m: Usd | None = None
    long_context_output_rate_usd_per_1m: Usd | None = None
    long_context_cache_read_rate_usd_per_1m: Usd | None = None
    context_window: Count = 0
    max_output_tokens: Count = 0
    input_modalities: Words = ()
    output_modalities: Words = ()
    reasoning: Reasoning | None = None
    tool_use: bool = False
    tags: Words = ()
    coordinates: Coordinates | None = None
    source: SafeText | None = None
    canonical_id: SafeText | None = None
    retention: Retention | None = None
    weights_digest: SafeText | None = None
    weights_unverifiable: bool = False
    serves_image_gen: bool = False
    serves_image_edit: bool = False
    image_rate_micro_usdc: Count = 0
    image_edit_rate_micro_usdc: Count = 0
    tool_call_rates_micro_usdc: Annotated[dict[Name, Count], Meta(max_length=LIST_LIMIT)] = {}
    vendor_tool_catchall_micro_usdc: Count = 0
    vendor_tool_call_cap: Count = 0
    vendor_tool_tokens_per_call: Count = 0

    # A rate that cannot be read is 0, never "not said": 0 sorts last, and a ticket above it is refused.
    __fallback__ = {"id": "", "input_rate_usd_per_1m": 0.0, "output_rate_usd_per_1m": 0.0}


class Details(Lenient, frozen=True, kw_only=True):
    """The document. ``operator_id``, ``node_id``, ``owner_addr`` and ``signing_addr`` prove nothing by
    themselves; an id of None was missing or none. Use `ephemeral`, not its four parts.
    """

    operator_id: Annotated[int, Meta(ge=0)] | None
    node_id: Annotated[int, Meta(ge=0)] | None
    owner_addr: Address | Literal[""]
    signing_addr: Address | Literal[""]
    ephemeral_age_pubkey: Annotated[str, Meta(max_length=128)] | None = None
    ephemeral_issued_at: int | None = None
    ephemeral_expiry: int | None = None
    ephemeral_sig: Annotated[str, Meta(max_length=128)] | None = None
    models: tuple[OfferedModel, ...]
    oracle_source: SafeText
    oracle_healthy: bool
    algo_usd_price: Usd | None = None
    algo_usd_at: SafeText | None = None
    min_charge_output_tokens: Count
    min_charge_algo_txns: Count = 0
    min_charge_microusdc: Count = 0
    builtin_tools: tuple[BuiltinTool, ...] = ()
    max_tool_iterations: Count = 0
    tool_headroom_per_iteration: Count = TOOL_HEADROOM
    version: SafeText | None = None
    proto_version: Version
    config_hash: SafeText | None = None
    # Ours: whether the target keeps a ledger that takes our extensions, and which version of it.
    relaydesk_ledger: Ledger = False
    tee: bool = False

    __fallback__ = {
        "operator_id": None,
        "node_id": None,
        "owner_addr": "",
        "signing_addr": "",
        "models": (),
        "oracle_source": safe_text(""),
        "oracle_healthy": False,
        "min_charge_output_tokens": MIN_CHARGE_TOKENS,
        "proto_version": "",
    }

    @property
    def ephemeral(self) -> Ephemeral | None:
        """The advert of the key, unchecked, or None: its four fields are all there or it is not."""
        key, sig = self.ephemeral_age_pubkey, self.ephemeral_sig
        issued, expiry = self.ephemeral_issued_at, self.ephemeral_expiry
        if key is None or sig is None or issued is None or expiry is None:
            return None
        return Ephemeral(key, issued, expiry, sig)


_READ_APART: Final = frozenset({"models", "builtin_tools", "tee"})


def _text(value: Any) -> Any:
    if isinstance(value, SafeText):
        return str(value)
    raise TypeError(f"cannot encode {type(value).__name__}")


_ENCODER: Final = msgspec.json.Encoder(enc_hook=_text)


def with_ephemeral(details: Details, advert: Ephemeral) -> Details:
    """``details`` with the four fields of ``advert``."""
    return msgspec.structs.replace(
        details,
        ephemeral_age_pubkey=advert.age_pubkey,
        ephemeral_issued_at=advert.issued_at,
        ephemeral_expiry=advert.expiry,
        ephemeral_sig=advert.sig,
    )


def encode_details(details: Details) -> bytes:
    """The document as JSON; what is not known is left out."""
    return _ENCODER.encode(details)


def decode_details(body: bytes) -> Details:
    """A peer's document. Raises `RecordError` only where it is too large or no JSON object.

    A model without a usable id, or with one seen before, is left out; so is one past `MODELS_LIMIT`.
    """
    if len(body) > DETAILS_LIMIT:
        raise RecordError("the details are too large")
    found = members(body)
    if found is None:
        raise RecordError("the details are not a JSON object")
    details = read_fields(Details, found, _READ_APART)
    for number in (details.operator_id, details.node_id):
        if number is not None and number > U64_MAX:
            raise RecordError("an id of the details does not fit in 64 bits")
    tools = [members(raw) for raw in items(found.get("builtin_tools", b""), LIST_LIMIT)]
    named = [read_fields(BuiltinTool, tool) for tool in tools if tool and "type" in tool]
    return msgspec.structs.replace(
        details,
        models=_models(found.get("models", b"")),
        builtin_tools=tuple(tool for tool in named if tool.type),
        tee=bytes(found.get("tee", b"null")) not in (b"null", b"false"),
    )


def _models(raw: bytes | msgspec.Raw) -> tuple[OfferedModel, ...]:
    models: dict[str, OfferedModel] = {}
    for entry in items(raw, MODELS_LIMIT):
        found = members(entry)
        model = read_fields(OfferedModel, found) if found else None
        # An id is asked for as it stands, so one that would have to be cleaned to be shown is none.
        if model is not None and model.id and safe_text(model.id) == model.id:
            models.setdefault(model.id, model)
    return tuple(models.values())
