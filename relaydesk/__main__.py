"""``python -m relaydesk``, and the programs ``relaydesk`` and ``relay``."""

from __future__ import annotations

import sys


def main() -> None:
    """Run the command line and exit with its code (0 done, 1 failed, 2 usage, 3 no node, 4 refused)."""
    from relaydesk.surfaces.cli.main import run

    sys.exit(run(sys.argv))


if __name__ == "__main__":
    main()
