#include "axpy.h"
__global__ void kernel(int n, float a, const float *x, float *y) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] += a * x[i];
}
extern "C" int axpy(int n, float a, const float *x, float *y) {
    kernel<<<(n + 255) / 256, 256>>>(n, a, x, y);
    return cudaGetLastError();
}
