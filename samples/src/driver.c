/* The driver API alone: linked against nvcuda.dll, with its kernel carried as PTX text. */
#include "check.h"
#include "cuda_api.h"
#include "vector_add.h"

int main(void) {
    enum { COUNT = 64 };
    float a[COUNT], b[COUNT], sum[COUNT] = {0};
    for (int i = 0; i < COUNT; i++) a[i] = (float)i, b[i] = (float)(COUNT - i);

    int devices = 0;
    char name[256] = "";
    CUdevice device;
    CUcontext context;
    CUmodule module;
    CUfunction kernel;
    CUdeviceptr da, db, dsum;
    CHECK(cuInit(0));
    CHECK(cuDeviceGetCount(&devices));
    if (devices == 0) {
        fprintf(stderr, "no CUDA device\n");
        return 1;
    }
    CHECK(cuDeviceGet(&device, 0));
    CHECK(cuDeviceGetName(name, sizeof name, device));
    CHECK(cuCtxCreate_v2(&context, 0, device));
    CHECK(cuModuleLoadData(&module, VECTOR_ADD_PTX));
    CHECK(cuModuleGetFunction(&kernel, module, "vector_add"));
    CHECK(cuMemAlloc_v2(&da, sizeof a));
    CHECK(cuMemAlloc_v2(&db, sizeof b));
    CHECK(cuMemAlloc_v2(&dsum, sizeof sum));
    CHECK(cuMemcpyHtoD_v2(da, a, sizeof a));
    CHECK(cuMemcpyHtoD_v2(db, b, sizeof b));
    int count = COUNT;
    void *params[] = {&da, &db, &dsum, &count};
    CHECK(cuLaunchKernel(kernel, 1, 1, 1, COUNT, 1, 1, 0, NULL, params, NULL));
    CHECK(cuCtxSynchronize());
    CHECK(cuMemcpyDtoH_v2(sum, dsum, sizeof sum));
    CHECK(cuMemFree_v2(dsum));
    CHECK(cuMemFree_v2(db));
    CHECK(cuMemFree_v2(da));
    CHECK(cuModuleUnload(module));
    CHECK(cuCtxDestroy_v2(context));
    int right = 0;
    for (int i = 0; i < COUNT; i++) right += sum[i] == COUNT;
    printf("%s: %d of %d sums are right\n", name, right, COUNT);
    return right == COUNT ? 0 : 1;
}
