"""Pullback: composable transformations of numerical functions."""
from pullback.transforms.grad import grad, linear_transpose, linearize, value_and_grad, vjp
from pullback.transforms.forward import jvp
from pullback.transforms.vmap import vmap
from pullback.transforms.jacobian import hessian, jacfwd, jacobian, jacrev
from pullback.transforms.stage import ShapeDtypeStruct, eval_shape, make_jaxpr
