"""What ``model pull`` accepts, and which of a repository's files it means.

``smollm2``, or a Hub repository: ``hf:OWNER/REPO``, ``hf:OWNER/REPO:QUANT``, ``hf:OWNER/REPO/FILE.gguf``.
The same behind ``hf.co/`` or ``huggingface.co/`` (with or without ``https://``), as a browser's address
bar or another program's command line has it. Only the ``main`` revision: a commit is pinned when pulling.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from relaydesk.core.errors import LocalError
from relaydesk.core.text import safe_text

SMOLLM2: Final = "smollm2"
MAX_REFERENCE: Final = 512
MAX_FILE_PATH: Final = 300

# Tried in this order where a reference names no quantisation: the usual balance first, then what is as
# small and runs everywhere.
PREFERRED: Final = ("Q4_K_M", "Q4_0", "Q4_1", "Q4_K_S", "UD-Q4_K_XL", "Q4_K_XL", "IQ4_NL", "IQ4_XS", "MXFP4")
PROJECTOR_PREFERRED: Final = ("F16", "BF16", "Q8_0", "F32")
_LISTED: Final = 12

# The Hub's own rule for owners and repositories, less the names with two dots or dashes in a row.
_NAME: Final = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]{0,94}[A-Za-z0-9_])?")
_QUANT: Final = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]{0,62}[A-Za-z0-9])?")
# One component of a file's path in a repository. No leading dot: no hidden file, no `..`.
_COMPONENT: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.+ ()\[\]=,@~-]{0,199}")
_SPLIT: Final = re.compile(r"(?P<stem>.+)-(?P<index>\d{5})-of-(?P<count>\d{5})", re.IGNORECASE)
_QUANT_IN_NAME: Final = re.compile(
    r"(?:^|[-._])((?:UD-)?(?:I?Q\d(?:_[A-Z0-9]+)*|TQ\d_\d|BF16|FP?16|FP?32|MXFP4(?:_MOE)?))(?=$|[-._])",
    re.IGNORECASE,
)
_PREFIXES: Final = ("hf:", "hf.co/", "huggingface.co/", "www.huggingface.co/")
_EXAMPLES: Final = "use smollm2, hf:OWNER/REPO, hf:OWNER/REPO:QUANT or hf:OWNER/REPO/FILE.gguf"


@dataclass(frozen=True, slots=True)
class SmolRef:
    """The small model that comes from the package index."""

    def __str__(self) -> str:
        return SMOLLM2


@dataclass(frozen=True, slots=True)
class HfRef:
    """A Hub repository and, at most one of the two, the quantisation or the file wanted."""

    owner: str
    repo: str
    quant: str | None = None
    file: str | None = None

    @property
    def repository(self) -> str:
        return f"{self.owner}/{self.repo}"

    def __str__(self) -> str:
        if self.file is not None:
            return f"hf:{self.repository}/{self.file}"
        return f"hf:{self.repository}:{self.quant}" if self.quant else f"hf:{self.repository}"


Reference = SmolRef | HfRef


@dataclass(frozen=True, slots=True)
class Choice:
    """One model (or projector) in a repository: a file, or all parts of a split one in their order."""

    files: tuple[str, ...]
    quant: str | None
    projector: bool
    parts: int

    @property
    def complete(self) -> bool:
        return len(self.files) == self.parts

    @property
    def label(self) -> str:
        """What a person types to get this one."""
        return self.quant or self.files[0]


def parse_reference(text: str) -> Reference:
    """Read a reference; raises `LocalError` ``invalid_request`` that says what is wrong with it."""
    if len(text) > MAX_REFERENCE:
        raise _refusal(f"a model reference has at most {MAX_REFERENCE} characters, this one has {len(text)}")
    bare = text.strip()
    if bare.lower() == SMOLLM2:
        return SmolRef()
    rest = _without_prefix(bare)
    if rest is None:
        raise _refusal(f"{safe_text(text, 80)!r} is not a model reference")
    owner, _, tail = rest.partition("/")
    repo, mark, end = _cut(tail)
    for name, what in ((owner, "owner"), (repo, "repository")):
        if not _NAME.fullmatch(name) or ".." in name or "--" in name:
            raise _refusal(f"{safe_text(text, 80)!r} has no valid {what} name")
    if mark == ":":
        if not _QUANT.fullmatch(end):
            raise _refusal(f"{safe_text(text, 80)!r} has no valid quantisation after the colon")
        return HfRef(owner, repo, quant=None if end.lower() == "latest" else end)
    if mark == "/" and end:
        return HfRef(owner, repo, file=_file_of(end, text))
    return HfRef(owner, repo)


def _without_prefix(text: str) -> str | None:
    lower = text.lower()
    start = len("https://") if lower.startswith("https://") else 0
    for prefix in _PREFIXES:
        if lower.startswith(prefix, start) and not (start and prefix == "hf:"):
            rest = text[start + len(prefix) :]
            return rest.partition("?")[0].partition("#")[0] if start else rest
    return None


def _cut(tail: str) -> tuple[str, str, str]:
    """``REPO``, the first of ``:`` and ``/`` after it (or nothing), and what follows."""
    for index, char in enumerate(tail):
        if char in ":/":
            return tail[:index], char, tail[index + 1 :]
    return tail, "", ""


def _file_of(path: str, text: str) -> str | None:
    """The file's path in the repository; None for the repository's own page (``tree/main``)."""
    first, _, rest = path.partition("/")
    if first in ("blob", "resolve", "tree", "raw"):
        revision, _, path = rest.partition("/")
        if revision != "main":
            raise _refusal(f"{safe_text(text, 80)!r} names another revision than main")
        if not path:
            return None
    if not path.lower().endswith(".gguf"):
        raise _refusal(f"{safe_text(text, 80)!r} names a file that does not end in .gguf")
    if not is_safe_path(path):
        raise _refusal(f"{safe_text(text, 80)!r} has no valid file name")
    return path


def is_safe_path(path: str) -> bool:
    """Whether a path out of a listing may become a path under our model directory."""
    return len(path) <= MAX_FILE_PATH and all(_COMPONENT.fullmatch(part) for part in path.split("/"))


def quant_of(path: str) -> str | None:
    """The quantisation a file name ends in or has as its last such word, upper case; None if it has none."""
    stem = path.rsplit("/", 1)[-1]
    stem = stem[:-5] if stem.lower().endswith(".gguf") else stem
    split = _SPLIT.fullmatch(stem)
    found = _QUANT_IN_NAME.findall(split["stem"] if split else stem)
    return found[-1].upper() if found else None


def split_part(path: str) -> tuple[str, int, int] | None:
    """``(stem, index, count)`` of a file ``stem-00001-of-00003.gguf``, index from 1; else None."""
    if not path.lower().endswith(".gguf"):
        return None
    match = _SPLIT.fullmatch(path[:-5])
    if match is None:
        return None
    index, count = int(match["index"]), int(match["count"])
    return (match["stem"], index, count) if 1 <= index <= count else None


def is_projector(path: str) -> bool:
    """Whether a file is a multimodal projector (``mmproj``), by the name every converter gives it."""
    return "mmproj" in path.rsplit("/", 1)[-1].lower()


def choices(paths: Iterable[str]) -> tuple[Choice, ...]:
    """The models and projectors among a repository's files, in the order of their names.

    Left out: files that are no GGUF, paths we would not write, importance matrices.
    """
    whole: list[Choice] = []
    parts: dict[tuple[str, int], dict[int, str]] = {}
    for path in sorted(set(paths)):
        if not path.lower().endswith(".gguf") or not is_safe_path(path):
            continue
        part = split_part(path)
        if part is not None:
            parts.setdefault((part[0], part[2]), {})[part[1]] = path
            continue
        quant = quant_of(path)
        if quant is None and "imatrix" in path.lower():
            continue
        whole.append(Choice((path,), quant, is_projector(path), 1))
    for (_, count), found in parts.items():
        files = tuple(found[index] for index in sorted(found))
        whole.append(Choice(files, quant_of(files[0]), is_projector(files[0]), count))
    return tuple(sorted(whole, key=lambda choice: choice.files))


def choose(reference: HfRef, paths: Iterable[str]) -> Choice:
    """The one model the reference means among a repository's files.

    Raises `LocalError` ``not_found`` (no such file, no GGUF at all, a part missing) or ``invalid_request``
    (more than one fits), each with what there is to choose from.
    """
    offered = choices(paths)
    models = [choice for choice in offered if not choice.projector]
    if not models:
        raise LocalError(
            "not_found",
            f"{reference.repository} has no GGUF model",
            "choose a repository with GGUF files; their names often end in -GGUF",
        )
    if reference.file is not None:
        found = _by_file(reference, offered)
    elif reference.quant is not None:
        found = _by_quant(reference, models)
    else:
        found = _by_preference(reference, models)
    if not found.complete:
        raise LocalError(
            "not_found",
            f"{reference.repository} lists {len(found.files)} of the {found.parts} parts of {found.files[0]}",
            "choose another file: " + _listed(choice for choice in models if choice.complete),
        )
    return found


def choose_projector(model: Choice, paths: Iterable[str]) -> Choice | None:
    """The projector that goes with a model: F16 where there is one, in the model's own folder first."""
    folder = model.files[0].rpartition("/")[0]

    def rank(choice: Choice) -> tuple[bool, int, tuple[str, ...]]:
        known = choice.quant in PROJECTOR_PREFERRED
        order = PROJECTOR_PREFERRED.index(choice.quant or "") if known else len(PROJECTOR_PREFERRED)
        return choice.files[0].rpartition("/")[0] != folder, order, choice.files

    fit = [choice for choice in choices(paths) if choice.projector and choice.complete]
    return min(fit, key=rank, default=None)


