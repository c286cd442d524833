/* A LibTorch image model: convolutions, and nothing it could do without them. */
#include <stdio.h>

int torch_cuda_is_available(void), at_cuda_warp_size(void);
int conv2d_impl(void), conv2d_impl_forward(void), at_conv2d(void), at_relu(void);

int main(void) {
    if (!(torch_cuda_is_available() & 1)) {
        fprintf(stderr, "torch::cuda::is_available() says no\n");
        return 1;
    }
    printf("warp size %d\n", at_cuda_warp_size());
    int (*const step[])(void) = {conv2d_impl, conv2d_impl_forward, at_conv2d, at_relu};
    for (size_t i = 0; i < sizeof step / sizeof *step; i++) step[i]();
    return 0;
}
