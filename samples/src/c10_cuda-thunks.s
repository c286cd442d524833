.include "thunk.inc"
thunk c10_cuda_check, "?c10_cuda_check_implementation@cuda@c10@@YAXHPEBD0H_N@Z"
