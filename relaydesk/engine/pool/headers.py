"""Reading what a model's files say, for the fit rules."""

from __future__ import annotations

from pathlib import Path

from relaydesk.core.errors import LocalError
from relaydesk.core.pool.model import ModelSpec
from relaydesk.core.pool.need import Subject
from relaydesk.engine.pull.add import header_of, look_at_blocking


def read_headers(spec: ModelSpec) -> Subject:
    """The headers of the model, its projector and its draft model. Blocks on the disk: use a thread.

    Raises `LocalError` or `EnvError` for a file that is missing, unreadable or not what it should be.
    """
    found = look_at_blocking(spec.path)
    projector = header_of(Path(spec.projector)) if spec.projector else None
    if projector is not None and not projector.is_projector:
        raise LocalError(
            "bad_model_file",
            f"{spec.projector} is not a projector",
            "name the file whose name begins with mmproj",
            param="projector",
        )
    draft = look_at_blocking(spec.draft).header if spec.draft else None
    return Subject(spec=spec, header=found.header, projector=projector, draft=draft)
