/* The command gpuprobe: prints what the library finds. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpuprobe.h"

static const char usage[] =
    "usage: gpuprobe [--json] [--require]\n"
    "\n"
    "Which NVIDIA GPUs this machine has, which CUDA toolkit and architectures this build was made for, and whether each\n"
    "GPU runs it natively, through PTX, or not at all.\n"
    "\n"
    "  --json     print one JSON object\n"
    "  --require  exit with 1 unless at least one GPU runs this build\n"
    "  --version  print the version\n"
    "  --help     print this text\n";

static int runs_on_a_gpu(const gpuprobe_report *report)
{
    int i;
    for (i = 0; i < report->device_count; i++)
        if (report->devices[i].match.runs == GPUPROBE_RUNS_NATIVE || report->devices[i].match.runs == GPUPROBE_RUNS_PTX)
            return 1;
    return 0;
}

static int print_report(const gpuprobe_report *report, int json)
{
    size_t length = gpuprobe_format(report, json, NULL, 0);
    char *text = malloc(length + 1);

    if (text == NULL) {
        fprintf(stderr, "gpuprobe: out of memory\n");
        return 0;
    }
    gpuprobe_format(report, json, text, length + 1);
    fputs(text, stdout);
    free(text);
    if (fflush(stdout) != 0 || ferror(stdout)) {
        fprintf(stderr, "gpuprobe: cannot write the output\n");
        return 0;
    }
    return 1;
}

int main(int argc, char **argv)
{
    static gpuprobe_report report;
    int json = 0, require = 0, i;

    for (i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--json") == 0) {
            json = 1;
        } else if (strcmp(argv[i], "--require") == 0) {
            require = 1;
        } else if (strcmp(argv[i], "--version") == 0) {
            printf("gpuprobe %s\n", gpuprobe_version());
            return 0;
        } else if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0) {
            fputs(usage, stdout);
            return 0;
        } else {
            fprintf(stderr, "gpuprobe: unknown option '%s'\n%s", argv[i], usage);
            return 2;
        }
    }
    gpuprobe_probe(&report);
    if (!print_report(&report, json))
        return 1;
    return require && !runs_on_a_gpu(&report) ? 1 : 0;
}
