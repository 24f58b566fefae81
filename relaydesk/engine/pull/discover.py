"""Models that other programs on this machine have downloaded: Ollama, LM Studio, the Hub's own cache.

Their folders are looked at, never written, and never trusted: bounded in entries, depth and time, no
folder link followed, nothing opened but regular files that begin like a GGUF.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

import msgspec

from relaydesk.core.errors import LocalError
from relaydesk.core.pool.reference import is_projector, split_part
from relaydesk.core.ports import Clock
from relaydesk.core.text import SafeText, safe_text
from relaydesk.engine.pull.disk import in_thread
from relaydesk.engine.pull.naming import repository_name, suggest_name
from relaydesk.engine.pull.siblings import parts_of, projector_beside

Source = Literal["ollama", "lmstudio", "hub"]

MAX_FOUND: Final = 200
MAX_ENTRIES: Final = 20_000
MAX_DEPTH: Final = 6
MAX_S: Final = 2.0
_MAX_MANIFEST: Final = 256 << 10
_DIGEST: Final = re.compile(r"sha256:([0-9a-f]{64})")
_MEDIA: Final = "application/vnd.ollama.image."


@dataclass(frozen=True, slots=True)
class Store:
    """Where a program keeps its models."""

    source: Source
    path: Path


@dataclass(frozen=True, slots=True)
class Suggestion:
    """A model file found: what to add and what to call it. ``shown`` is the path, safe for a screen."""

    name: str
    path: Path
    size: int
    source: Source
    shown: SafeText
    projector: Path | None = None


class _Layer(msgspec.Struct, frozen=True):
    media: str = msgspec.field(name="mediaType", default="")
    digest: str = ""


class _Manifest(msgspec.Struct, frozen=True):
    layers: tuple[_Layer, ...] = ()


class _Enough(Exception):
    """A bound was reached; what was found so far stands."""


class _Look:
    """One search with its bounds and what it found."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._until = clock.mono() + MAX_S
        self._entries = 0
        self._seen: set[tuple[int, int]] = set()
        self.found: list[Suggestion] = []

    def spend(self) -> None:
        self._entries += 1
        if self._entries > MAX_ENTRIES or self._clock.mono() > self._until:
            raise _Enough

    def offer(
        self, path: Path, source: Source, names: tuple[str, ...], projector: Path | None = None
    ) -> None:
        """Take a file up if it is a model nobody offered yet."""
        if len(self.found) >= MAX_FOUND:
            raise _Enough
        try:
            files = parts_of(path)
            sizes = [_gguf_size(file, self._seen if file is files[0] else set()) for file in files]
        except (LocalError, OSError):
            return
        if None in sizes or not _is_text(path):
            return
        size = sum(size or 0 for size in sizes)
        self.found.append(
            Suggestion(suggest_name(*names), path, size, source, safe_text(str(path), 400), projector)
        )


async def discover(environ: Mapping[str, str], home: Path, clock: Clock) -> list[Suggestion]:
    """What there is to add in place, by source and name."""
    return await in_thread(lambda: search(stores(environ, home), clock))


def stores(environ: Mapping[str, str], home: Path) -> tuple[Store, ...]:
    """Where the three programs keep models, by their own rules; not all need exist."""
    ollama = environ.get("OLLAMA_MODELS")
    cache = Path(environ.get("XDG_CACHE_HOME") or home / ".cache")
    hub_home = Path(environ.get("HF_HOME") or cache / "huggingface")
    hub = environ.get("HF_HUB_CACHE") or environ.get("HUGGINGFACE_HUB_CACHE") or hub_home / "hub"
    return (
        Store("ollama", Path(ollama) if ollama else home / ".ollama" / "models"),
        Store("ollama", Path("/usr/share/ollama/.ollama/models")),  # its service's account on Linux
        Store("lmstudio", home / ".lmstudio" / "models"),
        Store("lmstudio", home / ".cache" / "lm-studio" / "models"),
        Store("hub", Path(hub)),
    )


def search(places: tuple[Store, ...], clock: Clock) -> list[Suggestion]:
    """Look through the stores. Blocks for at most about `MAX_S`."""
    look = _Look(clock)
    readers: dict[Source, Callable[[Path, _Look], None]] = {
        "ollama": _ollama,
        "lmstudio": _lm_studio,
        "hub": _hub_cache,
    }
    try:
        for store in places:
            readers[store.source](store.path, look)
    except _Enough:
        pass
    return sorted(look.found, key=lambda one: (one.source, one.name, str(one.path)))


