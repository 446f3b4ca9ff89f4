/* The part of NVIDIA's driver API that we call, found at run time. Names and numbers are those of cuda.h and nvml.h. */
#ifndef GPUPROBE_DRIVER_H
#define GPUPROBE_DRIVER_H

#include <stddef.h>

#if defined(_WIN32)
#  define GPUPROBE_CALL __stdcall
#else
#  define GPUPROBE_CALL
#endif

enum {
    CUDA_SUCCESS = 0,
    CUDA_ERROR_NO_DEVICE = 100,
    CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT = 16,
    CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR = 75,
    CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR = 76
};

typedef struct cuda_driver {
    int(GPUPROBE_CALL *init)(unsigned int flags);
    int(GPUPROBE_CALL *driver_get_version)(int *version);
    int(GPUPROBE_CALL *device_get_count)(int *count);
    int(GPUPROBE_CALL *device_get)(int *device, int ordinal);
    int(GPUPROBE_CALL *device_get_name)(char *name, int length, int device);
    int(GPUPROBE_CALL *device_get_attribute)(int *value, int attribute, int device);
    /* Not in every driver: may be null. */
    int(GPUPROBE_CALL *device_total_mem)(size_t *bytes, int device);
    int(GPUPROBE_CALL *device_get_pci_bus_id)(char *id, int length, int device);
    int(GPUPROBE_CALL *get_error_string)(int error, const char **text);
} cuda_driver;

/* Find the driver. Returns an enum gpuprobe_status: GPUPROBE_FOUND, GPUPROBE_NO_DRIVER or GPUPROBE_DRIVER_ERROR, with a
 * sentence in `message` for the last two. */
int gpuprobe_open_driver(cuda_driver *driver, char *message, size_t size);

/* The driver's own version ("575.51.03") from NVML, or else from the kernel module; empty when neither says. */
void gpuprobe_driver_version(char *version, size_t size);

#endif
