"""What weights are for, told by their names and shapes: shared by the readers of checkpoints.

Names follow PyTorch's modules (``conv1.weight``, ``q_proj.weight``, ``weight_ih_l0``), Keras (``kernel``) and ggml
(``blk.0.attn_q.weight``). Shapes are in the order of the file; a convolution kernel has rank 3 to 5, and spatial sides
of a few elements. A rank alone never counts for rank 3, which fused experts and stacked layers have too.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from zcheck.model.workload import TensorGroup, TensorUse

_CONV = re.compile(
    r"(^|[^a-z])(conv\d*|convs|convolution|depthwise|downsample|upsample|patch_embed\w*|patch_embd)", re.I
)
_RNN = re.compile(r"(^|[._])(weight_[ih]h(_l\d+)?(_reverse)?|lstm|gru|rnn)([._]|$)", re.I)
_ATTENTION = re.compile(
    r"(^|[._/])(attn|attention|self_attn|cross_attn|q_proj|qkv|in_proj|to_q|query|attn_q|attn_qkv|self_attention)([._/\d]|$)",
    re.I,
)
_TABLE = re.compile(
    r"emb(d|ed(ding)?s?)?([._]|$)|(^|[._])(wte|wpe|token_types?|position\w*|pos_\w+)([._]|$)|norm", re.I
)
_MATRIX_NAME = re.compile(
    r"(^|[._/])(weight|kernel|qweight|w\d?|in_proj_weight|out_proj)(:0)?$|weight_[ih]h(_l\d+)?(_reverse)?$", re.I
)
_PATCH = re.compile(r"patch_emb\w*", re.I)
"""vision transformers cut an image into patches by a convolution"""
_MAX_NAME = 1_024
_MAX_SIDE = 64
"""elements of one side of a convolution kernel; larger ones are no kernels but tables"""


def use_of(name: str, shape: Sequence[int]) -> TensorUse | None:
    """What one weight is for, or None where name and shape do not tell."""
    rank = len(shape)
    if rank < 2 or not _MATRIX_NAME.search(name) or any(side <= 0 for side in shape):
        return None
    if rank in (4, 5):
        # PyTorch (out, in, h, w); Keras and TensorFlow (h, w, in, out); ggml (w, h, in, out)
        spatial = min(max(shape[2:]), max(shape[: rank - 2]))
        return "convolution" if spatial <= _MAX_SIDE and not _TABLE.search(_PATCH.sub("", name)) else None
    if rank == 3:
        return "convolution" if _CONV.search(name) and min(shape[0], shape[-1]) <= _MAX_SIDE else None
    if _RNN.search(name):
        return "rnn"
    if _ATTENTION.search(name):
        return "attention"
    return None if min(shape) < 2 or _TABLE.search(name) else "matrix"


def group(tensors: Iterable[tuple[str, Sequence[int]]]) -> tuple[TensorGroup, ...]:
    """The weights counted by use, in the order of first sight, each with its first as the example."""
    counts: dict[TensorUse, int] = {}
    examples: dict[TensorUse, str] = {}
    for name, shape in tensors:
        if len(name) > _MAX_NAME or any(not 0 <= side < 1 << 63 for side in shape):
            continue
        use = use_of(name, shape)
        if use is not None:
            counts[use] = counts.get(use, 0) + 1
            examples.setdefault(use, f"{name[:120]} {'x'.join(map(str, shape))}")
    return tuple(TensorGroup(use, count, examples[use]) for use, count in counts.items())
