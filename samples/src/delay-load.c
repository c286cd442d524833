/* GEMM always, FFT on request: cuFFT is delay-loaded, so that it is looked for at the first call only. */
#include <string.h>

#include "fft.h"
#include "gemm.h"

int main(int argc, char **argv) {
    open_device();
    printf("sum of the product: %g (120 is right)\n", multiply());
    if (argc == 2 && strcmp(argv[1], "--spectrum") == 0) printf("first bin: %g (16 is right)\n", transform());
    return 0;
}
