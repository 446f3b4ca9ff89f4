/* libgpuprobe: which NVIDIA GPUs this machine has, and whether this build runs on them.
 *
 * The library links to nothing of NVIDIA's: it opens the driver's library at run time and says so where there is none.
 * What the build was made for is compiled in through two macros (see README.md beside this folder):
 *   GPUPROBE_CUDA_VERSION    "11.2", or "none" for a CPU build
 *   GPUPROBE_ARCHITECTURES   "sm_35,sm_86,compute_86", what nvcc is told to compile for
 */
#ifndef GPUPROBE_H
#define GPUPROBE_H

#include <stddef.h>
#include <stdint.h>

#define GPUPROBE_VERSION "1.0.0"

/* Grows when a struct or function below changes in a way that a caller notices. */
#define GPUPROBE_ABI 1

#define GPUPROBE_MAX_DEVICES 64

#if defined(_WIN32)
#  if defined(GPUPROBE_BUILDING)
#    define GPUPROBE_API __declspec(dllexport)
#  else
#    define GPUPROBE_API __declspec(dllimport)
#  endif
#elif defined(__GNUC__)
#  define GPUPROBE_API __attribute__((visibility("default")))
#else
#  define GPUPROBE_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* How the search for GPUs ended. */
enum gpuprobe_status {
    GPUPROBE_FOUND = 0,        /* the driver answered and has at least one GPU */
    GPUPROBE_NO_DRIVER = 1,    /* the driver's library is not on this machine */
    GPUPROBE_NO_DEVICE = 2,    /* the driver answered and has no GPU for us */
    GPUPROBE_DRIVER_ERROR = 3  /* the driver's library is there and does not work */
};

/* How a GPU runs device code of a build. */
enum gpuprobe_runs {
    GPUPROBE_RUNS_NOT = 0,     /* not at all; `reason` says why */
    GPUPROBE_RUNS_PTX = 1,     /* the driver compiles the PTX in the package at first start */
    GPUPROBE_RUNS_NATIVE = 2,  /* there is machine code for it in the package */
    GPUPROBE_RUNS_CPU = 3      /* a CPU build: it has no device code */
};

typedef struct gpuprobe_match {
    int32_t runs;              /* enum gpuprobe_runs */
    char architecture[32];     /* what is run or compiled: "sm_86", "compute_75"; empty otherwise */
    char reason[192];          /* why it does not run, or what slows the first start; empty otherwise */
} gpuprobe_match;

typedef struct gpuprobe_device {
    uint64_t memory;           /* bytes; 0 where the driver does not say */
    int32_t major;             /* compute capability */
    int32_t minor;
    int32_t multiprocessors;   /* 0 where the driver does not say */
    gpuprobe_match match;
    char name[256];
    char pci_bus_id[32];       /* "0000:3B:00.0"; empty where the driver does not say */
} gpuprobe_device;

typedef struct gpuprobe_report {
    int32_t status;            /* enum gpuprobe_status */
    int32_t driver_cuda;       /* newest CUDA that the driver runs, 1000 * major + 10 * minor; 0 when unknown */
    int32_t device_count;      /* how many of `devices` are filled in */
    char driver_version[96];   /* "575.51.03"; empty when unknown */
    char message[256];         /* what went wrong; empty for GPUPROBE_FOUND */
    gpuprobe_device devices[GPUPROBE_MAX_DEVICES];
} gpuprobe_report;

GPUPROBE_API int gpuprobe_abi(void);
GPUPROBE_API const char *gpuprobe_version(void);

/* The CUDA toolkit that this build was made for, "11.2"; "none" for a CPU build. */
GPUPROBE_API const char *gpuprobe_cuda_version(void);

/* The architectures that this build was made for, joined by commas; empty for a CPU build. */
GPUPROBE_API const char *gpuprobe_architectures(void);

/* Ask the driver. Fills `report` whatever happens and returns its status. The order of the GPUs, and which of them are
 * seen, is the driver's and follows CUDA_VISIBLE_DEVICES. */
GPUPROBE_API int gpuprobe_probe(gpuprobe_report *report);

/* Does a GPU of capability major.minor, with a driver for CUDA `driver_cuda` (12090 is 12.9; 0: any), run a build made
 * with `cuda_version` for `architectures`? Fills `match` and returns its `runs`. The rules are those of the CUDA C++
 * Programming Guide, "Compute capability", and of the CUDA Compatibility guide. */
GPUPROBE_API int gpuprobe_match_build(const char *cuda_version, const char *architectures, int major, int minor,
                                      int driver_cuda, gpuprobe_match *match);

/* "native", "ptx", "no" or "cpu". */
GPUPROBE_API const char *gpuprobe_runs_name(int runs);

/* "found", "no driver", "no device" or "driver error". */
GPUPROBE_API const char *gpuprobe_status_name(int status);

/* Write the build and `report` as text for people (json == 0) or as one JSON object. Works like snprintf: writes at most
 * `size` bytes, the closing NUL included, and returns the length that the whole text has without it. */
GPUPROBE_API size_t gpuprobe_format(const gpuprobe_report *report, int json, char *buffer, size_t size);

#ifdef __cplusplus
}
#endif

#endif
