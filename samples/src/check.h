/* Stops with one line on stderr when a call of a CUDA library did not return 0 (success in every one of them). */
#ifndef CHECK_H
#define CHECK_H
#include <stdio.h>
#include <stdlib.h>
#define CHECK(call)                                                                                                    \
    do {                                                                                                               \
        int status_ = (call);                                                                                          \
        if (status_ != 0) {                                                                                            \
            fprintf(stderr, "%s returned %d\n", #call, status_);                                                       \
            exit(1);                                                                                                   \
        }                                                                                                              \
    } while (0)
#endif
