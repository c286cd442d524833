/* What the samples on the CUDA runtime share: find a device, move floats to it and back. */
#ifndef RUNTIME_H
#define RUNTIME_H
#include "check.h"
#include "cuda_api.h"

static inline void open_device(void) {
    int count = 0;
    int error = cudaGetDeviceCount(&count);
    if (error != 0 || count == 0) {
        fprintf(stderr, "no CUDA device: %s\n", error ? cudaGetErrorString(error) : "the count is 0");
        exit(1);
    }
    CHECK(cudaSetDevice(0));
}

static inline float *to_device(const float *values, size_t count) {
    void *address = NULL;
    CHECK(cudaMalloc(&address, count * sizeof(float)));
    CHECK(cudaMemcpyAsync(address, values, count * sizeof(float), cudaMemcpyHostToDevice, NULL));
    return address;
}

static inline void from_device(float *values, float *address, size_t count) {
    CHECK(cudaMemcpyAsync(values, address, count * sizeof(float), cudaMemcpyDeviceToHost, NULL));
    CHECK(cudaStreamSynchronize(NULL));
    CHECK(cudaFree(address));
}
#endif
