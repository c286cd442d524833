/* What torch_cuda.dll of a CUDA 12 build imports, in small: every CUDA library, whatever the program uses of it. */
#define EACH(X)                                                                                                        \
    X(cudaGetDeviceCount) X(cudaMalloc) X(cudaFree) X(cudaMemcpyAsync) X(cudaLaunchKernel)                             \
    X(cublasCreate_v2) X(cublasDestroy_v2) X(cublasSetStream_v2) X(cublasSgemm_v2) X(cublasGemmEx)                     \
    X(cublasGemmStridedBatchedEx)                                                                                      \
    X(cublasLtCreate) X(cublasLtDestroy) X(cublasLtMatmul) X(cublasLtMatmulAlgoGetHeuristic)                           \
    X(cudnnCreate) X(cudnnDestroy) X(cudnnSetStream) X(cudnnConvolutionForward) X(cudnnConvolutionBackwardData)        \
    X(cudnnConvolutionBackwardFilter) X(cudnnBackendExecute) X(cudnnRNNForward)                                        \
    X(cufftCreate) X(cufftXtMakePlanMany) X(cufftXtExec) X(cufftDestroy)                                               \
    X(cusparseCreate) X(cusparseDestroy) X(cusparseSpMM)                                                               \
    X(c10_torch_check_fail) X(c10_cuda_check)

#define DECLARE(name) void name(void);
#define ADDRESS(name) name,
EACH(DECLARE)
void (*const needs[])(void) = {EACH(ADDRESS)};
