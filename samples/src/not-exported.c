/* Shares a Direct3D 11 texture with CUDA: imports a function that no ZLUDA release exports. */
#include "check.h"
#include "cuda_api.h"

int main(void) {
    CUdevice device;
    CUcontext context;
    CUgraphicsResource resource;
    CHECK(cuInit(0));
    CHECK(cuDeviceGet(&device, 0));
    CHECK(cuCtxCreate_v2(&context, 0, device));
    /* A null texture is refused by a driver; what matters here is that the loader has to find the function. */
    printf("cuGraphicsD3D11RegisterResource: %d\n", cuGraphicsD3D11RegisterResource(&resource, NULL, 0));
    CHECK(cuCtxDestroy_v2(context));
    return 0;
}
