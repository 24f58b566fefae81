"""ggml's tensor types and file types: how many bytes a row of each takes, and what people call them.

Sizes are those that the ggml library of the supported engines reports for itself (type name, block length
in elements, block size in bytes). A type that is not here cannot be sized, so a file that uses it is
refused by name and not guessed at.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from relaydesk.core.pool.model import KvType


@dataclass(frozen=True, slots=True)
class TensorType:
    """One way of storing numbers: ``block`` elements take ``size`` bytes."""

    name: str
    block: int
    size: int

    def row_bytes(self, elements: int) -> int:
        """Bytes of ``elements`` numbers; a last partial block counts whole."""
        return -(-elements // self.block) * self.size


TENSOR_TYPES: Final[dict[int, TensorType]] = {
    0: TensorType("F32", 1, 4),
    1: TensorType("F16", 1, 2),
    2: TensorType("Q4_0", 32, 18),
    3: TensorType("Q4_1", 32, 20),
    6: TensorType("Q5_0", 32, 22),
    7: TensorType("Q5_1", 32, 24),
    8: TensorType("Q8_0", 32, 34),
    9: TensorType("Q8_1", 32, 36),
    10: TensorType("Q2_K", 256, 84),
    11: TensorType("Q3_K", 256, 110),
    12: TensorType("Q4_K", 256, 144),
    13: TensorType("Q5_K", 256, 176),
    14: TensorType("Q6_K", 256, 210),
    15: TensorType("Q8_K", 256, 292),
    16: TensorType("IQ2_XXS", 256, 66),
    17: TensorType("IQ2_XS", 256, 74),
    18: TensorType("IQ3_XXS", 256, 98),
    19: TensorType("IQ1_S", 256, 50),
    20: TensorType("IQ4_NL", 32, 18),
    21: TensorType("IQ3_S", 256, 110),
    22: TensorType("IQ2_S", 256, 82),
    23: TensorType("IQ4_XS", 256, 136),
    24: TensorType("I8", 1, 1),
    25: TensorType("I16", 1, 2),
    26: TensorType("I32", 1, 4),
    27: TensorType("I64", 1, 8),
    28: TensorType("F64", 1, 8),
    29: TensorType("IQ1_M", 256, 56),
    30: TensorType("BF16", 1, 2),
    34: TensorType("TQ1_0", 256, 54),
    35: TensorType("TQ2_0", 256, 66),
    39: TensorType("MXFP4", 32, 17),
    40: TensorType("NVFP4", 64, 36),
    41: TensorType("Q1_0", 128, 18),
    42: TensorType("Q2_0", 64, 18),
}

# Once written by converters, no longer loaded by any supported engine.
REMOVED_TYPES: Final[dict[int, str]] = {
    4: "Q4_2",
    5: "Q4_3",
    31: "Q4_0_4_4",
    32: "Q4_0_4_8",
    33: "Q4_0_8_8",
    36: "IQ4_NL_4_4",
    37: "IQ4_NL_4_8",
    38: "IQ4_NL_8_8",
}

# ``general.file_type``: what most tensors of the file are stored as.
FILE_TYPES: Final[dict[int, str]] = {
    0: "F32",
    1: "F16",
    2: "Q4_0",
    3: "Q4_1",
    7: "Q8_0",
    8: "Q5_0",
    9: "Q5_1",
    10: "Q2_K",
    11: "Q3_K_S",
    12: "Q3_K_M",
    13: "Q3_K_L",
    14: "Q4_K_S",
    15: "Q4_K_M",
    16: "Q5_K_S",
    17: "Q5_K_M",
    18: "Q6_K",
    19: "IQ2_XXS",
    20: "IQ2_XS",
    21: "Q2_K_S",
    22: "IQ3_XS",
    23: "IQ3_XXS",
    24: "IQ1_S",
    25: "IQ4_NL",
    26: "IQ3_S",
    27: "IQ3_M",
    28: "IQ2_S",
    29: "IQ2_M",
    30: "IQ4_XS",
    31: "IQ1_M",
    32: "BF16",
    36: "TQ1_0",
    37: "TQ2_0",
    38: "MXFP4_MOE",
    39: "NVFP4",
    40: "Q1_0",
}
_GUESSED: Final = 1024  # set by a writer that did not know and took the most frequent type


def file_type_label(number: int | None) -> str:
    """The file type as people write it, ``""`` where the file names none or one nobody knows."""
    return "" if number is None else FILE_TYPES.get(number & ~_GUESSED, "")


KV_TYPES: Final[dict[KvType, TensorType]] = {
    "f32": TENSOR_TYPES[0],
    "f16": TENSOR_TYPES[1],
    "bf16": TENSOR_TYPES[30],
    "q8_0": TENSOR_TYPES[8],
    "q5_1": TENSOR_TYPES[7],
    "q5_0": TENSOR_TYPES[6],
    "q4_1": TENSOR_TYPES[3],
    "q4_0": TENSOR_TYPES[2],
}