def _ollama(root: Path, look: _Look) -> None:
    """Manifests name a model; its layers are blobs by hash."""
    manifests = root / "manifests"
    for file in _walk(manifests, look):
        where = file.relative_to(manifests).parts
        blobs = _blobs_of(file, root / "blobs")
        if blobs is None or len(where) < 2:
            continue
        name, tag = where[-2:]
        label = repository_name(name) if tag == "latest" else f"{repository_name(name)}:{tag}"
        look.offer(blobs[0], "ollama", (label,), blobs[1])


def _blobs_of(manifest: Path, blobs: Path) -> tuple[Path, Path | None] | None:
    """The model's and the projector's blob of a manifest; None where it is no manifest of a model."""
    try:
        raw = _read(manifest, _MAX_MANIFEST)
        layers = msgspec.json.decode(raw, type=_Manifest).layers
    except (OSError, msgspec.DecodeError, UnicodeDecodeError):
        return None
    paths: dict[str, Path] = {}
    for layer in layers:
        match = _DIGEST.fullmatch(layer.digest)
        if match and layer.media.startswith(_MEDIA):
            paths.setdefault(layer.media.removeprefix(_MEDIA), blobs / f"sha256-{match[1]}")
    model, projector = paths.get("model"), paths.get("projector")
    return (model, projector if projector and projector.is_file() else None) if model else None


def _lm_studio(root: Path, look: _Look) -> None:
    """PUBLISHER/REPOSITORY/FILE.gguf"""
    for file in _walk(root, look):
        if _is_model(file):
            look.offer(file, "lmstudio", (_stem(file), file.parent.name), projector_beside(file))


def _hub_cache(root: Path, look: _Look) -> None:
    """models--OWNER--REPO/snapshots/COMMIT/FILE.gguf, each a link to a blob of the same repository."""
    for repository in _folders(root, look):
        owner_repo = repository.name.removeprefix("models--")
        if owner_repo == repository.name:
            continue
        home = os.path.realpath(repository) + os.sep
        for file in _walk(repository / "snapshots", look):
            if _is_model(file) and os.path.realpath(file).startswith(home):
                repo = repository_name(owner_repo.rpartition("--")[2])
                look.offer(file, "hub", (_stem(file), repo), projector_beside(file))


def _is_model(file: Path) -> bool:
    """By its name a model's only or first file."""
    if not file.name.lower().endswith(".gguf") or is_projector(file.name):
        return False
    part = split_part(file.name)
    return part is None or part[1] == 1


def _stem(file: Path) -> str:
    part = split_part(file.name)
    return part[0] if part else file.name[:-5]


def _folders(root: Path, look: _Look) -> list[Path]:
    return [Path(entry.path) for entry in _entries(root, look) if entry.is_dir(follow_symlinks=False)]


def _walk(root: Path, look: _Look) -> Iterator[Path]:
    """Files and links to files below, in order of their names."""
    waiting = [(root, 0)]
    while waiting:
        folder, depth = waiting.pop()
        inner = []
        for entry in _entries(folder, look):
            if entry.is_dir(follow_symlinks=False):
                inner.append((Path(entry.path), depth + 1))
            else:
                yield Path(entry.path)
        if depth < MAX_DEPTH:
            waiting.extend(reversed(inner))


def _entries(folder: Path, look: _Look) -> list[os.DirEntry[str]]:
    entries = []
    try:
        with os.scandir(folder) as scan:
            for entry in scan:
                look.spend()
                entries.append(entry)
    except OSError:
        pass  # not there, or not ours to read
    return sorted(entries, key=lambda entry: entry.name)


def _read(path: Path, limit: int) -> bytes:
    """The beginning of a regular file; raises `OSError` for anything else. Never waits for a pipe."""
    fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            raise OSError(f"{path} is not a regular file")
        return os.read(fd, limit)
    finally:
        os.close(fd)


def _gguf_size(path: Path, seen: set[tuple[int, int]]) -> int | None:
    """The size in bytes of a GGUF file that is not in ``seen``, which it then is; else None."""
    if not stat.S_ISREG(os.stat(path).st_mode) or _read(path, 4) != b"GGUF":
        return None
    status = os.stat(path)
    identity = status.st_dev, status.st_ino
    if identity in seen:
        return None
    seen.add(identity)
    return status.st_size


def _is_text(path: Path) -> bool:
    """Whether the path is UTF-8: what is not cannot be stored as text."""
    try:
        str(path).encode()
    except UnicodeEncodeError:
        return False
    return True
