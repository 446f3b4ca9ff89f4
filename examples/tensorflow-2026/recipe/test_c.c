#include <stdio.h>
#include <string.h>

#include <tensorflow/c/c_api.h>

int main(void) {
  TF_Tensor *tensor = TF_AllocateTensor(TF_FLOAT, NULL, 0, sizeof(float));
  if (tensor == NULL || TF_TensorByteSize(tensor) != sizeof(float)) return 1;
  TF_DeleteTensor(tensor);
  printf("TensorFlow %s\n", TF_Version());
  return strncmp(TF_Version(), "2.", 2) != 0;
}
