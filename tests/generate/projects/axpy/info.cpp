#include <cstdio>
#include "axpy.h"
int main() { std::puts("axpy 1.2.0"); return 0; }
