/* A 32-bit program on the driver API: lists the devices. */
#include "check.h"
#include "cuda_api.h"

int main(void) {
    int version = 0, devices = 0;
    CHECK(cuInit(0));
    CHECK(cuDriverGetVersion(&version));
    CHECK(cuDeviceGetCount(&devices));
    for (int ordinal = 0; ordinal < devices; ordinal++) {
        CUdevice device;
        char name[256] = "";
        CHECK(cuDeviceGet(&device, ordinal));
        CHECK(cuDeviceGetName(name, sizeof name, device));
        printf("%d: %s\n", ordinal, name);
    }
    printf("%d device(s), CUDA %d.%d\n", devices, version / 1000, version % 1000 / 10);
    return 0;
}
