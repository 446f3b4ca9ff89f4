/* gpukernel: run a kernel on the first GPU, check what it computed, and say how it ran.
 *
 *   gpukernel [--json] [--require] [--benchmark] [--version]
 *
 * Exits with 0 where the result is right, and where there is no GPU (with --require: 1); with 1 where there is a GPU and
 * the kernel cannot run on it or computed something else; with 2 for words that it does not know.
 * A build without CUDA computes the same on the CPU. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "driver.h"

#ifndef GPUKERNEL_CUDA
#  define GPUKERNEL_CUDA ""
#endif

enum { RIGHT = 0, WRONG = 1, USAGE = 2 };
enum { ELEMENTS = 1 << 20, ROUNDS = 8, BENCHMARK_ELEMENTS = 1 << 26, BENCHMARK_LAUNCHES = 20 };
static const float FACTOR = 2.0f;

struct report {
    const char *how; /* native, ptx, cpu, none or refused */
    char device[256];
    int capability; /* 90 */
    int driver;     /* 12090 */
    char message[512];
};

struct options {
    int json, require, benchmark;
};

/* Small whole numbers, so that the sums are exact whatever the order of operations. */
static float x_at(size_t i) { return (float)(i % 7); }
static float y_at(size_t i) { return (float)(i % 5); }

static int is_right(const float *y, size_t n, unsigned rounds)
{
    for (size_t i = 0; i < n; i++)
        if (y[i] != y_at(i) + (float)rounds * FACTOR * x_at(i))
            return 0;
    return 1;
}

static double seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* One measurement, one line: what `feedstock-tools test --benchmark` reads. */
static void measured(const char *name, double value, const char *unit)
{
    printf("{\"name\": \"%s\", \"value\": %.6g, \"unit\": \"%s\"}\n", name, value, unit);
}

static float *filled(size_t n, float (*at)(size_t))
{
    float *values = malloc(n * sizeof *values);
    for (size_t i = 0; values != NULL && i < n; i++)
        values[i] = at(i);
    return values;
}

#ifdef GPUKERNEL_FATBIN

__asm__(".pushsection .nv_fatbin,\"a\",@progbits\n"
        ".balign 8\n"
        ".globl gpukernel_image\n.hidden gpukernel_image\n"
        "gpukernel_image:\n"
        ".incbin " "\"" GPUKERNEL_FATBIN "\"\n"
        ".balign 8\n"
        ".popsection\n");
extern const unsigned char gpukernel_image[];

