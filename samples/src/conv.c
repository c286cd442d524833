/* Convolution is the only thing this program computes: the CUDA runtime and cuDNN 9. */
#include "conv.h"

int main(void) {
    open_device();
    printf("sum of the convolution: %g (324 is right)\n", convolve());
    return 0;
}
