from __future__ import annotations

from pathlib import Path

import pytest

from relaydesk.core.errors import FaultError
from relaydesk.core.pool.model import ModelSpec
from relaydesk.engine.pool.headers import read_headers
from tests.support import gguf_builder

PROJECTOR = gguf_builder.build(
    {"general.architecture": "clip", "general.type": "mmproj", "clip.has_vision_encoder": True},
    [gguf_builder.Tensor("v.patch_embd.weight", (64, 64))],
)


@pytest.fixture
def model(tmp_path: Path) -> Path:
    path = tmp_path / "tiny.gguf"
    path.write_bytes(gguf_builder.tiny())
    return path


def test_reads_the_model_its_projector_and_its_draft(model: Path) -> None:
    projector, draft = model.with_name("mmproj.gguf"), model.with_name("draft.gguf")
    projector.write_bytes(PROJECTOR)
    draft.write_bytes(gguf_builder.tiny(general__name="Draft"))
    plain = read_headers(ModelSpec(name="a", path=str(model)))
    assert plain.header.name == "Tiny"
    assert plain.projector is None
    assert plain.draft is None
    full = read_headers(ModelSpec(name="a", path=str(model), projector=str(projector), draft=str(draft)))
    assert full.projector is not None
    assert full.projector.is_projector
    assert full.draft is not None
    assert full.draft.name == "Draft"
    assert full.spec.projector == str(projector)


@pytest.mark.parametrize(
    ("field", "content", "code", "param"),
    [
        ("projector", gguf_builder.tiny(), "bad_model_file", "projector"),
        ("projector", b"junk", "bad_model_file", None),
        ("projector", None, "storage_failed", None),
        ("draft", PROJECTOR, "invalid_request", None),
        ("draft", None, "not_found", None),
    ],
)
def test_says_which_file_is_wrong(
    model: Path, field: str, content: bytes | None, code: str, param: str | None
) -> None:
    beside = model.with_name("beside.gguf")
    if content is not None:
        beside.write_bytes(content)
    with pytest.raises(FaultError) as caught:
        read_headers(ModelSpec(name="a", path=str(model), **{field: str(beside)}))
    assert (caught.value.fault.code, caught.value.fault.param) == (code, param)
    assert "beside.gguf" in caught.value.fault.message