/* Run the kernel and check its result. Returns RIGHT or WRONG, the latter with a message. */
static int run(const cuda_driver *cuda, struct report *report, const struct options *options)
{
    const size_t n = options->benchmark ? BENCHMARK_ELEMENTS : ELEMENTS;
    const unsigned rounds = options->benchmark ? 1 : ROUNDS;
    const int launches = options->benchmark ? BENCHMARK_LAUNCHES : 0;
    unsigned count = (unsigned)n, blocks = (unsigned)((n + 255) / 256), width = rounds;
    float factor = FACTOR, milliseconds = 0;
    float *x = filled(n, x_at), *y = filled(n, y_at);
    cuda_pointer device_x = 0, device_y = 0;
    void *context = NULL, *module = NULL, *function = NULL, *start = NULL, *stop = NULL;
    void *arguments[] = {&device_y, &device_x, &factor, &count, &width};
    double began, loaded;
    int status;

#define TRY(call) \
    if ((status = cuda->call) != 0) { \
        driver_message(cuda, status, #call, report->message, sizeof report->message); \
        goto end; \
    }
    status = x == NULL || y == NULL;
    if (status) {
        snprintf(report->message, sizeof report->message, "out of memory");
        goto end;
    }
    TRY(ctx_create(&context, 0, 0));
    began = seconds();
    TRY(module_load_data(&module, gpukernel_image));
    loaded = seconds() - began;
    TRY(module_get_function(&function, module, "gpukernel_axpy"));
    TRY(mem_alloc(&device_x, n * sizeof *x));
    TRY(mem_alloc(&device_y, n * sizeof *y));
    TRY(memcpy_to_device(device_x, x, n * sizeof *x));
    TRY(memcpy_to_device(device_y, y, n * sizeof *y));
    TRY(launch(function, blocks, 1, 1, 256, 1, 1, 0, NULL, arguments, NULL));
    TRY(synchronize());
    TRY(memcpy_to_host(y, device_y, n * sizeof *y));
    if (!is_right(y, n, rounds)) {
        status = 1;
        snprintf(report->message, sizeof report->message, "the kernel ran and computed something else");
        goto end;
    }
    if (launches) {
        TRY(event_create(&start, 0));
        TRY(event_create(&stop, 0));
        TRY(event_record(start, NULL));
        for (int launch = 0; launch < launches; launch++)
            TRY(launch(function, blocks, 1, 1, 256, 1, 1, 0, NULL, arguments, NULL));
        TRY(event_record(stop, NULL));
        TRY(event_synchronize(stop));
        TRY(event_elapsed_time(&milliseconds, start, stop));
        measured("module_load", loaded * 1e3, "ms");
        measured("axpy", 3e-6 * (double)(n * sizeof *x) * launches / milliseconds, "GB/s");
    }
end:
#undef TRY
    if (context != NULL)
        cuda->ctx_destroy(context); /* and with it memory, module and events */
    free(x);
    free(y);
    return status == 0 ? RIGHT : WRONG;
}

/* Whether the kernel runs where the driver may not compile PTX, nor take what it compiled before: asked of a child,
 * because the driver reads these variables once in a process, and must not have been opened before a fork. */
static int runs_natively(const struct options *options)
{
    int status = 1;
    pid_t child = fork();
    if (child == 0) {
        struct report ignored = {0};
        struct options quick = *options;
        cuda_driver cuda;
        quick.benchmark = 0;
        setenv("CUDA_DISABLE_PTX_JIT", "1", 1);
        setenv("CUDA_CACHE_DISABLE", "1", 1);
        _exit(driver_open(&cuda, ignored.message, sizeof ignored.message) == 0 && cuda.init(0) == 0
              && run(&cuda, &ignored, &quick) == RIGHT ? 0 : 1);
    }
    return child > 0 && waitpid(child, &status, 0) == child && status == 0;
}

static int compute(struct report *report, const struct options *options)
{
    cuda_driver cuda;
    int count = 0, major = 0, minor = 0, status, natively = runs_natively(options);

    if (options->benchmark)
        setenv("CUDA_CACHE_DISABLE", "1", 0); /* what PTX costs at the first start is part of the measurement */
    report->how = "none";
    if (driver_open(&cuda, report->message, sizeof report->message) != 0)
        return RIGHT;
    if ((status = cuda.init(0)) != 0 || (status = cuda.device_get_count(&count)) != 0 || count == 0) {
        driver_message(&cuda, status, "no GPU", report->message, sizeof report->message);
        return RIGHT;
    }
    cuda.driver_get_version(&report->driver);
    cuda.device_get_name(report->device, sizeof report->device, 0);
    cuda.device_get_attribute(&major, 75, 0);
    cuda.device_get_attribute(&minor, 76, 0);
    report->capability = 10 * major + minor;
    status = run(&cuda, report, options);
    report->how = status != RIGHT ? "refused" : natively ? "native" : "ptx";
    return status;
}

#else

static int compute(struct report *report, const struct options *options)
{
    const size_t n = ELEMENTS;
    float *x = filled(n, x_at), *y = filled(n, y_at);
    double began = seconds();
    int right = 0;

    if (x != NULL && y != NULL) {
        for (unsigned round = 0; round < ROUNDS; round++)
            for (size_t i = 0; i < n; i++)
                y[i] += FACTOR * x[i];
        if (options->benchmark)
            measured("axpy", 3e-9 * (double)(n * sizeof *x) * ROUNDS / (seconds() - began), "GB/s");
        right = is_right(y, n, ROUNDS);
    }
    report->how = "cpu";
    free(x);
    free(y);
    return right ? RIGHT : WRONG;
}

#endif

static void print_json(const struct report *report, int status)
{
    printf("{\"version\": \"1.0.0\", \"cuda\": \"%s\", \"how\": \"%s\", \"right\": %s, \"device\": \"%s\", "
           "\"capability\": %d, \"driver\": %d, \"message\": \"",
           GPUKERNEL_CUDA, report->how, strcmp(report->how, "none") == 0 ? "null" : status == RIGHT ? "true" : "false",
           report->device, report->capability, report->driver);
    for (const char *sign = report->message; *sign != '\0'; sign++)
        if (*sign >= ' ' && *sign != '"' && *sign != '\\')
            putchar(*sign);
    printf("\"}\n");
}

static void print_text(const struct report *report, int status)
{
    static const char *const words[][2] = {
        {"native", "the kernel ran natively"},
        {"ptx", "the kernel ran through PTX, which the driver compiled"},
        {"cpu", "a build without CUDA: computed on the CPU"},
        {"none", "no GPU to run the kernel on"},
        {"refused", "the kernel did not run as it should"},
    };
    if (report->device[0] != '\0')
        printf("%s, compute capability %d.%d, driver for CUDA %d.%d\n", report->device, report->capability / 10,
               report->capability % 10, report->driver / 1000, report->driver % 1000 / 10);
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strcmp(words[i][0], report->how) == 0)
            printf("%s%s%s\n", words[i][1], report->message[0] != '\0' ? ": " : "", report->message);
    if (strcmp(report->how, "none") != 0 && strcmp(report->how, "refused") != 0)
        printf("the result is %s\n", status == RIGHT ? "right" : "WRONG");
}

int main(int count, char **words)
{
    struct options options = {0, 0, 0};
    struct report report = {0};
    int status;

    for (int i = 1; i < count; i++) {
        if (strcmp(words[i], "--json") == 0)
            options.json = 1;
        else if (strcmp(words[i], "--require") == 0)
            options.require = 1;
        else if (strcmp(words[i], "--benchmark") == 0)
            options.benchmark = 1;
        else if (strcmp(words[i], "--version") == 0)
            return puts("gpukernel 1.0.0") < 0;
        else {
            fprintf(stderr, "usage: gpukernel [--json] [--require] [--benchmark] [--version]\n");
            return USAGE;
        }
    }
    status = compute(&report, &options);
    if (options.json)
        print_json(&report, status);
    else if (!options.benchmark || status != RIGHT)
        print_text(&report, status);
    return options.require && strcmp(report.how, "none") == 0 ? WRONG : status;
}
