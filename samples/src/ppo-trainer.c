/* A LibTorch trainer that multiplies matrices and never convolves: linear layers, addmm, Adam. */
#include <stdio.h>

int torch_cuda_is_available(void), at_cuda_warp_size(void);
int linear_impl(void), linear_impl_forward(void), at_linear(void), at_addmm(void), at_tanh(void), adam_step(void);

int main(void) {
    if (!(torch_cuda_is_available() & 1)) {
        fprintf(stderr, "torch::cuda::is_available() says no\n");
        return 1;
    }
    printf("warp size %d\n", at_cuda_warp_size());
    int (*const step[])(void) = {linear_impl, linear_impl_forward, at_linear, at_addmm, at_tanh, adam_step};
    for (size_t i = 0; i < sizeof step / sizeof *step; i++) step[i]();
    return 0;
}