def _by_file(reference: HfRef, offered: tuple[Choice, ...]) -> Choice:
    wanted = reference.file or ""
    for fold in (str, str.lower):
        found = [choice for choice in offered if fold(wanted) in map(fold, choice.files)]
        if len(found) == 1 and found[0].projector:
            raise _refusal(
                f"{safe_text(wanted, 120)} is a projector, not a model", "pull the model; it brings this"
            )
        if len(found) == 1:
            return found[0]
    raise LocalError(
        "not_found",
        f"{reference.repository} has no file {safe_text(wanted, 120)}",
        "there are " + _listed((choice for choice in offered if not choice.projector), files=True),
    )


def _by_quant(reference: HfRef, models: list[Choice]) -> Choice:
    wanted = (reference.quant or "").upper()
    for name in (wanted, f"UD-{wanted}"):
        found = [choice for choice in models if choice.quant == name]
        if found:
            return _sole(reference, found)
    raise LocalError(
        "not_found",
        f"{reference.repository} has no file quantised as {wanted}",
        "there are " + _listed(models),
    )


def _by_preference(reference: HfRef, models: list[Choice]) -> Choice:
    for name in PREFERRED:
        found = [choice for choice in models if choice.quant == name]
        if found:
            return _sole(reference, found)
    return _sole(reference, models)


def _sole(reference: HfRef, found: list[Choice]) -> Choice:
    if len(found) == 1:
        return found[0]
    by_file = len({choice.quant for choice in found} - {None}) < len(found)
    form = f"hf:{reference.repository}" + ("/FILE" if by_file else ":QUANT")
    raise _refusal(
        f"{reference.repository} has {len(found)} files that fit",
        f"say {form} with one of " + _listed(found, files=by_file),
    )


def _listed(found: Iterable[Choice], *, files: bool = False) -> str:
    names = [safe_text(choice.files[0] if files else choice.label, 120) for choice in found]
    names = list(dict.fromkeys(names))
    more = f" and {len(names) - _LISTED} more" if len(names) > _LISTED else ""
    return (", ".join(names[:_LISTED]) or "none") + more


def _refusal(message: str, hint: str = _EXAMPLES) -> LocalError:
    return LocalError("invalid_request", message, hint, param="reference")
