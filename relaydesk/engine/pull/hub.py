"""Models from a Hub repository: choose, fetch every part, and the projector that goes with it.

Listing is huggingface_hub's work (`listing`); the bytes are ours (`fetch`), because it checks no hash and
starts over after a drop.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Final

import aiohttp

from relaydesk.core.errors import PeerError
from relaydesk.core.pool.reference import HfRef, choose, choose_projector
from relaydesk.engine.pull.disk import in_thread, need_room, sha256_of, storage_faults
from relaydesk.engine.pull.fetch import Fetcher, Remote, Sleep
from relaydesk.engine.pull.listing import Listing, list_files
from relaydesk.engine.pull.meter import Meter
from relaydesk.engine.pull.naming import repository_name, suggest_name
from relaydesk.engine.pull.part import part_size
from relaydesk.engine.pull.pulled import PulledModel

_SHA256: Final = re.compile(r"[0-9a-fA-F]{64}")
_SHA1: Final = re.compile(r"[0-9a-fA-F]{40}")


class Hub:
    """Pulls from the Hub into ``model_dir/OWNER--REPO/``."""

    def __init__(self, model_dir: Path, *, environ: Mapping[str, str], sleep: Sleep) -> None:
        self._dir = model_dir
        self._environ = environ
        self._sleep = sleep

    async def pull(self, reference: HfRef, meter: Meter, *, projector: bool) -> PulledModel:
        """Fetch what the reference means; with ``projector``, also the repository's projector if it has one.

        Raises `LocalError`, `PeerError` or `EnvError`, each one sentence. Stopped at any point, it goes on
        from there next time.
        """
        meter.start("asking")
        listing = await list_files(reference, self._environ)
        model = choose(reference, listing.files)
        extra = choose_projector(model, listing.files) if projector else None
        wanted = [_remote(listing, path) for path in (*model.files, *(extra.files if extra else ()))]
        folder = self._dir / f"{reference.owner}--{reference.repo}"
        targets = [folder / path for path in (*model.files, *(extra.files if extra else ()))]
        hashes = await self._fetch_all(listing, wanted, targets, meter)
        files = tuple(targets[: len(model.files)])
        named = reference.quant is not None or reference.file is not None
        base = suggest_name(repository_name(reference.repo))
        return PulledModel(
            path=files[0],
            files=files,
            size=sum(remote.size for remote in wanted[: len(files)]),
            sha256=hashes[0],
            source=str(reference),
            suggested_name=suggest_name(f"{base}:{model.quant}" if named and model.quant else base),
            projector=targets[len(files)] if extra else None,
        )

    async def _fetch_all(
        self, listing: Listing, wanted: list[Remote], targets: list[Path], meter: Meter
    ) -> list[str]:
        pairs = list(zip(wanted, targets, strict=True))
        total = sum(remote.size for remote in wanted)
        meter.start("checking", total)
        stop = threading.Event()
        with storage_faults(self._dir):
            hashes = await in_thread(lambda: [_already_there(r, t, stop) for r, t in pairs], stop)
            missing = [pair for pair, digest in zip(pairs, hashes, strict=True) if not digest]
            await in_thread(lambda: self._check_room(missing))
        meter.start("downloading", total, total - sum(remote.size for remote, _ in missing))
        timeout = aiohttp.ClientTimeout(total=None)
        async with aiohttp.ClientSession(auto_decompress=False, trust_env=True, timeout=timeout) as session:
            fetcher = Fetcher(session, listing.endpoint, listing.token, self._sleep)
            for index, (remote, target) in enumerate(pairs):
                if not hashes[index]:
                    hashes[index] = await fetcher.fetch(remote, target, meter)
                    await in_thread(partial(_check_magic, target, remote.label))
        return hashes

    def _check_room(self, missing: list[tuple[Remote, Path]]) -> None:
        self._dir.mkdir(parents=True, exist_ok=True)
        if missing:
            need_room(self._dir, sum(max(0, remote.size - part_size(target)) for remote, target in missing))


def _remote(listing: Listing, path: str) -> Remote:
    file = listing.files[path]
    label = f"{listing.repository}/{path}"
    if file.size is None or file.size < 0:
        raise PeerError("pull_failed", f"the Hub does not say how large {label} is", "try again later")
    sha256 = file.sha256 if file.sha256 and _SHA256.fullmatch(file.sha256) else None
    blob = file.blob if file.blob and _SHA1.fullmatch(file.blob) else None
    known = f"sha256:{sha256}" if sha256 else f"blob:{blob}" if blob else f"{listing.commit}:{label}"
    url = listing.endpoint.joinpath(
        *listing.repository.split("/"), "resolve", listing.commit, *path.split("/")
    )
    return Remote(url, label, file.size, sha256, blob, known)


def _already_there(remote: Remote, target: Path, stop: threading.Event) -> str:
    """The SHA-256 of a file an earlier pull finished; empty where there is none or it is another."""
    try:
        if remote.sha256 is None or target.stat().st_size != remote.size:
            return ""
    except FileNotFoundError:
        return ""
    digest = sha256_of(target, stop)
    return digest if digest == remote.sha256.lower() else ""


def _check_magic(target: Path, label: str) -> None:
    with target.open("rb") as file:
        if file.read(4) == b"GGUF":
            return
    target.unlink()
    raise PeerError(
        "bad_model_file", f"{label} is not a GGUF file, whatever its name says", "choose another file"
    )
