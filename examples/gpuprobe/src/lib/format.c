/* The report as text for people and as JSON. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "gpuprobe.h"

/* A buffer that counts on when it is full, as snprintf does. */
typedef struct text {
    char *buffer;
    size_t size;
    size_t length;
} text;

static void add(text *out, const char *format, ...)
{
    va_list arguments;
    int written;
    size_t room = out->length < out->size ? out->size - out->length : 0;

    va_start(arguments, format);
    written = vsnprintf(room ? out->buffer + out->length : NULL, room, format, arguments);
    va_end(arguments);
    if (written > 0)
        out->length += (size_t)written;
}

/* A JSON string; bytes past ASCII are read as Latin-1, so that what comes out is valid whatever the driver said. */
static void add_string(text *out, const char *value)
{
    const unsigned char *at;

    add(out, "\"");
    for (at = (const unsigned char *)value; *at; at++) {
        if (*at == '"' || *at == '\\')
            add(out, "\\%c", *at);
        else if (*at < 0x20 || *at > 0x7e)
            add(out, "\\u%04x", *at);
        else
            add(out, "%c", *at);
    }
    add(out, "\"");
}

static void add_string_or_null(text *out, const char *value)
{
    if (value[0])
        add_string(out, value);
    else
        add(out, "null");
}

/* `list`, joined by commas, with `before` and `after` around each and `between` two of them. */
static void add_list(text *out, const char *list, const char *around, const char *between)
{
    int first = 1;
    while (*list) {
        size_t length = strcspn(list, ", ");
        if (length > 0) {
            add(out, "%s%s%.*s%s", first ? "" : between, around, (int)length, list, around);
            first = 0;
        }
        list += length;
        list += strspn(list, ", ");
    }
}

static int is_cpu_build(void)
{
    return strcmp(gpuprobe_cuda_version(), "none") == 0;
}

static void add_device_json(text *out, const gpuprobe_device *device, int index)
{
    add(out, "%s\n    {\"index\": %d, \"name\": ", index ? "," : "", index);
    add_string(out, device->name);
    add(out, ", \"capability\": \"%d.%d\", \"memory\": %llu, \"multiprocessors\": %d, \"pci_bus_id\": ", device->major,
        device->minor, (unsigned long long)device->memory, device->multiprocessors);
    add_string_or_null(out, device->pci_bus_id);
    add(out, ", \"runs\": \"%s\", \"architecture\": ", gpuprobe_runs_name(device->match.runs));
    add_string_or_null(out, device->match.architecture);
    add(out, ", \"reason\": ");
    add_string_or_null(out, device->match.reason);
    add(out, "}");
}

static void add_json(text *out, const gpuprobe_report *report)
{
    int i;

    add(out, "{\n  \"version\": \"%s\",\n  \"build\": {\"cuda\": ", gpuprobe_version());
    add_string_or_null(out, is_cpu_build() ? "" : gpuprobe_cuda_version());
    add(out, ", \"architectures\": [");
    add_list(out, gpuprobe_architectures(), "\"", ", ");
    add(out, "]},\n  \"driver\": {\"status\": \"%s\", \"version\": ", gpuprobe_status_name(report->status));
    add_string_or_null(out, report->driver_version);
    if (report->driver_cuda)
        add(out, ", \"cuda\": \"%d.%d\"", report->driver_cuda / 1000, report->driver_cuda % 1000 / 10);
    else
        add(out, ", \"cuda\": null");
    add(out, ", \"message\": ");
    add_string_or_null(out, report->message);
    add(out, "},\n  \"devices\": [");
    for (i = 0; i < report->device_count; i++)
        add_device_json(out, &report->devices[i], i);
    add(out, "%s]\n}\n", report->device_count ? "\n  " : "");
}

static void add_device_text(text *out, const gpuprobe_device *device, int index)
{
    const gpuprobe_match *match = &device->match;

    add(out, "GPU %d: %s, compute capability %d.%d", index, device->name, device->major, device->minor);
    if (device->memory)
        add(out, ", %.1f GiB", (double)device->memory / (1024.0 * 1024.0 * 1024.0));
    if (device->pci_bus_id[0])
        add(out, ", PCI %s", device->pci_bus_id);
    switch (match->runs) {
    case GPUPROBE_RUNS_NATIVE:
        add(out, "\n  runs this build natively (%s)\n", match->architecture);
        break;
    case GPUPROBE_RUNS_PTX:
        add(out, "\n  runs this build through PTX: %s\n", match->reason);
        break;
    case GPUPROBE_RUNS_CPU:
        add(out, "\n  is not used by this build\n");
        break;
    default:
        add(out, "\n  does not run this build: %s\n", match->reason);
    }
}

static void add_text(text *out, const gpuprobe_report *report)
{
    int i;

    if (is_cpu_build()) {
        add(out, "gpuprobe %s, built for the CPU\n", gpuprobe_version());
    } else {
        add(out, "gpuprobe %s, built with CUDA %s for ", gpuprobe_version(), gpuprobe_cuda_version());
        add_list(out, gpuprobe_architectures(), "", ", ");
        add(out, "\n");
    }
    if (report->driver_version[0])
        add(out, "driver %s", report->driver_version);
    else if (report->driver_cuda)
        add(out, "driver of unknown version");
    if (report->driver_cuda)
        add(out, ", runs CUDA up to %d.%d", report->driver_cuda / 1000, report->driver_cuda % 1000 / 10);
    if (report->driver_version[0] || report->driver_cuda)
        add(out, "\n");
    if (report->message[0])
        add(out, "%s\n", report->message);
    for (i = 0; i < report->device_count; i++)
        add_device_text(out, &report->devices[i], i);
}

size_t gpuprobe_format(const gpuprobe_report *report, int json, char *buffer, size_t size)
{
    text out;

    out.buffer = buffer;
    out.size = size;
    out.length = 0;
    if (size)
        buffer[0] = '\0';
    if (json)
        add_json(&out, report);
    else
        add_text(&out, report);
    return out.length;
}
