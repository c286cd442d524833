/* Stand-in for NVIDIA's CUDA runtime, which may not be redistributed. Like the real one it looks for the driver by
 * name in System32 alone (flag 0x800). It computes nothing: without a driver it says so, with one it says "not supported". */
#include <stddef.h>
#include <windows.h>

#include "cuda_api.h"

enum { cudaErrorInsufficientDriver = 35, cudaErrorNotSupported = 801, SEARCH_SYSTEM32 = 0x800 };

static int answer(void) {
    return LoadLibraryExA("nvcuda.dll", NULL, SEARCH_SYSTEM32) == NULL ? cudaErrorInsufficientDriver : cudaErrorNotSupported;
}

int CUDA_CALL cudaGetDeviceCount(int *count) {
    *count = 0;
    return answer();
}
int CUDA_CALL cudaSetDevice(int device) { return (void)device, answer(); }
int CUDA_CALL cudaMalloc(void **address, size_t bytes) { return (void)bytes, *address = NULL, answer(); }
int CUDA_CALL cudaFree(void *address) { return (void)address, answer(); }
int CUDA_CALL cudaMemcpyAsync(void *to, const void *from, size_t bytes, int kind, cudaStream_t stream) {
    return (void)to, (void)from, (void)bytes, (void)kind, (void)stream, answer();
}
int CUDA_CALL cudaStreamSynchronize(cudaStream_t stream) { return (void)stream, answer(); }
int CUDA_CALL cudaLaunchKernel(void) { return answer(); }
const char *CUDA_CALL cudaGetErrorString(int error) {
    if (error == 0) return "no error";
    if (error == cudaErrorInsufficientDriver) return "CUDA driver version is insufficient for CUDA runtime version";
    return "operation not supported";
}
