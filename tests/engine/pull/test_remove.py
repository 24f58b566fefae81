from __future__ import annotations

from pathlib import Path

import pytest

from relaydesk.core.errors import LocalError
from relaydesk.engine.pull.remove import remove_pulled


def put(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"GGUF")
    return path


def test_all_parts_go_and_the_empty_folder(tmp_path: Path) -> None:
    folder = tmp_path / "models"
    parts = [put(folder / "o--r" / "sub" / f"m-0000{n}-of-00002.gguf") for n in (1, 2)]
    assert remove_pulled(folder, parts[0]) == tuple(parts)
    assert list(folder.iterdir()) == []


def test_other_files_stay(tmp_path: Path) -> None:
    folder = tmp_path / "models"
    gone, stays = put(folder / "o--r" / "a.gguf"), put(folder / "o--r" / "b.gguf")
    projector = put(folder / "o--r" / "mmproj.gguf")
    assert remove_pulled(folder, gone, projector) == (gone, projector)
    assert list((folder / "o--r").iterdir()) == [stays]
    assert remove_pulled(folder, gone) == ()


def test_what_is_left_of_a_split_model(tmp_path: Path) -> None:
    folder = tmp_path / "models"
    parts = [put(folder / f"m[1]-0000{n}-of-00003.gguf") for n in (1, 3)]
    other = put(folder / "m[1]-00002-of-00004.gguf")
    assert set(remove_pulled(folder, parts[0])) == set(parts)
    assert list(folder.iterdir()) == [other]


@pytest.mark.parametrize("how", ["outside", "up", "link"])
def test_nothing_outside_is_touched(tmp_path: Path, how: str) -> None:
    folder = tmp_path / "models"
    ours, theirs = put(folder / "a.gguf"), put(tmp_path / "theirs" / "b.gguf")
    (folder / "linked").symlink_to(tmp_path / "theirs")
    path = {
        "outside": theirs,
        "up": folder / ".." / "theirs" / "b.gguf",
        "link": folder / "linked" / "b.gguf",
    }[how]
    with pytest.raises(LocalError) as caught:
        remove_pulled(folder, ours, path)
    assert caught.value.fault.code == "refused"
    assert ours.exists()
    assert theirs.exists()


def test_a_link_is_deleted_not_its_target(tmp_path: Path) -> None:
    theirs = put(tmp_path / "theirs.gguf")
    link = tmp_path / "models" / "a.gguf"
    link.parent.mkdir()
    link.symlink_to(theirs)
    assert remove_pulled(tmp_path / "models", link) == (link,)
    assert theirs.exists()
