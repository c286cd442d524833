/* c10_cuda.dll: the CUDA runtime and c10.dll. */
void cudaGetDeviceCount(void);
void cudaMalloc(void);
void cudaFree(void);
void c10_torch_check_fail(void);
void (*const needs[])(void) = {cudaGetDeviceCount, cudaMalloc, cudaFree, c10_torch_check_fail};
