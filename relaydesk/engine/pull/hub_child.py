"""Asks a Hub for a repository's files: ``python -P hub_child.py``, one JSON line in, one JSON object out.

A program of its own: huggingface_hub reads its settings at import, blocks, retries for as long as it
likes and stays in memory; as a child it costs the node nothing, and it can be ended. Only a model's
files whose name ends in ``.gguf`` are told, at most `MAX_FILES`.
"""

from __future__ import annotations

import json
import os
import sys
import threading
from typing import Any

MAX_FILES = 5000


def _die_with_the_pipe() -> None:
    while sys.stdin.buffer.read(4096):
        pass
    os._exit(1)


def _ask(question: dict[str, Any]) -> dict[str, Any]:
    from huggingface_hub import HfApi, constants, errors, get_token

    token = question["token"]
    if token is None and not constants.HF_HUB_DISABLE_IMPLICIT_TOKEN:
        token = get_token()
    api = HfApi(endpoint=constants.ENDPOINT, token=token or False)
    answer: dict[str, Any] = {"endpoint": constants.ENDPOINT, "token": token}
    try:
        info = api.model_info(question["repo"], timeout=question["timeout"], files_metadata=True)
    except errors.GatedRepoError:
        return answer | {"failed": "gated"}
    except (errors.RepositoryNotFoundError, errors.RevisionNotFoundError):
        return answer | {"failed": "not_found"}
    except errors.OfflineModeIsEnabled:
        return answer | {"failed": "offline"}
    except errors.HfHubHTTPError as error:
        status = error.response.status_code if error.response is not None else 0
        return answer | {"failed": "status", "status": status}
    except Exception as error:  # whatever the HTTP library raises: all of it means "no answer"
        return answer | {"failed": "unreachable", "detail": f"{type(error).__name__}: {error}"[:500]}
    files: list[dict[str, Any]] = []
    for sibling in info.siblings or ():
        if sibling.rfilename.lower().endswith(".gguf") and len(files) < MAX_FILES:
            lfs = sibling.lfs
            files.append(
                {
                    "path": sibling.rfilename,
                    "size": lfs.size if lfs else sibling.size,
                    "sha256": lfs.sha256 if lfs else None,
                    "blob": None if lfs else sibling.blob_id,
                }
            )
    return answer | {"commit": info.sha, "files": files}


def main() -> None:
    question = json.loads(sys.stdin.buffer.readline())
    threading.Thread(target=_die_with_the_pipe, daemon=True).start()
    sys.stdout.write(json.dumps(_ask(question)))
    sys.stdout.flush()
    os._exit(0)  # the watching thread may hold the interpreter's exit


if __name__ == "__main__":
    main()
