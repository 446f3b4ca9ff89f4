#include <stdio.h>

const char *hello(void);

int main(void) { return puts(hello()) < 0; }
