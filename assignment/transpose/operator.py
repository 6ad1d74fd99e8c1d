"""The transpose of a matrix: header rows, columns; input A (rows, columns), output T (columns, rows)."""

from grader.operators.base import Tensor, WholeOperator, size_of


class Transpose(WholeOperator):
    name = "transpose"
    dimensions = (size_of("rows", 1 << 16), size_of("columns", 1 << 16))

    def inputs(self, shape):
        return (Tensor("A", shape[0], shape[1]),)

    def outputs(self, shape):
        return (Tensor("T", shape[1], shape[0]),)

    def flops(self, shape):
        return shape[0] * shape[1]  # none, in truth; this counts the numbers that are moved

    def unavoidable(self, shape):
        return 0, 0

    def oracle(self, shape, tensors, rows=slice(None)):
        return (tensors[0].T[rows],)


OPERATOR = Transpose()
