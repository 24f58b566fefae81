"""The demo's exchange: what the target offers, bought with a voucher and asked for through a relay."""

from __future__ import annotations

import textwrap
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final

from relaydesk.core.text import safe_text
from relaydesk.surfaces.demo.client import Client
from relaydesk.surfaces.demo.hub import client_of, model_file, model_name
from relaydesk.surfaces.demo.leaks import search
from relaydesk.surfaces.demo.network import Network
from relaydesk.surfaces.demo.places import Planted, places, plant

SENTENCE: Final = "My aunt keeps her letters under the third stone of the old bridge."
QUESTION: Final = f"{SENTENCE} In one sentence: is that a good place for them?"
# microUSDC per 1,000,000 tokens: USD 0.10 and 0.40.
RATES: Final = {"input_rate": 100_000, "output_rate": 400_000}
# microUSDC: what the voucher brings, and what the key may spend in a day.
CREDIT: Final = 1_000_000
KEY: Final = "guest"
_WIDE: Final = 80
_SECOND: Final = ("And a shorter one?", 4)
_SUMS: Final = ("issued", "balance", "held", "earned", "fees")


class Exchange:
    """What is asked of a network, in this order: `offer`, `buy`, `ask`. ``say`` gets whole lines.

    ``model`` is what is asked for, ``asker`` the client that may; both are there after `buy`.
    """

    def __init__(self, network: Network, planted: Planted, say: Callable[[str], None]) -> None:
        self._network = network
        self._planted = planted
        self._say = say
        self._client = network["client"].node
        self._target = network["target"].node
        self._payer = ""
        self.model = ""
        self.asker = Client("", None, "")

    def offer(self) -> None:
        """Load the hub's model at the target too, and offer it at a price."""
        name = model_name(self._client)
        spec = {"name": name, "path": model_file(self._client, name), "offer": True, **RATES}
        self._target.command("add-model", spec=spec)
        self._target.follow(self._target.command("load-model", name=name), lambda _note, _percent: None)
        self.model = f"net/{name}"

    def buy(self) -> None:
        """A voucher from the target's operator to the client's, and a key with the network on.

        Returns once that key sees the offer: the client asks the target for its details through relays.
        """
        code = self._target.command("issue-credit", amount=CREDIT, note="the demo's client")["code"]
        self._payer = self._client.command("redeem-credit", code=code)["payer"]
        limits = {"network": True, "credit_per_day": CREDIT}
        key = self._client.command("add-key", name=KEY, settings=limits)["key"]
        self.asker = replace(client_of(self._client), key=key, relay="required")
        self._network.until(self._offered, f"the client was not offered {self.model}")

    def _offered(self) -> bool:
        if self.model in self.asker.models():
            return True
        self._client.command("probe-relays")
        return False

    def ask(self, tokens: int, write: Callable[[str], None]) -> dict[str, Any]:
        """One question through a relay, one more so that the first is settled, and what was seen of both.

        ``write`` gets pieces of the first answer.
        """
        plant(self._network, self._planted)
        before = self._sums()
        self._say(f"asking {self.model} through a relay:\n{textwrap.fill(QUESTION, _WIDE)}\n")
        chat = self.asker.chat(self.model, QUESTION, tokens, write)
        held = self._sums()
        second = self.asker.chat(self.model, _SECOND[0], _SECOND[1], lambda _piece: None)
        after = self._sums()
        first, last = (self._client.command("show-request", id=each.request_id) for each in (chat, second))
        hops = self._hops()
        leaks = search(places(self._network, self._planted, (SENTENCE, self._payer)))
        self._network.taps.drop()
        # Its ticket is settled only where both sides said the same, and the client says what it verified.
        settled = after["earned"] - held["earned"]
        receipt = {"verified": settled == first["paid"] > 0, "amount": first["paid"]}
        balances = {
            "before": before,
            "held": held,
            "after": after,
            "sum_kept": all(_kept(each) for each in (before, held, after)),
        }
        marked = bool(hops) and all(hop["marked"] for hop in hops)
        other = set(first["relays"] + last["relays"]).isdisjoint((self._network["target"].ref,))
        self._tell(chat.usage["completion_tokens"], first, after, leaks)
        return {
            "ok": (
                marked
                and other
                and bool(chat.text.strip())
                and receipt["verified"]
                and balances["sum_kept"]
                and leaks["planted_found"]
                and not leaks["found"]
            ),
            "marked": marked,
            "relay": self._named(first["relays"]),
            "target": self._named(first["targets"]),
            "tokens": chat.usage["completion_tokens"],
            "answer": safe_text(chat.text, 2000),
            "receipt": receipt,
            "balances": balances,
            "hops": hops,
            "addresses": "one each" if self._network.distinct else "one for all",
            "leaks": leaks,
        }

    def _sums(self) -> dict[str, int]:
        """The target's books."""
        shown = self._target.command("show-ledger")
        return {name: shown.get(name, 0) for name in _SUMS}

    def _hops(self) -> list[dict[str, Any]]:
        """What the client saw of its exchanges, oldest first; probes and the voucher are left out."""
        return [
            {
                "purpose": hop["purpose"],
                "relay": self._named([hop["relay"]]),
                "target": self._named([hop["target"]]),
                "status": hop["status"],
                "marked": hop["marker"],
                "ms": hop["duration_ms"],
            }
            for hop in reversed(self._client.view("hops")["hops"])
            if hop["purpose"] not in ("probe", "ledger")
        ]

    def _named(self, refs: list[str]) -> str:
        """Operators by their names in the directory."""
        known = {each.ref: each.name for each in self._network}
        return ", ".join(known.get(ref, ref) for ref in refs)

    def _tell(self, tokens: int, first: dict[str, Any], after: dict[str, int], leaks: dict[str, Any]) -> None:
        through, target = self._named(first["relays"]), self._named(first["targets"])
        self._say(
            f"\n\n{tokens} tokens from {target}, sealed through {through}; paid {first['paid']} microUSDC"
        )
        self._say(f"books of {target}: " + ", ".join(f"{after[name]} {name}" for name in _SUMS))
        self._say(
            f"the sentence, the payer and the client's address: found {leaks['found']} times in "
            f"{len(leaks['searched'])} places"
        )


def _kept(sums: dict[str, int]) -> bool:
    return sums["issued"] == sums["balance"] + sums["held"] + sums["earned"] + sums["fees"]
