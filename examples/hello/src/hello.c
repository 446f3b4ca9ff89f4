/* Says hello: from the GPU where a GPU build finds one, else from the CPU. */
#ifdef HELLO_GPU
int hello_from_gpu(char *text);
#endif

const char *hello(void) {
#ifdef HELLO_GPU
    static char text[32];
    if (hello_from_gpu(text)) return text;
    return "Hello from the CPU: this GPU build finds no GPU";
#else
    return "Hello from the CPU";
#endif
}
