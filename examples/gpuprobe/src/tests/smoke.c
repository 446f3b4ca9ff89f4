/* Does an installed libgpuprobe do what its header says? Exits with 0 when it does.
 *   cc -I$PREFIX/include smoke.c -L$PREFIX/lib -lgpuprobe -Wl,-rpath,$PREFIX/lib -o smoke && ./smoke [CUDA [ARCHITECTURES]]
 * With arguments, the build must be for just that toolkit and those architectures. */
#include <gpuprobe.h>

#include <stdio.h>
#include <string.h>

static int failures;

static void check(int holds, const char *what)
{
    if (!holds) {
        fprintf(stderr, "smoke: %s does not hold\n", what);
        failures++;
    }
}

#define CHECK(condition) check((condition), #condition)

static int runs(const char *cuda, const char *architectures, int major, int minor, int driver_cuda)
{
    gpuprobe_match match;
    return gpuprobe_match_build(cuda, architectures, major, minor, driver_cuda, &match);
}

static void check_matches(void)
{
    const char *tensorflow = "sm_35,sm_50,sm_60,sm_62,sm_70,sm_72,sm_75,sm_80,compute_80";

    CHECK(runs("11.0", tensorflow, 7, 5, 11000) == GPUPROBE_RUNS_NATIVE);
    CHECK(runs("11.0", tensorflow, 8, 6, 11010) == GPUPROBE_RUNS_NATIVE); /* sm_80 runs on 8.6 */
    CHECK(runs("11.0", tensorflow, 9, 0, 11080) == GPUPROBE_RUNS_PTX);
    CHECK(runs("11.0", tensorflow, 3, 0, 11000) == GPUPROBE_RUNS_NOT);
    CHECK(runs("11.0", tensorflow, 7, 5, 10020) == GPUPROBE_RUNS_NOT); /* driver too old */
    CHECK(runs("none", "", 7, 5, 11000) == GPUPROBE_RUNS_CPU);
}

static void check_format(const gpuprobe_report *report)
{
    static char text[65536];
    char little[8];
    size_t length = gpuprobe_format(report, 1, text, sizeof text);

    CHECK(length == strlen(text));
    CHECK(gpuprobe_format(report, 1, NULL, 0) == length);
    CHECK(gpuprobe_format(report, 1, little, sizeof little) == length);
    CHECK(strlen(little) == sizeof little - 1);
    CHECK(text[0] == '{');
}

int main(int argc, char **argv)
{
    static gpuprobe_report report;

    CHECK(gpuprobe_abi() == GPUPROBE_ABI);
    CHECK(strcmp(gpuprobe_version(), GPUPROBE_VERSION) == 0);
    if (argc > 1)
        CHECK(strcmp(gpuprobe_cuda_version(), argv[1]) == 0);
    if (argc > 2)
        CHECK(strcmp(gpuprobe_architectures(), argv[2]) == 0);
    CHECK(gpuprobe_probe(&report) == report.status);
    CHECK((report.status == GPUPROBE_FOUND) == (report.device_count > 0));
    CHECK((report.status == GPUPROBE_FOUND) == (report.message[0] == '\0'));
    check_matches();
    check_format(&report);
    return failures ? 1 : 0;
}
