/* Both families; which one runs is the caller's choice, so the import table cannot say. */
#include <string.h>

#include "conv.h"
#include "gemm.h"

int main(int argc, char **argv) {
    if (argc != 2 || (strcmp(argv[1], "gemm") != 0 && strcmp(argv[1], "conv") != 0)) {
        fprintf(stderr, "usage: gemm-and-conv gemm|conv\n");
        return 2;
    }
    open_device();
    if (argv[1][0] == 'g')
        printf("sum of the product: %g (120 is right)\n", multiply());
    else
        printf("sum of the convolution: %g (324 is right)\n", convolve());
    return 0;
}
