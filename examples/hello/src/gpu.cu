/* The part of GPU builds: a kernel writes the greeting. */
__device__ const char greeting[] = "Hello from the GPU";

__global__ void greet(char *text) { text[threadIdx.x] = greeting[threadIdx.x]; }

extern "C" int hello_from_gpu(char *text) {
    char *on_gpu;
    if (cudaMalloc(&on_gpu, sizeof greeting) != cudaSuccess) return 0;
    greet<<<1, sizeof greeting>>>(on_gpu);
    bool done = cudaMemcpy(text, on_gpu, sizeof greeting, cudaMemcpyDeviceToHost) == cudaSuccess;
    cudaFree(on_gpu);
    return done;
}
