/* FFT only: the CUDA runtime and cuFFT, both loaded at start. */
#include "fft.h"

int main(void) {
    open_device();
    printf("first bin: %g (16 is right)\n", transform());
    return 0;
}
