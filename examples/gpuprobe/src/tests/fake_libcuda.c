/* A libcuda.so.1 for machines without a GPU: it answers as the environment says.
 *   FAKE_CUDA_VERSION=12090   what cuDriverGetVersion says
 *   FAKE_CUDA_INIT=100        what cuInit returns
 *   FAKE_CUDA_DEVICES="NVIDIA GeForce RTX 3080|8.6;Tesla T4|7.5"
 *   FAKE_CUDA_BROKEN=1        cuDeviceGetName fails with error 999 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *device_text(int device)
{
    const char *at = getenv("FAKE_CUDA_DEVICES");
    for (; at != NULL && device > 0; device--) {
        at = strchr(at, ';');
        if (at != NULL)
            at++;
    }
    return at;
}

int cuInit(unsigned int flags)
{
    (void)flags;
    return getenv("FAKE_CUDA_INIT") ? atoi(getenv("FAKE_CUDA_INIT")) : 0;
}

int cuDriverGetVersion(int *version)
{
    *version = getenv("FAKE_CUDA_VERSION") ? atoi(getenv("FAKE_CUDA_VERSION")) : 12090;
    return 0;
}

int cuDeviceGetCount(int *count)
{
    for (*count = 0; device_text(*count) != NULL && *device_text(*count); ++*count)
        ;
    return 0;
}

int cuDeviceGet(int *device, int ordinal)
{
    *device = ordinal;
    return device_text(ordinal) ? 0 : 101;
}

int cuDeviceGetName(char *name, int length, int device)
{
    const char *text = device_text(device);
    size_t size = strcspn(text, "|");
    if (getenv("FAKE_CUDA_BROKEN"))
        return 999;
    if (size >= (size_t)length)
        size = (size_t)length - 1;
    memcpy(name, text, size);
    name[size] = '\0';
    return 0;
}

int cuDeviceGetAttribute(int *value, int attribute, int device)
{
    int major = 0, minor = 0;
    sscanf(strchr(device_text(device), '|'), "|%d.%d", &major, &minor);
    switch (attribute) {
    case 75:
        *value = major;
        return 0;
    case 76:
        *value = minor;
        return 0;
    case 16:
        *value = 68;
        return 0;
    default:
        return 1;
    }
}

int cuDeviceTotalMem_v2(size_t *bytes, int device)
{
    (void)device;
    *bytes = (size_t)10 << 30;
    return 0;
}

int cuDeviceGetPCIBusId(char *id, int length, int device)
{
    snprintf(id, (size_t)length, "0000:%02X:00.0", device + 1);
    return 0;
}

int cuGetErrorString(int error, const char **text)
{
    *text = error == 999 ? "unknown error" : "another error";
    return 0;
}
