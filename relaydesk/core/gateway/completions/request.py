"""A completion request: parsed once, typed, and safe to rebuild for an engine."""

from __future__ import annotations

from typing import Final

from relaydesk.core.errors import PeerError
from relaydesk.core.gateway.completions.fields import ENVELOPE, check_fields
from relaydesk.core.gateway.completions.prompt import MAX_PROMPTS, Prompt, parse_prompts
from relaydesk.core.gateway.decode import check_text, decode, invalid, present, require_string, unsupported
from relaydesk.core.gateway.fields import logit_biases, stop_texts
from relaydesk.core.gateway.sampling import Sampling, sampling_of
from relaydesk.core.gateway.work import Capabilities

# Each is an engine request of its own.
MAX_CHOICES: Final = MAX_PROMPTS
_NO_SUFFIX: Final = (b"", b'""')


class CompletionRequest(Sampling, frozen=True, kw_only=True):
    """A checked request. Fields of type ``bytes`` are JSON ready for the engine, empty where not given.

    ``n`` choices belong to each prompt. ``limit`` None lets an answer go on to its end or to the context's.
    ``logprobs`` is how many alternatives are wanted beside each token, None for no logprobs at all.
    """

    model: str | None
    prompts: tuple[Prompt, ...]
    suffix: bytes = b""
    echo: bool = False
    stream: bool = False
    include_usage: bool = False
    limit: int | None = None
    n: int = 1
    stop: tuple[str, ...] = ()
    logit_bias: bytes = b""
    logprobs: int | None = None
    cache_prompt: bool = True

    @property
    def choices(self) -> int:
        """Engine requests: those of the first prompt first."""
        return len(self.prompts) * self.n

    def prompt_of(self, choice: int) -> Prompt:
        """The prompt that a choice continues."""
        return self.prompts[choice // self.n]

    def __repr__(self) -> str:
        # A request in a log line or a traceback must not carry the prompt.
        return f"CompletionRequest(model={self.model!r}, prompts={len(self.prompts)}, n={self.n})"


def parse_completion(body: bytes) -> CompletionRequest:
    """Check the body of ``POST /v1/completions``.

    Raises only `PeerError`: ``invalid_json``, ``invalid_request`` or ``unsupported``, with ``param`` naming
    the field where there is one. What depends on the model is left to `check_completion`.
    """
    if not body or body.isspace():
        raise PeerError("invalid_json", "the request body is empty", "send a JSON object")
    check_text(body)
    envelope = decode(ENVELOPE, body)
    check_fields(envelope)
    prompts = parse_prompts(envelope.prompt)
    n = envelope.n or 1
    if len(prompts) * n > MAX_CHOICES:
        raise invalid(
            "n", f"{len(prompts)} prompts with n {n} are {len(prompts) * n} choices, allowed is {MAX_CHOICES}"
        )
    suffix = present(envelope.suffix)
    if suffix:
        require_string(suffix, "suffix")
    if envelope.echo:
        _check_echo(prompts)
    return CompletionRequest(
        model=envelope.model or None,
        prompts=prompts,
        suffix=b"" if suffix in _NO_SUFFIX else suffix,
        echo=bool(envelope.echo),
        stream=bool(envelope.stream),
        include_usage=bool(envelope.stream_options and envelope.stream_options.include_usage),
        limit=envelope.max_tokens,
        n=n,
        stop=stop_texts(envelope.stop),
        **sampling_of(envelope),
        logit_bias=logit_biases(envelope.logit_bias),
        logprobs=envelope.logprobs,
        cache_prompt=envelope.cache_prompt is not False,
    )


def check_completion(request: CompletionRequest, capabilities: Capabilities) -> None:
    """Refuse what the chosen model cannot do. Raises `PeerError` naming the field."""
    if request.suffix and not capabilities.infill:
        raise unsupported(
            "suffix",
            "suffix is not supported by this model: it has no tokens for filling in",
            "use a model made for code, or send the prompt alone",
        )
    if capabilities.vocabulary:
        for prompt in request.prompts:
            if prompt.largest is not None and prompt.largest >= capabilities.vocabulary:
                raise invalid(
                    prompt.at,
                    f"{prompt.at} holds the token id {_shown(prompt.largest)}, and this model has "
                    f"{capabilities.vocabulary} tokens, counted from 0",
                )


def _check_echo(prompts: tuple[Prompt, ...]) -> None:
    if not all(prompt.is_text for prompt in prompts):
        raise unsupported(
            "echo", "echo of token ids is not supported: their text is not known", "send the prompt as text"
        )


def _shown(token: int) -> str:
    return str(token) if token < 10**12 else "out of range"
