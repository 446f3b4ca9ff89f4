/* Opening the driver's library, so that the program starts where there is none. */
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include "driver.h"

/* The second is where the Windows Subsystem for Linux keeps it, which ldconfig does not always know. */
static const char *const libraries[] = {"libcuda.so.1", "/usr/lib/wsl/lib/libcuda.so.1"};

static const struct {
    const char *name;
    size_t place;
} functions[] = {
    {"cuInit", offsetof(cuda_driver, init)},
    {"cuDriverGetVersion", offsetof(cuda_driver, driver_get_version)},
    {"cuDeviceGetCount", offsetof(cuda_driver, device_get_count)},
    {"cuDeviceGetName", offsetof(cuda_driver, device_get_name)},
    {"cuDeviceGetAttribute", offsetof(cuda_driver, device_get_attribute)},
    {"cuCtxCreate_v2", offsetof(cuda_driver, ctx_create)},
    {"cuCtxDestroy_v2", offsetof(cuda_driver, ctx_destroy)},
    {"cuCtxSynchronize", offsetof(cuda_driver, synchronize)},
    {"cuModuleLoadData", offsetof(cuda_driver, module_load_data)},
    {"cuModuleGetFunction", offsetof(cuda_driver, module_get_function)},
    {"cuMemAlloc_v2", offsetof(cuda_driver, mem_alloc)},
    {"cuMemcpyHtoD_v2", offsetof(cuda_driver, memcpy_to_device)},
    {"cuMemcpyDtoH_v2", offsetof(cuda_driver, memcpy_to_host)},
    {"cuLaunchKernel", offsetof(cuda_driver, launch)},
    {"cuEventCreate", offsetof(cuda_driver, event_create)},
    {"cuEventRecord", offsetof(cuda_driver, event_record)},
    {"cuEventSynchronize", offsetof(cuda_driver, event_synchronize)},
    {"cuEventElapsedTime", offsetof(cuda_driver, event_elapsed_time)},
    {"cuGetErrorString", offsetof(cuda_driver, get_error_string)},
};

int driver_open(cuda_driver *driver, char *message, size_t size)
{
    void *library = NULL;

    memset(driver, 0, sizeof *driver);
    for (size_t i = 0; i < sizeof libraries / sizeof *libraries && library == NULL; i++)
        library = dlopen(libraries[i], RTLD_NOW | RTLD_LOCAL);
    if (library == NULL) {
        snprintf(message, size, "%s was not found", libraries[0]);
        return 1;
    }
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
        void *found = dlsym(library, functions[i].name);
        if (found == NULL) {
            snprintf(message, size, "%s has no %s", libraries[0], functions[i].name);
            return 1;
        }
        /* ISO C has no conversion from void * to a function pointer; POSIX says that the bytes are the same. */
        memcpy((char *)driver + functions[i].place, &found, sizeof found);
    }
    return 0;
}

void driver_message(const cuda_driver *driver, int error, const char *what, char *message, size_t size)
{
    const char *text = NULL;
    if (error == 0 || driver->get_error_string(error, &text) != 0 || text == NULL)
        text = "nothing more is known";
    snprintf(message, size, "%.*s: %s (%d)", (int)strcspn(what, "("), what, text, error);
}
