"""A remedy as data, and as the text in which people and programs find it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

EXPOSED: Final = "X-Zs-Relay-Hop, X-Zs-Response-Key, X-Zs-Receipt, X-Zs-Settle-Group, Retry-After"
OUTSIDE: Final = "outside the tested matrix"


@dataclass(frozen=True, slots=True)
class Remedy:
    """What to change. ``remove`` are lines to look for, each as it begins; ``add`` is text of configuration,
    and ``where`` it goes. ``language`` names the fenced blocks. ``tested``: it was, with the real product.
    """

    text: str = ""
    language: str = ""
    where: str = ""
    remove: str = ""
    add: str = ""
    tested: bool = False

    def rendered(self, product: str) -> str:
        """The text. What to take out is in a block ``LANGUAGE remove``, what to add in ``LANGUAGE add``."""
        mark = "tested" if self.tested else OUTSIDE
        parts = [self.text] if self.text else []
        if self.remove:
            parts += [
                "Take out every line that begins like this, whatever its case, with the block it opens:",
                _block(self.language, "remove", self.remove),
            ]
        if self.add:
            parts += [f"{product}: add in {self.where} ({mark}):", _block(self.language, "add", self.add)]
        elif product:
            parts.append(f"({product}: {mark})")
        return "\n\n".join(parts)


def _block(language: str, what: str, text: str) -> str:
    return f"```{language} {what}\n{text.strip()}\n```"
