"""Asking a target through relays: a fresh one for each attempt, and never directly (wire §2.5, §3.5)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Collection
from dataclasses import dataclass
from typing import Final, Protocol

from relaydesk.core.ports import Clock
from relaydesk.core.relay.catalogue import MOST_ERROR_BYTES, read_error
from relaydesk.core.relay.hop import (
    LEDGER_PATH,
    HopRequest,
    allowed_path,
    has_marker,
    relay_headers,
    relay_url,
)
from relaydesk.core.relay.ref import Listed, NodeRef
from relaydesk.core.relay.schedule import (
    INNER_ATTEMPTS,
    OVERALL_MS,
    RESTART_S,
    inner_delay_ms,
    retry_after_ms,
    wait,
)
from relaydesk.engine.relay.asking.answered import Answered, NotReachedError
from relaydesk.engine.relay.asking.ask import Ask
from relaydesk.engine.relay.asking.choice import Choice
from relaydesk.engine.relay.asking.judge import Judge, Judged, Seen
from relaydesk.engine.relay.asking.peers import Peers
from relaydesk.engine.relay.asking.reputations import Reputations
from relaydesk.engine.relay.outbound.outbound import Outbound, Reply, UnreachableError

# For the body of an error, or of what is checked; an error that comes no faster has no code.
BODY_S: Final = 15.0
_OURS: Final = frozenset({LEDGER_PATH})
# What is asked before inference takes no time of its own, so its round trips are worth measuring (wire §3.2).
_MEASURED: Final = ("probe", "reserve")

Sleep = Callable[[float], Awaitable[None]]


class Stalls(Protocol):
    """How long our own loop stood still; `engine/looplag.py` measures it."""

    def worst_since(self, mono: float) -> float:
        """The longest stall since that moment, in ms."""
        ...


@dataclass(frozen=True, slots=True)
class _Attempt:
    """One attempt that ended. ``reply`` is open where there is an answer, ``begun`` what was read of it."""

    judged: Judged
    code: str
    reply: Reply | None
    begun: bytes


class Sender:
    """Sends, has it judged, and tries again."""

    def __init__(
        self,
        peers: Peers,
        choice: Choice,
        judge: Judge,
        reputations: Reputations,
        outbound: Outbound,
        clock: Clock,
        stalls: Stalls,
        sleep: Sleep = asyncio.sleep,
    ) -> None:
        self._peers = peers
        self._choice = choice
        self._judge = judge
        self._reputations = reputations
        self._outbound = outbound
        self._clock = clock
        self._stalls = stalls
        self._sleep = sleep

    async def send(
        self, ask: Ask, *, first: NodeRef | None = None, budget_s: float = OVERALL_MS / 1000
    ) -> Answered:
        """Ask until an answer comes, at most three times, each through another relay (wire §2.5).

        ``first`` is the relay to begin with where it may relay for the target; ``budget_s`` bounds the whole.
        Only for what may be repeated: nothing that was paid for. Raises `NotReachedError`.
        """
        end = self._clock.mono() + budget_s
        tried: list[Judged] = []
        pause_ms = 0
        for number in range(INNER_ATTEMPTS):
            relay = self._next(ask, [each.relay for each in tried], first)
            if relay is None:
                break
            delay = wait(inner_delay_ms(number), pause_ms, round((end - self._clock.mono()) * 1000))
            if delay is None:
                break
            if delay:
                await self._sleep(delay / 1000)
            attempt = await self._attempt(ask, relay, number + 1, end)
            tried.append(attempt.judged)
            if not attempt.judged.verdict.retryable:
                if attempt.judged.answered:
                    self._judge.refuted(tried)
                return _answered(attempt, tried)
            pause_ms = await _leave(attempt)
        raise self._not_reached(ask.target, tried)

    async def send_once(self, ask: Ask, *, tried: Collection[NodeRef] = ()) -> Answered:
        """Ask once, through a relay that is none of ``tried``: for what was paid for (wire §2.5).

        Every HTTP answer is returned. Where its ``may_repeat`` is true, the caller may send the same bytes
        again with its ``relay`` among ``tried``; nothing else may be repeated.
        Raises `NotReachedError` ``no_relay_available`` where nothing was sent, ``operators_unreachable``
        where no answer came.
        """
        relay = self._next(ask, tried, None)
        if relay is None:
            raise self._not_reached(ask.target, [])
        attempt = await self._attempt(ask, relay, len(tried) + 1, None)
        if attempt.reply is None:
            raise self._not_reached(ask.target, [attempt.judged])
        return _answered(attempt, [attempt.judged])

    def _next(self, ask: Ask, tried: Collection[NodeRef], first: NodeRef | None) -> NodeRef | None:
        if first is not None and not tried and self._choice.may_relay(first, ask.target):
            return first
        return self._choice.draw(ask.target, tried, ours=ask.ours)

    async def _attempt(self, ask: Ask, relay: NodeRef, number: int, end: float | None) -> _Attempt:
        if not allowed_path(ask.path, _OURS):
            raise ValueError("no relay forwards this path")
        peer = self._peers.get(relay)
        assert peer is not None, "a relay was drawn that no directory lists"
        started = self._clock.mono()
        head_s = ask.head_s if end is None else min(ask.head_s, max(1.0, end - started))
        seen = Seen(self._clock.wall_ms())
        reply: Reply | None = None
        begun = b""
        try:
            reply = await self._request(ask, peer.listed, head_s, paid=end is None)
            seen.took_s = self._clock.mono() - started
            seen.status, seen.marker, seen.connected = reply.status, has_marker(reply.headers.items()), True
            begun = await _look_into(ask, reply, seen)
        except UnreachableError as error:
            seen.took_s = self._clock.mono() - started
            # Nothing within the time we gave it: that is our own deadline, unlike a connection that failed.
            seen.aborted = error.kind == "timeout" and seen.took_s >= head_s
            seen.connected = seen.aborted or error.kind == "broken"
            seen.detail = error.reason
        except BaseException:
            seen.took_s = self._clock.mono() - started
            seen.aborted = True
            self._judge.judge(ask, relay, number, seen)
            if reply is not None:
                await reply.aclose()
            raise
        judged = self._judge.judge(ask, relay, number, seen)
        if judged.answered and ask.purpose in _MEASURED:
            self._measure(judged, seen.took_s, self._stalls.worst_since(started))
        return _Attempt(judged, seen.code, reply, begun)

    def _measure(self, judged: Judged, took_s: float, stall_ms: float) -> None:
        now = self._clock.mono()
        self._reputations.latencies.add(judged.relay, judged.target, took_s * 1000, now, stall_ms)

    async def _request(self, ask: Ask, relay: Listed, head_s: float, *, paid: bool) -> Reply:
        headers = relay_headers(HopRequest(ask.target, ask.path, ask.method))
        for name, value in (("Content-Type", ask.content_type), ("Accept", ask.accept)):
            if value:
                headers.append((name, value))
        # What was paid for must not go out twice, not even where a resting connection turns out to be closed.
        body: bytes | AsyncIterator[bytes] = _once(ask.body) if paid else ask.body
        url = relay_url(relay.base_url)
        try:
            return await self._outbound.send(url, "POST", headers, body, head_s=head_s, length=len(ask.body))
        except ValueError as error:
            raise UnreachableError("resolve", "the address it is listed with cannot be asked") from error

    def _not_reached(self, target: NodeRef, tried: list[Judged]) -> NotReachedError:
        if not tried:
            return NotReachedError(
                "no_relay_available",
                f"no relay may be asked for node {target}, and nothing is ever sent to it directly",
                "see `relaydesk relays` for which nodes are known, and who may relay for whom",
            )
        down = self._judge.all_failed(tried)
        through = "one relay" if len(tried) == 1 else f"{len(tried)} relays"
        return NotReachedError(
            "operators_unreachable",
            f"node {target} could not be reached through {through}",
            "see `relaydesk relays` for why, and try again",
            hops=tried,
            target_down=down,
            retry_after=RESTART_S,
        )


async def _look_into(ask: Ask, reply: Reply, seen: Seen) -> bytes:
    """As much of the body as it takes to judge the answer: an error's code, or what is to be checked."""
    good = 200 <= reply.status < 300
    if good and ask.check is None:
        return b""
    limit = ask.check_limit if good else MOST_ERROR_BYTES
    begun = bytearray()
    whole = False
    try:
        async with asyncio.timeout(BODY_S):
            while not whole and len(begun) <= limit:
                piece = await reply.next_chunk()
                begun += piece
                whole = not piece
    except (TimeoutError, UnreachableError):
        pass
    body = bytes(begun)
    if not good:
        seen.code = read_error(body).code if whole else ""
    elif ask.check is not None:
        seen.detail = await ask.check(ask.target, body) if whole else "the answer broke off"
        seen.foreign = bool(seen.detail)
    return body


def _answered(attempt: _Attempt, tried: list[Judged]) -> Answered:
    assert attempt.reply is not None
    return Answered(attempt.reply, tried, attempt.code, attempt.begun)


async def _leave(attempt: _Attempt) -> int:
    """Be done with a failed attempt; what it asks to wait, in ms."""
    if attempt.reply is None:
        return 0
    await attempt.reply.aclose()
    return retry_after_ms(attempt.reply.headers.get("Retry-After"))


async def _once(body: bytes) -> AsyncIterator[bytes]:
    yield body
