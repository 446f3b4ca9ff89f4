/* What this build was made for, and what the driver says of this machine. */
#include "gpuprobe.h"

#include <stdio.h>
#include <string.h>

#include "driver.h"

#ifndef GPUPROBE_CUDA_VERSION
#  define GPUPROBE_CUDA_VERSION "none"
#endif
#ifndef GPUPROBE_ARCHITECTURES
#  define GPUPROBE_ARCHITECTURES ""
#endif

int gpuprobe_abi(void)
{
    return GPUPROBE_ABI;
}

const char *gpuprobe_version(void)
{
    return GPUPROBE_VERSION;
}

const char *gpuprobe_cuda_version(void)
{
    return GPUPROBE_CUDA_VERSION;
}

const char *gpuprobe_architectures(void)
{
    return GPUPROBE_ARCHITECTURES;
}

const char *gpuprobe_status_name(int status)
{
    switch (status) {
    case GPUPROBE_FOUND:
        return "found";
    case GPUPROBE_NO_DRIVER:
        return "no driver";
    case GPUPROBE_NO_DEVICE:
        return "no device";
    default:
        return "driver error";
    }
}

static int fail(gpuprobe_report *report, const cuda_driver *driver, const char *call, int error)
{
    const char *text = NULL;

    report->status = error == CUDA_ERROR_NO_DEVICE ? GPUPROBE_NO_DEVICE : GPUPROBE_DRIVER_ERROR;
    if (driver->get_error_string != NULL && driver->get_error_string(error, &text) != CUDA_SUCCESS)
        text = NULL;
    if (report->status == GPUPROBE_NO_DEVICE)
        snprintf(report->message, sizeof report->message, "the driver has no GPU for this process");
    else
        snprintf(report->message, sizeof report->message, "%s failed with error %d%s%s", call, error, text ? ": " : "",
                 text ? text : "");
    return report->status;
}

/* Fill in one device. Returns CUDA_SUCCESS or the driver's error, with the call that gave it in `call`. */
static int describe_device(const cuda_driver *driver, int ordinal, int driver_cuda, gpuprobe_device *out, const char **call)
{
    int error, device, major, minor, value;
    size_t bytes;

    *call = "cuDeviceGet";
    if ((error = driver->device_get(&device, ordinal)) != CUDA_SUCCESS)
        return error;
    *call = "cuDeviceGetName";
    if ((error = driver->device_get_name(out->name, (int)sizeof out->name, device)) != CUDA_SUCCESS)
        return error;
    out->name[sizeof out->name - 1] = '\0';
    *call = "cuDeviceGetAttribute";
    if ((error = driver->device_get_attribute(&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, device)) != CUDA_SUCCESS)
        return error;
    if ((error = driver->device_get_attribute(&minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, device)) != CUDA_SUCCESS)
        return error;
    out->major = major;
    out->minor = minor;
    /* What follows is good to know and no reason to fail. */
    if (driver->device_get_attribute(&value, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, device) == CUDA_SUCCESS)
        out->multiprocessors = value;
    if (driver->device_total_mem != NULL && driver->device_total_mem(&bytes, device) == CUDA_SUCCESS)
        out->memory = bytes;
    if (driver->device_get_pci_bus_id == NULL ||
        driver->device_get_pci_bus_id(out->pci_bus_id, (int)sizeof out->pci_bus_id, device) != CUDA_SUCCESS)
        out->pci_bus_id[0] = '\0';
    out->pci_bus_id[sizeof out->pci_bus_id - 1] = '\0';
    gpuprobe_match_build(GPUPROBE_CUDA_VERSION, GPUPROBE_ARCHITECTURES, major, minor, driver_cuda, &out->match);
    return CUDA_SUCCESS;
}

int gpuprobe_probe(gpuprobe_report *report)
{
    cuda_driver driver;
    const char *call = NULL;
    int error, count, i, version;

    memset(report, 0, sizeof *report);
    report->status = gpuprobe_open_driver(&driver, report->message, sizeof report->message);
    if (report->status != GPUPROBE_FOUND)
        return report->status;
    gpuprobe_driver_version(report->driver_version, sizeof report->driver_version);
    /* Works before cuInit, so that a machine without a usable GPU still names its driver. */
    if (driver.driver_get_version(&version) == CUDA_SUCCESS)
        report->driver_cuda = version;
    if ((error = driver.init(0)) != CUDA_SUCCESS)
        return fail(report, &driver, "cuInit", error);
    if ((error = driver.device_get_count(&count)) != CUDA_SUCCESS)
        return fail(report, &driver, "cuDeviceGetCount", error);
    if (count <= 0)
        return fail(report, &driver, "cuDeviceGetCount", CUDA_ERROR_NO_DEVICE);
    for (i = 0; i < count && i < GPUPROBE_MAX_DEVICES; i++) {
        error = describe_device(&driver, i, report->driver_cuda, &report->devices[i], &call);
        if (error != CUDA_SUCCESS)
            return fail(report, &driver, call, error);
        report->device_count = i + 1;
    }
    return report->status;
}
