.include "thunk.inc"
thunk c10_torch_check_fail, "?torchCheckFail@detail@c10@@YAXPEBD0I0@Z"
