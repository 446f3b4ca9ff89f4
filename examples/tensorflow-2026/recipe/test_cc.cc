#include <iostream>
#include <vector>

#include "tensorflow/cc/client/client_session.h"
#include "tensorflow/cc/ops/standard_ops.h"
#include "tensorflow/core/framework/tensor.h"

// 2 * 3 + 1, by a graph with three nodes.
int main() {
  tensorflow::Scope scope = tensorflow::Scope::NewRootScope();
  auto product = tensorflow::ops::Multiply(scope, 2.0f, 3.0f);
  auto sum = tensorflow::ops::Add(scope, product, 1.0f);

  std::vector<tensorflow::Tensor> outputs;
  tensorflow::ClientSession session(scope);
  if (!session.Run({sum}, &outputs).ok()) return 1;
  std::cout << outputs[0].scalar<float>()() << std::endl;
  return outputs[0].scalar<float>()() == 7.0f ? 0 : 1;
}
