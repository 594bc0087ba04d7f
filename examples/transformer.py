"""A small transformer, trained on generated text, which then goes on with a text by itself.

The text is of sentences such as "the red cat sees a small dog." The network has two blocks of causal attention, with
layer normalisation and residual connections, and says of each letter how likely each next one is. The process ends with
a non-zero status if the network has not learnt. If matplotlib is installed, the curve of the loss is drawn.

    python examples/transformer.py [loss.png]
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Any

import pullback.numpy as jnp
from pullback import Array, grad, jit, nn, random, tree, value_and_grad

ARTICLES, ADJECTIVES = ("the", "a"), ("red", "small", "old", "quick")
NOUNS, VERBS = ("cat", "dog", "bird", "child"), ("sees", "likes", "finds", "hears")
LETTERS = " ." + "abcdefghijklmnopqrstuvwxyz"
WIDTH, HEADS, BLOCKS, LENGTH, BATCH, STEPS = 64, 4, 2, 48, 16, 200

Parameters = dict[str, Any]


def text(key: Any, count: int) -> str:
    """Sentences, one after the other."""
    kinds = (ARTICLES, ADJECTIVES, NOUNS, VERBS, ARTICLES, ADJECTIVES, NOUNS)
    chosen = random.uniform(key, (count, len(kinds)))
    sentences = []
    for row in chosen.tolist():
        words = [kind[int(u * len(kind))] for kind, u in zip(kinds, row, strict=True)]
        sentences.append(" ".join(words) + ". ")
    return "".join(sentences)


def initial(key: Any) -> Parameters:
    def matrix(n: int, m: int) -> Array:
        nonlocal key
        key, own = random.split(key)
        return random.normal(own, (n, m)) / jnp.sqrt(n)

    block = [
        {"attention": matrix(WIDTH, 3 * WIDTH), "mixed": matrix(WIDTH, WIDTH), "wide": matrix(WIDTH, 4 * WIDTH),
         "narrow": matrix(4 * WIDTH, WIDTH), "scale": jnp.ones((2, WIDTH)), "shift": jnp.zeros((2, WIDTH))}
        for _ in range(BLOCKS)
    ]  # fmt: skip
    last = 0.1 * matrix(WIDTH, len(LETTERS))
    return {"letters": matrix(len(LETTERS), WIDTH), "places": matrix(LENGTH, WIDTH), "blocks": block, "last": last}


def network(parameters: Parameters, letters: Array) -> Array:
    """A score for each next letter; ``letters`` are of shape (batch, length)."""
    batch, length = letters.shape
    x = parameters["letters"][letters] + parameters["places"][:length]
    for block in parameters["blocks"]:
        y = nn.standardize(x) * block["scale"][0] + block["shift"][0]
        q, k, v = ((y @ block["attention"]).reshape(batch, length, 3, HEADS, -1)[:, :, i] for i in range(3))
        x = x + nn.dot_product_attention(q, k, v, is_causal=True).reshape(x.shape) @ block["mixed"]
        y = nn.standardize(x) * block["scale"][1] + block["shift"][1]
        x = x + nn.gelu(y @ block["wide"]) @ block["narrow"]
    return nn.standardize(x) @ parameters["last"]


def loss(parameters: Parameters, letters: Array) -> Array:
    """The mean of minus the logarithm of the probability of each letter that comes next."""
    scores = nn.log_softmax(network(parameters, letters[:, :-1]))
    return -jnp.mean(jnp.sum(nn.one_hot(letters[:, 1:], len(LETTERS)) * scores, axis=-1))


@jit
def step(state: Any, letters: Array, rate: Array) -> tuple[Any, Array]:
    """A step of Adam's method (Kingma and Ba 2015), and the loss before it."""
    parameters, first, second, count = state
    value, gradient = value_and_grad(loss)(parameters, letters)
    count = count + 1
    first = tree.map(lambda m, g: 0.9 * m + 0.1 * g, first, gradient)
    second = tree.map(lambda v, g: 0.99 * v + 0.01 * g**2, second, gradient)

    def moved(p: Array, m: Array, v: Array) -> Array:
        return p - rate * (m / (1 - 0.9**count)) / (jnp.sqrt(v / (1 - 0.99**count)) + 1e-8)

    return (tree.map(moved, parameters, first, second), first, second, count), value


def continued(parameters: Parameters, start: str, count: int) -> str:
    """A text with the most likely letter after it, again and again."""
    next_letter = jit(lambda letters, last: jnp.argmax(network(parameters, letters)[0, last]))
    for _ in range(count):
        seen = [LETTERS.index(c) for c in start[-(LENGTH - 1) :]]
        padded = jnp.array([seen + [0] * (LENGTH - 1 - len(seen))])
        start += LETTERS[int(next_letter(padded, len(seen) - 1))]
    return start


def draw(losses: Array, path: Path) -> None:
    """The curve of the loss as a picture."""
    try:
        import matplotlib

        matplotlib.use("Agg")
        from matplotlib import pyplot
    except ImportError:
        print("matplotlib is not installed: no picture")
        return
    figure, axes = pyplot.subplots(figsize=(6, 3.5))
    axes.plot(losses)
    axes.set(xlabel="step", ylabel="loss per letter", title="A transformer on generated text")
    figure.tight_layout()
    figure.savefig(path)
    print(f"the loss is drawn in {path}")


def main(path: Path) -> int:
    text_key, key, place_key = random.split(random.key(0), 3)
    letters = jnp.array([LETTERS.index(c) for c in text(text_key, 800)])
    parameters = initial(key)
    zeros = tree.map(jnp.zeros_like, parameters)
    state = parameters, zeros, zeros, jnp.zeros(())
    starts = random.randint(place_key, (STEPS, BATCH), 0, len(letters) - LENGTH)
    losses = []
    for i in range(STEPS):
        batch = letters[starts[i][:, None] + jnp.arange(LENGTH)]
        state, value = step(state, batch, jnp.float32(3e-3))
        losses.append(float(value))
    parameters = state[0]
    print(f"loss per letter: {losses[0]:.2f} at first, {sum(losses[-20:]) / 20:.2f} in the end")
    written = continued(parameters, "the old ", 40)
    print(f"the network writes: {written}")
    words = written.replace(".", "").split()[:-1]
    known = sum(w in (*ARTICLES, *ADJECTIVES, *NOUNS, *VERBS) for w in words)
    print(f"{known} of {len(words)} words are words")
    size = max(float(jnp.abs(g).max()) for g in tree.leaves(grad(loss)(parameters, letters[None, :LENGTH])))
    print(f"the largest derivative is {size:.3f}")
    draw(jnp.array(losses), path)
    return 0 if known >= len(words) - 1 and losses[-1] < 1 else 1


if __name__ == "__main__":
    target = sys.argv[1] if len(sys.argv) > 1 else tempfile.mkdtemp() + "/loss.png"
    sys.exit(main(Path(target)))
