"""scikit-learn: a decomposition, kernels and metrics of JAX's arrays, by its dispatch over the array API."""

import os

os.environ["SCIPY_ARRAY_API"] = "1"

import json

import jax
import jax.numpy as jnp
import sklearn
from sklearn import decomposition, metrics, model_selection, preprocessing, utils
from sklearn.metrics import pairwise

# What assigns to elements of arrays, which JAX's arrays refuse, is left out.
sklearn.set_config(array_api_dispatch=True)
keys = jax.random.split(jax.random.key(0), 2)
x = jax.random.normal(keys[0], (60, 4)) * jnp.array([1.0, 2.0, 0.5, 3.0])
target = x @ jnp.array([1.0, -0.5, 2.0, 0.0]) + 0.1 * jax.random.normal(keys[1], (60,))
labels = (target > 0).astype(jnp.int32)
chance = jax.nn.sigmoid(x[:, 0])

components = decomposition.PCA(n_components=2, svd_solver="full").fit(x)
by_chance = decomposition.PCA(n_components=2, svd_solver="randomized", power_iteration_normalizer="QR", random_state=0)
train, test = model_selection.train_test_split(x, random_state=0)
results = {
    "components": jnp.abs(components.components_),
    "variances": components.explained_variance_ratio_,
    "projected": jnp.abs(components.transform(x[:3])),
    "restored": components.inverse_transform(components.transform(x[:2])),
    "randomised": by_chance.fit(x).singular_values_,
    "polynomial": pairwise.polynomial_kernel(x[:2], x[2:5]),
    "chi-squared": pairwise.additive_chi2_kernel(jnp.abs(x[:2]), jnp.abs(x[2:5])),
    "distances": pairwise.paired_euclidean_distances(x[:3], x[3:6]),
    "centred": preprocessing.KernelCenterer().fit_transform(x[:3] @ x[:3].T),
    "encoded": preprocessing.LabelEncoder().fit_transform(labels[:5] + 3),
    "test": test[:2],
    "resampled": utils.resample(x, n_samples=2, random_state=0),
    "confusion": metrics.confusion_matrix(labels, labels[::-1]),
}
for name, value in results.items():
    assert isinstance(value, jax.Array), (name, type(value))
figures = {name: value.tolist() for name, value in results.items()}
figures["classes"] = [
    float(metric(labels, labels[::-1]))
    for metric in (metrics.accuracy_score, metrics.balanced_accuracy_score, metrics.hamming_loss)
]
figures["probabilities"] = [
    float(metric(labels, chance))
    for metric in (metrics.log_loss, metrics.brier_score_loss, metrics.roc_auc_score, metrics.average_precision_score)
]
figures["errors"] = [
    float(metric(target, x[:, 0]))
    for metric in (
        metrics.mean_squared_error,
        metrics.mean_absolute_error,
        metrics.max_error,
        metrics.mean_pinball_loss,
    )
]
print(json.dumps(figures))
