/* Which device code of a build a GPU takes.
 *
 * - Machine code (sm_XY) runs on GPUs of the same major capability and the same or a higher minor one. Between Tegra and
 *   desktop GPUs, and between Tegra GPUs, it does not carry over.
 * - PTX (compute_XY) is compiled by the driver for every GPU of the same or a higher capability.
 * - Code for one architecture only (suffix a) runs on just that one; code for a family (suffix f) on the later members of
 *   the same major capability.
 * - A driver runs machine code of its own CUDA major version (from CUDA 11 on) and of older ones; it compiles PTX of its
 *   own CUDA version and of older ones.
 */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpuprobe.h"

typedef struct architecture {
    int is_ptx;
    int capability; /* 10 * major + minor */
    char suffix;    /* 'a', 'f' or 0 */
} architecture;

static const int tegra_capabilities[] = {32, 53, 62, 72, 87, 101, 110};

static int is_tegra(int capability)
{
    size_t i;
    for (i = 0; i < sizeof tegra_capabilities / sizeof *tegra_capabilities; i++)
        if (tegra_capabilities[i] == capability)
            return 1;
    return 0;
}

/* Read "sm_90a"; 0 when it is no architecture. */
static int read_architecture(const char *text, size_t length, architecture *out)
{
    size_t at;
    if (length > 3 && strncmp(text, "sm_", 3) == 0) {
        out->is_ptx = 0;
        at = 3;
    } else if (length > 8 && strncmp(text, "compute_", 8) == 0) {
        out->is_ptx = 1;
        at = 8;
    } else {
        return 0;
    }
    out->capability = 0;
    out->suffix = 0;
    while (at < length && isdigit((unsigned char)text[at]) && out->capability < 1000)
        out->capability = out->capability * 10 + (text[at++] - '0');
    if (at < length && (text[at] == 'a' || text[at] == 'f'))
        out->suffix = text[at++];
    return at == length && out->capability >= 10;
}

static int takes(const architecture *code, int capability)
{
    if (code->capability == capability)
        return 1;
    if (code->suffix == 'a' || code->capability > capability)
        return 0;
    if (code->is_ptx && code->suffix == 0)
        return 1;
    return code->capability / 10 == capability / 10 && !is_tegra(code->capability) && !is_tegra(capability);
}

/* The best of `architectures` that a GPU takes, as machine code or as PTX, copied to `name`; 0 when there is none. */
static int best_architecture(const char *architectures, int want_ptx, int capability, char *name, size_t size)
{
    int best = -1;
    const char *start = architectures;
    while (*start) {
        size_t length = strcspn(start, ", ");
        architecture code;
        if (length < size && read_architecture(start, length, &code) && code.is_ptx == want_ptx && takes(&code, capability)) {
            int rank = code.capability * 2 + (code.suffix != 0);
            if (rank > best) {
                best = rank;
                memcpy(name, start, length);
                name[length] = '\0';
            }
        }
        start += length;
        start += strspn(start, ", ");
    }
    return best >= 0;
}

/* "11.2" as the driver's number 11020; 0 when it is no version. */
static int read_version(const char *text)
{
    char *end;
    long minor = 0;
    long major = strtol(text, &end, 10);
    if (end == text || major <= 0 || major > 999)
        return 0;
    if (*end == '.') {
        minor = strtol(end + 1, NULL, 10);
        if (minor < 0 || minor > 99)
            return 0;
    }
    return (int)(major * 1000 + minor * 10);
}

static int settle(gpuprobe_match *match, int runs)
{
    match->runs = runs;
    if (runs != GPUPROBE_RUNS_NATIVE && runs != GPUPROBE_RUNS_PTX)
        match->architecture[0] = '\0';
    return runs;
}

int gpuprobe_match_build(const char *cuda_version, const char *architectures, int major, int minor, int driver_cuda,
                         gpuprobe_match *match)
{
    int toolkit = read_version(cuda_version);
    int capability = 10 * major + minor;
    int least_driver = toolkit >= 11000 ? toolkit / 1000 * 1000 : toolkit;
    int has_native, has_ptx;

    memset(match, 0, sizeof *match);
    if (toolkit == 0)
        return settle(match, GPUPROBE_RUNS_CPU);
    if (driver_cuda != 0 && driver_cuda < least_driver) {
        snprintf(match->reason, sizeof match->reason, "the driver runs CUDA up to %d.%d, and this build needs CUDA %d.%d or later",
                 driver_cuda / 1000, driver_cuda % 1000 / 10, least_driver / 1000, least_driver % 1000 / 10);
        return settle(match, GPUPROBE_RUNS_NOT);
    }
    has_native = best_architecture(architectures, 0, capability, match->architecture, sizeof match->architecture);
    if (has_native)
        return settle(match, GPUPROBE_RUNS_NATIVE);
    has_ptx = best_architecture(architectures, 1, capability, match->architecture, sizeof match->architecture);
    if (!has_ptx) {
        snprintf(match->reason, sizeof match->reason, "nothing in this build is for compute capability %d.%d", major, minor);
        return settle(match, GPUPROBE_RUNS_NOT);
    }
    if (driver_cuda != 0 && driver_cuda < toolkit) {
        snprintf(match->reason, sizeof match->reason,
                 "there is PTX only (%s), and a driver for CUDA %d.%d does not compile PTX of CUDA %s", match->architecture,
                 driver_cuda / 1000, driver_cuda % 1000 / 10, cuda_version);
        return settle(match, GPUPROBE_RUNS_NOT);
    }
    snprintf(match->reason, sizeof match->reason, "the driver compiles %s for it at first start", match->architecture);
    return settle(match, GPUPROBE_RUNS_PTX);
}

const char *gpuprobe_runs_name(int runs)
{
    switch (runs) {
    case GPUPROBE_RUNS_NATIVE:
        return "native";
    case GPUPROBE_RUNS_PTX:
        return "ptx";
    case GPUPROBE_RUNS_CPU:
        return "cpu";
    default:
        return "no";
    }
}
