/* The part of NVIDIA's driver API that we call, found at run time. Names and types are those of cuda.h. */
#ifndef GPUKERNEL_DRIVER_H
#define GPUKERNEL_DRIVER_H

#include <stddef.h>

typedef unsigned long long cuda_pointer;

typedef struct cuda_driver {
    int (*init)(unsigned flags);
    int (*driver_get_version)(int *version);
    int (*device_get_count)(int *count);
    int (*device_get_name)(char *name, int length, int device);
    int (*device_get_attribute)(int *value, int attribute, int device);
    int (*ctx_create)(void **context, unsigned flags, int device);
    int (*ctx_destroy)(void *context);
    int (*synchronize)(void);
    int (*module_load_data)(void **module, const void *image);
    int (*module_get_function)(void **function, void *module, const char *name);
    int (*mem_alloc)(cuda_pointer *pointer, size_t bytes);
    int (*memcpy_to_device)(cuda_pointer target, const void *source, size_t bytes);
    int (*memcpy_to_host)(void *target, cuda_pointer source, size_t bytes);
    int (*launch)(void *function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x, unsigned block_y,
                  unsigned block_z, unsigned shared, void *stream, void **arguments, void **extra);
    int (*event_create)(void **event, unsigned flags);
    int (*event_record)(void *event, void *stream);
    int (*event_synchronize)(void *event);
    int (*event_elapsed_time)(float *milliseconds, void *start, void *stop);
    int (*get_error_string)(int error, const char **text);
} cuda_driver;

/* Find the driver's library and its functions. Returns 0, or 1 with a sentence in `message`. */
int driver_open(cuda_driver *driver, char *message, size_t size);

/* `what`, and what the driver says of an error. */
void driver_message(const cuda_driver *driver, int error, const char *what, char *message, size_t size);

#endif
