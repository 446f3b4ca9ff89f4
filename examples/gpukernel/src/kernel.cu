/* y = a * x + y, `rounds` times: enough to see that it ran, and how fast. No header, so that NVRTC compiles it too. */
extern "C" __global__ void gpukernel_axpy(float *y, const float *x, float a, unsigned int n, unsigned int rounds)
{
    unsigned int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        float sum = y[i];
        for (unsigned int round = 0; round < rounds; round++)
            sum += a * x[i];
        y[i] = sum;
    }
}
