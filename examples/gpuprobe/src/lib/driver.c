/* Opening the driver's libraries. */
#include <stdio.h>
#include <string.h>

#include "driver.h"
#include "gpuprobe.h"

#if defined(_WIN32)
#  include <windows.h>

/* The driver installs its libraries into the system folder; looking nowhere else keeps a planted DLL out. */
static void *open_library(const char *name)
{
    return (void *)LoadLibraryExA(name, NULL, LOAD_LIBRARY_SEARCH_SYSTEM32);
}

static void find_function(void *library, const char *name, void *function, size_t size)
{
    FARPROC found = GetProcAddress((HMODULE)library, name);
    memcpy(function, &found, size);
}

static const char *const cuda_libraries[] = {"nvcuda.dll", NULL};
static const char *const nvml_libraries[] = {"nvml.dll", NULL};

#else
#  include <dlfcn.h>

static void *open_library(const char *name)
{
    return dlopen(name, RTLD_NOW | RTLD_LOCAL);
}

/* ISO C has no conversion from the void * of dlsym to a function pointer; POSIX says that the bytes are the same. */
static void find_function(void *library, const char *name, void *function, size_t size)
{
    void *found = dlsym(library, name);
    memcpy(function, &found, size);
}

/* The second of each is where the Windows Subsystem for Linux keeps it, which ldconfig does not always know. */
static const char *const cuda_libraries[] = {"libcuda.so.1", "/usr/lib/wsl/lib/libcuda.so.1", NULL};
static const char *const nvml_libraries[] = {"libnvidia-ml.so.1", "/usr/lib/wsl/lib/libnvidia-ml.so.1", NULL};
#endif

static void *open_first(const char *const *names)
{
    void *library = NULL;
    for (; *names != NULL && library == NULL; names++)
        library = open_library(*names);
    return library;
}

#define FIND(library, name, member) find_function((library), (name), &(member), sizeof(member))

int gpuprobe_open_driver(cuda_driver *driver, char *message, size_t size)
{
    /* Never closed: the driver starts threads of its own, and unloading it under them ends the process. */
    void *library = open_first(cuda_libraries);

    memset(driver, 0, sizeof *driver);
    if (library == NULL) {
        snprintf(message, size, "no GPU driver: %s was not found", cuda_libraries[0]);
        return GPUPROBE_NO_DRIVER;
    }
    FIND(library, "cuInit", driver->init);
    FIND(library, "cuDriverGetVersion", driver->driver_get_version);
    FIND(library, "cuDeviceGetCount", driver->device_get_count);
    FIND(library, "cuDeviceGet", driver->device_get);
    FIND(library, "cuDeviceGetName", driver->device_get_name);
    FIND(library, "cuDeviceGetAttribute", driver->device_get_attribute);
    FIND(library, "cuDeviceTotalMem_v2", driver->device_total_mem);
    FIND(library, "cuDeviceGetPCIBusId", driver->device_get_pci_bus_id);
    FIND(library, "cuGetErrorString", driver->get_error_string);
    if (!driver->init || !driver->driver_get_version || !driver->device_get_count || !driver->device_get ||
        !driver->device_get_name || !driver->device_get_attribute) {
        snprintf(message, size, "%s was found and is no CUDA driver: functions are missing", cuda_libraries[0]);
        return GPUPROBE_DRIVER_ERROR;
    }
    return GPUPROBE_FOUND;
}

static int version_from_nvml(char *version, size_t size)
{
    int (*init)(void) = NULL;
    int (*get_version)(char *, unsigned int) = NULL;
    int (*shutdown)(void) = NULL;
    int found;
    void *library = open_first(nvml_libraries);

    if (library == NULL)
        return 0;
    FIND(library, "nvmlInit_v2", init);
    FIND(library, "nvmlSystemGetDriverVersion", get_version);
    FIND(library, "nvmlShutdown", shutdown);
    if (!init || !get_version || !shutdown || init() != 0)
        return 0;
    found = get_version(version, (unsigned int)size) == 0;
    shutdown();
    return found;
}

/* The first word of `line` that looks like 575.51.03. */
static int first_version(char *line, char *version, size_t size)
{
    char *word;
    for (word = strtok(line, " \t\r\n"); word != NULL; word = strtok(NULL, " \t\r\n")) {
        size_t length = strspn(word, "0123456789.");
        if (length >= 4 && word[length] == '\0' && strchr(word, '.') != NULL && word[0] != '.' && length < size) {
            memcpy(version, word, length + 1);
            return 1;
        }
    }
    return 0;
}

/* Containers without NVML still see the kernel module: "NVRM version: NVIDIA UNIX x86_64 Kernel Module  575.51.03 …". */
static int version_from_kernel(char *version, size_t size)
{
    char line[512];
    int found = 0;
    FILE *file = fopen("/proc/driver/nvidia/version", "r");

    if (file == NULL)
        return 0;
    if (fgets(line, sizeof line, file) != NULL)
        found = first_version(line, version, size);
    fclose(file);
    return found;
}

void gpuprobe_driver_version(char *version, size_t size)
{
    if (version_from_nvml(version, size)) {
        version[size - 1] = '\0';
        return;
    }
    if (!version_from_kernel(version, size))
        version[0] = '\0';
}
