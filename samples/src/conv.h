/* A 3 x 3 convolution over an 8 x 8 image through cuDNN; returns the sum of the 6 x 6 result. */
#ifndef CONV_H
#define CONV_H
#include "runtime.h"

static inline float convolve(void) {
    enum { SIDE = 8, K = 3, OUT = SIDE - K + 1 };
    float image[SIDE * SIDE], filter[K * K], result[OUT * OUT] = {0};
    for (int i = 0; i < SIDE * SIDE; i++) image[i] = 1;
    for (int i = 0; i < K * K; i++) filter[i] = 1; /* every result is 9, the sum 324 */
    const float one = 1, zero = 0;
    float *dx = to_device(image, SIDE * SIDE), *dw = to_device(filter, K * K), *dy = to_device(result, OUT * OUT);

    cudnnHandle_t handle;
    cudnnDescriptor_t x, w, y, convolution;
    CHECK(cudnnCreate(&handle));
    CHECK(cudnnCreateTensorDescriptor(&x));
    CHECK(cudnnCreateTensorDescriptor(&y));
    CHECK(cudnnCreateFilterDescriptor(&w));
    CHECK(cudnnCreateConvolutionDescriptor(&convolution));
    CHECK(cudnnSetTensor4dDescriptor(x, CUDNN_TENSOR_NCHW, CUDNN_DATA_FLOAT, 1, 1, SIDE, SIDE));
    CHECK(cudnnSetTensor4dDescriptor(y, CUDNN_TENSOR_NCHW, CUDNN_DATA_FLOAT, 1, 1, OUT, OUT));
    CHECK(cudnnSetFilter4dDescriptor(w, CUDNN_DATA_FLOAT, CUDNN_TENSOR_NCHW, 1, 1, K, K));
    CHECK(cudnnSetConvolution2dDescriptor(convolution, 0, 0, 1, 1, 1, 1, CUDNN_CROSS_CORRELATION, CUDNN_DATA_FLOAT));

    size_t bytes = 0;
    void *workspace = NULL;
    const int algorithm = CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_GEMM;
    CHECK(cudnnGetConvolutionForwardWorkspaceSize(handle, x, w, convolution, y, algorithm, &bytes));
    if (bytes) CHECK(cudaMalloc(&workspace, bytes));
    int status = cudnnConvolutionForward(handle, &one, x, dx, w, dw, convolution, algorithm, workspace, bytes, &zero, y, dy);
    if (status != 0) {
        fprintf(stderr, "cudnnConvolutionForward: %s\n", cudnnGetErrorString(status));
        exit(1);
    }
    from_device(result, dy, OUT * OUT);
    if (workspace) CHECK(cudaFree(workspace));
    CHECK(cudnnDestroyConvolutionDescriptor(convolution));
    CHECK(cudnnDestroyFilterDescriptor(w));
    CHECK(cudnnDestroyTensorDescriptor(y));
    CHECK(cudnnDestroyTensorDescriptor(x));
    CHECK(cudnnDestroy(handle));
    float sum = 0;
    for (int i = 0; i < OUT * OUT; i++) sum += result[i];
    return sum;
}
#endif
