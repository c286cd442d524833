/* No CUDA in the import table: nvcuda.dll and its functions are looked up by name, as a static CUDA runtime does. */
#include <stdio.h>
#include <windows.h>

typedef int(__stdcall *init_fn)(unsigned);
typedef int(__stdcall *version_fn)(int *);
typedef int(__stdcall *count_fn)(int *);
typedef int(__stdcall *get_fn)(int *, int);
typedef int(__stdcall *name_fn)(char *, int, int);

static FARPROC need(HMODULE driver, const char *name) {
    FARPROC function = GetProcAddress(driver, name);
    if (function == NULL) {
        fprintf(stderr, "nvcuda.dll has no %s\n", name);
        exit(1);
    }
    return function;
}

int main(void) {
    HMODULE driver = LoadLibraryA("nvcuda.dll");
    if (driver == NULL) {
        fprintf(stderr, "nvcuda.dll cannot be loaded (error %lu): no CUDA driver\n", GetLastError());
        return 1;
    }
    init_fn init = (init_fn)(void *)need(driver, "cuInit");
    version_fn version = (version_fn)(void *)need(driver, "cuDriverGetVersion");
    count_fn count = (count_fn)(void *)need(driver, "cuDeviceGetCount");
    get_fn get = (get_fn)(void *)need(driver, "cuDeviceGet");
    name_fn get_name = (name_fn)(void *)need(driver, "cuDeviceGetName");
    int error = init(0), supported = 0, devices = 0;
    if (error != 0 || (error = version(&supported)) != 0 || (error = count(&devices)) != 0) {
        fprintf(stderr, "the CUDA driver refuses: error %d\n", error);
        return 1;
    }
    for (int ordinal = 0; ordinal < devices; ordinal++) {
        int device = 0;
        char name[256] = "";
        if (get(&device, ordinal) == 0 && get_name(name, sizeof name, device) == 0) printf("%d: %s\n", ordinal, name);
    }
    printf("%d device(s), CUDA %d.%d\n", devices, supported / 1000, supported % 1000 / 10);
    return 0;
}
