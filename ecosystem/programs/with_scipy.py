"""SciPy: functions for arrays of any library, called with JAX's: spectra, statistics, integrals, rotations."""

import os

os.environ["SCIPY_ARRAY_API"] = "1"

import json

import jax
import jax.numpy as jnp
from scipy import cluster, differentiate, fft, integrate, signal, special, stats
from scipy.spatial.transform import Rotation

keys = jax.random.split(jax.random.key(0), 4)
x = jax.random.normal(keys[0], (24,))
y = 0.5 * x + jax.random.normal(keys[1], (24,))
points = jax.random.normal(keys[2], (3, 3))
turn = Rotation.from_rotvec(jnp.array([0.1, -0.7, 1.2]))
window = signal.get_window("hann", 8, xp=jnp)
test = stats.ttest_ind(x, y)
correlation = stats.pearsonr(x, y)
slopes = differentiate.jacobian(lambda z: jnp.stack([jnp.sin(z[0]) * z[1], z[0] ** 2 + z[1]]), jnp.array([0.4, 1.5]))
results = {
    "spectrum": jnp.abs(fft.rfft(x)),
    "cosines": fft.dct(x[:6]),
    "convolution": signal.fftconvolve(x, window, mode="valid"),
    "trapezoids": integrate.trapezoid(y[:5], x=jnp.arange(5.0)),
    "log gamma": special.gammaln(jnp.abs(x[:4])),
    "entropy": special.entr(jnp.abs(y[:4])),
    "sum of exponentials": special.logsumexp(points, axis=1),
    "t-test": jnp.stack([test.statistic, test.pvalue]),
    "correlation": jnp.stack([correlation.statistic, correlation.pvalue]),
    "skewness": jnp.stack([stats.skew(x), stats.kurtosis(y)]),
    "zscore": stats.zscore(x[:5]),
    "whitened": cluster.vq.whiten(points),
    "rotated": turn.apply(points),
    "quaternion": (turn * turn.inv() * turn).as_quat(),
    "jacobian": slopes.df,
}
for name, value in results.items():
    assert isinstance(value, jax.Array), (name, type(value))
print(json.dumps({name: value.tolist() for name, value in results.items()}))
