/* C = A * B for 4 x 4 matrices through cuBLAS; returns the sum of C. */
#ifndef GEMM_H
#define GEMM_H
#include "runtime.h"

static inline float multiply(void) {
    enum { N = 4 };
    float a[N * N], b[N * N], c[N * N] = {0};
    for (int i = 0; i < N * N; i++) {
        a[i] = (float)i;
        b[i] = i % (N + 1) == 0; /* identity, so that the sum is known: 120 */
    }
    const float one = 1, zero = 0;
    float *da = to_device(a, N * N), *db = to_device(b, N * N), *dc = to_device(c, N * N);
    cublasHandle_t handle;
    CHECK(cublasCreate_v2(&handle));
    CHECK(cublasSetStream_v2(handle, NULL));
    CHECK(cublasSgemm_v2(handle, CUBLAS_OP_N, CUBLAS_OP_N, N, N, N, &one, da, N, db, N, &zero, dc, N));
    from_device(c, dc, N * N);
    CHECK(cublasDestroy_v2(handle));
    CHECK(cudaFree(da));
    CHECK(cudaFree(db));
    float sum = 0;
    for (int i = 0; i < N * N; i++) sum += c[i];
    return sum;
}
#endif
