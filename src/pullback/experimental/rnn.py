"""Long short-term memory (LSTM) layers, in one or both directions, over sequences of any lengths.

The weights of all layers are one vector, in the order of NVIDIA's cuDNN: for each layer and direction ``W_ih`` and
``W_hh``, and then for each ``b_ih`` and ``b_hh``. Rows are of the gates: input, forget, cell and output, in this order.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, cast

import numpy as np

import pullback.numpy as pnp
from pullback.control.scan import scan
from pullback.core.annotations import PrecisionLike
from pullback.core.array import Array, ArrayLike, KeyArray
from pullback.core.errors import ArgumentError, UnsupportedArgumentError
from pullback.core.faces import face
from pullback.nn.activations import sigmoid
from pullback.random.continuous import uniform

__all__ = [
    "get_num_params_in_lstm", "init_lstm_weight", "lstm", "lstm_ref", "swap_lstm_gates", "unpack_lstm_weights",
]  # fmt: skip
face(globals())

Weights = tuple[dict[int, Array], dict[int, Array], dict[int, Array], dict[int, Array]]


def _parts(
    input_size: int, hidden_size: int, num_layers: int, bidirectional: bool
) -> Iterator[tuple[int, int, tuple[int, ...]]]:
    """Yield the kind, the number and the shape of each block of a vector with all weights of an LSTM, in order.

    The kind is 0 for weights of the input, 1 for weights of the hidden state, 2 and 3 for the biases of these. The
    number is that of the layer, or with two directions the number of the pair (layer, direction).
    """
    directions = 2 if bidirectional else 1
    rows = 4 * hidden_size
    for i in range(num_layers * directions):
        yield 0, i, (rows, input_size if i < directions else directions * hidden_size)
        yield 1, i, (rows, hidden_size)
    for i in range(num_layers * directions):
        yield 2, i, (rows,)
        yield 3, i, (rows,)


def get_num_params_in_lstm(input_size: int, hidden_size: int, num_layers: int, bidirectional: bool) -> int:
    """Return the number of weights.

    Args:
      input_size: the size of each element of the sequence.
      hidden_size: the size of the state.
      num_layers: the number of layers.
      bidirectional: whether each layer runs in both directions.

    Returns:
      The length of the vector that :func:`lstm` takes, a Python integer.

    >>> from pullback.experimental import rnn
    >>> rnn.get_num_params_in_lstm(3, 4, 1, False)
    144
    """
    return sum(math.prod(shape) for _, _, shape in _parts(input_size, hidden_size, num_layers, bidirectional))


def init_lstm_weight(rng: KeyArray, input_size: int, hidden_size: int, num_layers: int, bidirectional: bool) -> Array:
    """Return a vector of initial weights, uniform between ±1/√hidden_size.

    Args:
      rng: a random key.
      input_size, hidden_size, num_layers, bidirectional: as for :func:`get_num_params_in_lstm`.

    Returns:
      A vector of floats of the default dtype, of ``get_num_params_in_lstm(...)`` elements.

    Raises:
      OperandError: ``rng`` is no random key (a TypeError).

    >>> from pullback import random
    >>> from pullback.experimental import rnn
    >>> rnn.init_lstm_weight(random.key(0), 3, 4, 1, False).shape
    (144,)
    """
    bound = 1 / math.sqrt(hidden_size)
    count = get_num_params_in_lstm(input_size, hidden_size, num_layers, bidirectional)
    return uniform(rng, (count,), minval=-bound, maxval=bound)


def unpack_lstm_weights(
    weights: ArrayLike, input_size: int, hidden_size: int, num_layers: int, bidirectional: bool
) -> Weights:
    """Split a vector of weights into matrices and vectors.

    Args:
      weights: the vector.
      input_size, hidden_size, num_layers, bidirectional: as for :func:`get_num_params_in_lstm`.

    Returns:
      ``(W_ih, W_hh, b_ih, b_hh)``, dictionaries by the number of the layer and direction: twice the layer, plus one for
      the direction from the end, if there are both directions; else the layer.

    Raises:
      ArgumentError: the vector has another length (a ValueError).

    >>> import pullback.numpy as jnp
    >>> from pullback.experimental import rnn
    >>> W_ih, W_hh, b_ih, b_hh = rnn.unpack_lstm_weights(jnp.zeros(144), 3, 4, 1, False)
    >>> W_ih[0].shape, W_hh[0].shape, b_ih[0].shape
    ((16, 3), (16, 4), (16,))
    """
    count = get_num_params_in_lstm(input_size, hidden_size, num_layers, bidirectional)
    if pnp.shape(weights) != (count,):
        raise ArgumentError(f"lstm: weights must have shape {(count,)} for these sizes, got {pnp.shape(weights)}")
    found: Weights = ({}, {}, {}, {})
    start = 0
    for kind, i, shape in _parts(input_size, hidden_size, num_layers, bidirectional):
        end = start + math.prod(shape)
        found[kind][i] = pnp.reshape(cast("Array", weights)[start:end], shape)
        start = end
    return found


def swap_lstm_gates(
    weights: ArrayLike, input_size: int, hidden_size: int, num_layers: int, bidirectional: bool
) -> Array:
    """Exchange the rows of the cell and of the output gate in a vector of weights, as in AMD's MIOpen.

    Args:
      weights: the vector, of ``get_num_params_in_lstm(...)`` elements.
      input_size, hidden_size, num_layers, bidirectional: as for :func:`get_num_params_in_lstm`.

    Returns:
      A vector of the same length and dtype.

    Raises:
      ArgumentError: the vector has another length (a TypeError and a ValueError).
      OperandError: ``weights`` is neither an array nor a number (a TypeError).

    >>> import pullback.numpy as jnp
    >>> from pullback.experimental import rnn
    >>> print(rnn.swap_lstm_gates(jnp.arange(16.0), 1, 1, 1, False)[:8])
    [0. 1. 3. 2. 4. 5. 7. 6.]
    """
    kinds = unpack_lstm_weights(weights, input_size, hidden_size, num_layers, bidirectional)
    pieces = []
    for kind, i, _ in _parts(input_size, hidden_size, num_layers, bidirectional):
        one, two, three, four = pnp.split(kinds[kind][i], 4)
        pieces.append(pnp.ravel(pnp.concatenate([one, two, four, three])))
    return pnp.concatenate(pieces)


def lstm(
    x: ArrayLike,
    h_0: ArrayLike,
    c_0: ArrayLike,
    weights: ArrayLike,
    seq_lengths: ArrayLike,
    input_size: int,
    hidden_size: int,
    num_layers: int,
    dropout: float,
    bidirectional: bool,
    precision: PrecisionLike = None,
) -> tuple[Array, Array, Array]:
    """Apply LSTM layers to a batch of sequences.

    Args:
      x: the sequences, of shape ``[batch, length, input_size]``.
      h_0, c_0: the hidden and the cell state at the beginning, of shape ``[layers * directions, batch, hidden_size]``.
      weights: the vector of all weights, see :func:`init_lstm_weight`.
      seq_lengths: the length of each sequence, of shape ``[batch]``; later elements are ignored.
      input_size, hidden_size, num_layers, bidirectional: as for :func:`get_num_params_in_lstm`.
      dropout: 0.
      precision: the precision of the products.

    Returns:
      The hidden states of the last layer, of shape ``[batch, length, directions * hidden_size]``, zeros after the end
      of each sequence; and the hidden and the cell states at the end, shaped as ``h_0``.

    Raises:
      ArgumentError: the vector of weights has another length (a ValueError).
      UnsupportedArgumentError: ``dropout`` is not 0 (a NotImplementedError).

    Source: Hochreiter and Schmidhuber, *Long short-term memory*, Neural Computation 9 (1997).

    >>> import pullback.numpy as jnp
    >>> from pullback import random
    >>> from pullback.experimental import rnn
    >>> w = rnn.init_lstm_weight(random.key(0), 3, 4, 1, False)
    >>> state = jnp.zeros((1, 2, 4))
    >>> y, h, c = rnn.lstm(jnp.ones((2, 5, 3)), state, state, w, jnp.array([5, 2]), 3, 4, 1, 0.0, False)
    >>> y.shape, h.shape, c.shape
    ((2, 5, 4), (1, 2, 4), (1, 2, 4))
    """
    parts = unpack_lstm_weights(weights, input_size, hidden_size, num_layers, bidirectional)
    return _run(x, h_0, c_0, parts, seq_lengths, num_layers, dropout, bidirectional, precision)


def lstm_ref(
    x: ArrayLike,
    h_0: ArrayLike,
    c_0: ArrayLike,
    W_ih: dict[int, Array],
    W_hh: dict[int, Array],
    b_ih: dict[int, Array],
    b_hh: dict[int, Array],
    seq_lengths: ArrayLike,
    input_size: int,
    hidden_size: int,
    num_layers: int,
    dropout: float,
    bidirectional: bool,
) -> tuple[Array, Array, Array]:
    """Apply LSTM layers as :func:`lstm` does, with weights in the form of :func:`unpack_lstm_weights`.

    Args:
      x, h_0, c_0, seq_lengths: arrays as for :func:`lstm`.
      W_ih, W_hh: dictionaries from the index of a layer and direction to a matrix of floats.
      b_ih, b_hh: dictionaries from this index to a vector of floats.
      input_size, hidden_size, num_layers, dropout, bidirectional: as for :func:`lstm`.

    Returns:
      The hidden states of the last layer, and the hidden and the cell states at the end, as :func:`lstm` returns them.

    Raises:
      UnsupportedArgumentError: ``dropout`` is not 0 (a NotImplementedError).

    >>> import pullback.numpy as jnp
    >>> from pullback import random
    >>> from pullback.experimental import rnn
    >>> w = rnn.unpack_lstm_weights(rnn.init_lstm_weight(random.key(0), 3, 4, 1, False), 3, 4, 1, False)
    >>> state = jnp.zeros((1, 2, 4))
    >>> y, h, c = rnn.lstm_ref(jnp.ones((2, 5, 3)), state, state, *w, jnp.array([5, 2]), 3, 4, 1, 0.0, False)
    >>> y.shape, h.shape, c.shape
    ((2, 5, 4), (1, 2, 4), (1, 2, 4))
    """
    return _run(x, h_0, c_0, (W_ih, W_hh, b_ih, b_hh), seq_lengths, num_layers, dropout, bidirectional, None)


def _run(
    x: Any,
    h_0: Any,
    c_0: Any,
    parts: Weights,
    lengths: Any,
    num_layers: int,
    dropout: float,
    both: bool,
    precision: Any,
) -> tuple[Any, Any, Any]:
    if not isinstance(dropout, (int, float)) or dropout:
        raise UnsupportedArgumentError(f"lstm: dropout must be 0, got {dropout!r}; apply it between calls of one layer")
    directions = 2 if both else 1
    steps = np.arange(x.shape[1])
    lengths, steps = pnp.asarray(lengths)[None], steps[:, None]
    within = steps < lengths  # [length, batch]
    order = pnp.where(within, lengths - 1 - steps, steps)  # reversed within each sequence
    layer: Any = pnp.swapaxes(x, 0, 1)
    hidden, cell = [], []
    for number in range(num_layers):
        outs = []
        for direction in range(directions):
            i = directions * number + direction
            seen = _reordered(layer, order) if direction else layer
            out, h, c = _layer(seen, h_0[i], c_0[i], [kind[i] for kind in parts], within, precision)
            outs.append(_reordered(out, order) if direction else out)
            hidden.append(h)
            cell.append(c)
        layer = pnp.concatenate(outs, axis=-1)
    return pnp.swapaxes(layer, 0, 1), pnp.stack(hidden), pnp.stack(cell)


def _reordered(xs: Any, order: Any) -> Any:
    return pnp.take_along_axis(xs, order[:, :, None], axis=0)


def _layer(xs: Any, h: Any, c: Any, weights: list[Any], within: Any, precision: Any) -> tuple[Any, Any, Any]:
    """Apply one LSTM layer in one direction; return its outputs, the final hidden state and the final cell state.

    Args:
      xs: the inputs; time is the first axis.
      h, c: the initial hidden and cell states.
      weights: the input weights, the hidden weights, the input bias and the hidden bias.
      within: for each time and example whether the time is within the example's sequence. Outside, states do not
        change, and outputs are 0.
      precision: the precision of the products.
    """
    W_ih, W_hh, b_ih, b_hh = weights
    b_ih, b_hh = b_ih[None, None], b_hh[None, None]
    inputs = pnp.matmul(xs, W_ih.T, precision=precision) + b_ih + b_hh  # of all steps in one product

    def step(carry: Any, given: Any) -> Any:
        h, c = carry
        from_input, alive = given
        gates = from_input + pnp.matmul(h, W_hh.T, precision=precision)
        i, f, g, o = pnp.split(gates, 4, axis=-1)
        new_c = sigmoid(f) * c + sigmoid(i) * pnp.tanh(g)
        new_h = sigmoid(o) * pnp.tanh(new_c)
        alive = alive[:, None]
        carry = pnp.where(alive, new_h, h), pnp.where(alive, new_c, c)
        return carry, pnp.where(alive, new_h, pnp.zeros_like(new_h))

    (h, c), out = scan(step, (h, c), (inputs, within))
    return out, h, c
