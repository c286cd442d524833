/* Nothing CUDA: the answer has to be no-cuda. */
#include <stdio.h>

int main(void) {
    puts("nothing CUDA here");
    return 0;
}
