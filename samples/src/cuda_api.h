/* The few CUDA declarations that the samples need: names, argument types and enumerator values of the public API.
 * NVIDIA's headers are not redistributable, so these are written out here and link against the .def files in def/. */
#ifndef CUDA_API_H
#define CUDA_API_H
#include <stddef.h>

#define CUDA_CALL __stdcall /* CUDAAPI and CUDARTAPI on Windows; matters for 32-bit code only */

/* driver */
typedef int CUdevice;
typedef size_t CUdeviceptr; /* as wide as a pointer of the program */
typedef struct CUctx_st *CUcontext;
typedef struct CUmod_st *CUmodule;
typedef struct CUfunc_st *CUfunction;
typedef struct CUstream_st *CUstream;
typedef struct CUgraphicsResource_st *CUgraphicsResource;
int CUDA_CALL cuInit(unsigned flags);
int CUDA_CALL cuDriverGetVersion(int *version);
int CUDA_CALL cuDeviceGet(CUdevice *device, int ordinal);
int CUDA_CALL cuDeviceGetCount(int *count);
int CUDA_CALL cuDeviceGetName(char *name, int length, CUdevice device);
int CUDA_CALL cuCtxCreate_v2(CUcontext *context, unsigned flags, CUdevice device);
int CUDA_CALL cuCtxDestroy_v2(CUcontext context);
int CUDA_CALL cuCtxSynchronize(void);
int CUDA_CALL cuModuleLoadData(CUmodule *module, const void *image);
int CUDA_CALL cuModuleUnload(CUmodule module);
int CUDA_CALL cuModuleGetFunction(CUfunction *function, CUmodule module, const char *name);
int CUDA_CALL cuMemAlloc_v2(CUdeviceptr *address, size_t bytes);
int CUDA_CALL cuMemFree_v2(CUdeviceptr address);
int CUDA_CALL cuMemcpyHtoD_v2(CUdeviceptr to, const void *from, size_t bytes);
int CUDA_CALL cuMemcpyDtoH_v2(void *to, CUdeviceptr from, size_t bytes);
int CUDA_CALL cuLaunchKernel(CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
                             unsigned block_y, unsigned block_z, unsigned shared_bytes, CUstream stream, void **params,
                             void **extra);
int CUDA_CALL cuGraphicsD3D11RegisterResource(CUgraphicsResource *resource, void *d3d_resource, unsigned flags);

/* runtime */
enum { cudaMemcpyHostToDevice = 1, cudaMemcpyDeviceToHost = 2 };
typedef CUstream cudaStream_t;
int CUDA_CALL cudaGetDeviceCount(int *count);
int CUDA_CALL cudaSetDevice(int device);
int CUDA_CALL cudaMalloc(void **address, size_t bytes);
int CUDA_CALL cudaFree(void *address);
int CUDA_CALL cudaMemcpyAsync(void *to, const void *from, size_t bytes, int kind, cudaStream_t stream);
int CUDA_CALL cudaStreamSynchronize(cudaStream_t stream);
const char *CUDA_CALL cudaGetErrorString(int error);

/* cuBLAS */
typedef struct cublasContext *cublasHandle_t;
enum { CUBLAS_OP_N = 0 };
int cublasCreate_v2(cublasHandle_t *handle);
int cublasDestroy_v2(cublasHandle_t handle);
int cublasSetStream_v2(cublasHandle_t handle, cudaStream_t stream);
int cublasSgemm_v2(cublasHandle_t handle, int trans_a, int trans_b, int m, int n, int k, const float *alpha,
                   const float *a, int lda, const float *b, int ldb, const float *beta, float *c, int ldc);

/* cuDNN 9 */
typedef struct cudnnContext *cudnnHandle_t;
typedef void *cudnnDescriptor_t; /* tensor, filter and convolution descriptors are opaque pointers alike */
enum { CUDNN_TENSOR_NCHW = 0, CUDNN_DATA_FLOAT = 0, CUDNN_CROSS_CORRELATION = 1, CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_GEMM = 0 };
int cudnnCreate(cudnnHandle_t *handle);
int cudnnDestroy(cudnnHandle_t handle);
const char *cudnnGetErrorString(int status);
int cudnnCreateTensorDescriptor(cudnnDescriptor_t *tensor);
int cudnnSetTensor4dDescriptor(cudnnDescriptor_t tensor, int format, int type, int n, int c, int h, int w);
int cudnnDestroyTensorDescriptor(cudnnDescriptor_t tensor);
int cudnnCreateFilterDescriptor(cudnnDescriptor_t *filter);
int cudnnSetFilter4dDescriptor(cudnnDescriptor_t filter, int type, int format, int k, int c, int h, int w);
int cudnnDestroyFilterDescriptor(cudnnDescriptor_t filter);
int cudnnCreateConvolutionDescriptor(cudnnDescriptor_t *convolution);
int cudnnSetConvolution2dDescriptor(cudnnDescriptor_t convolution, int pad_h, int pad_w, int stride_h, int stride_w,
                                    int dilation_h, int dilation_w, int mode, int type);
int cudnnDestroyConvolutionDescriptor(cudnnDescriptor_t convolution);
int cudnnGetConvolutionForwardWorkspaceSize(cudnnHandle_t handle, cudnnDescriptor_t x, cudnnDescriptor_t w,
                                            cudnnDescriptor_t convolution, cudnnDescriptor_t y, int algorithm,
                                            size_t *bytes);
int cudnnConvolutionForward(cudnnHandle_t handle, const void *alpha, cudnnDescriptor_t x_desc, const void *x,
                            cudnnDescriptor_t w_desc, const void *w, cudnnDescriptor_t convolution, int algorithm,
                            void *workspace, size_t workspace_bytes, const void *beta, cudnnDescriptor_t y_desc, void *y);

/* cuFFT */
typedef int cufftHandle;
enum { CUFFT_C2C = 0x29, CUFFT_FORWARD = -1 };
int CUDA_CALL cufftPlan1d(cufftHandle *plan, int points, int type, int batch);
int CUDA_CALL cufftExecC2C(cufftHandle plan, void *in, void *out, int direction);
int CUDA_CALL cufftDestroy(cufftHandle plan);

#endif
