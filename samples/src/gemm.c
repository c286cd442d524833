/* Dense GEMM only: the CUDA runtime and cuBLAS. */
#include "gemm.h"

int main(void) {
    open_device();
    printf("sum of the product: %g (120 is right)\n", multiply());
    return 0;
}
