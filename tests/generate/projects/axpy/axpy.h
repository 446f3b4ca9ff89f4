#pragma once
extern "C" int axpy(int n, float a, const float *x, float *y);
