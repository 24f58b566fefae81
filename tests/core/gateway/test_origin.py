from __future__ import annotations

import pytest

from relaydesk.core.errors import PeerError
from relaydesk.core.gateway.origin import in_the_words_of

NAMES = {"max_tokens": "options.num_predict"}


def test_a_field_is_called_as_the_client_calls_it() -> None:
    with pytest.raises(PeerError) as caught, in_the_words_of(lambda name: NAMES.get(name, name)):
        raise PeerError(
            "invalid_request", "max_tokens is -5", "see the docs", param="max_tokens", retry_after=3
        )
    fault = caught.value.fault
    assert (fault.code, fault.param, fault.hint) == ("invalid_request", "options.num_predict", "see the docs")
    assert fault.sentence == "options.num_predict is -5: see the docs"


@pytest.mark.parametrize("param", [None, "top_p"])
def test_other_errors_pass_as_they_are(param: str | None) -> None:
    mine = PeerError("invalid_request", "no", param=param)
    with pytest.raises(PeerError) as caught, in_the_words_of(lambda name: NAMES.get(name, name)):
        raise mine
    assert caught.value is mine
