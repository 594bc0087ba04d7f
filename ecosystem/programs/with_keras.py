"""Keras on its JAX backend: convolutional and recurrent layers, compiled, fitted, saved and loaded; attention."""

import json
import os
import tempfile

os.environ["KERAS_BACKEND"] = "jax"

import jax
import keras
import numpy as np

keras.utils.set_random_seed(0)
rng = np.random.default_rng(0)
labels = np.arange(96) % 3
x = (rng.normal(size=(96, 12, 2)) + labels[:, None, None]).astype("float32")

model = keras.Sequential(
    [
        keras.layers.Input((12, 2)), keras.layers.Conv1D(8, 3, activation="relu", padding="same"),
        keras.layers.BatchNormalization(), keras.layers.MaxPooling1D(2), keras.layers.LSTM(8),
        keras.layers.Dropout(0.1), keras.layers.Dense(3, activation="softmax"),
    ]
)  # fmt: skip
model.compile(keras.optimizers.Adam(1e-2), loss="sparse_categorical_crossentropy", metrics=["accuracy"])
history = model.fit(x, labels, epochs=4, batch_size=32, validation_split=0.25, shuffle=False, verbose=0)
loss, accuracy = model.evaluate(x, labels, verbose=0)
predictions = model.predict(x[:2], verbose=0)

with tempfile.TemporaryDirectory() as folder:
    path = os.path.join(folder, "model.keras")
    model.save(path)
    again = keras.saving.load_model(path).predict(x[:2], verbose=0)

inputs = keras.Input((12, 2))
attended = keras.layers.MultiHeadAttention(2, 4)(inputs, inputs)
functional = keras.Model(inputs, keras.layers.GlobalAveragePooling1D()(keras.layers.LayerNormalization()(attended)))
state = [v.value for v in functional.trainable_variables], [v.value for v in functional.non_trainable_variables]
grads = jax.grad(lambda trained: functional.stateless_call(trained, state[1], x[:4])[0][:, 0].sum())(state[0])
figures = {
    "losses": history.history["loss"],
    "validation": history.history["val_loss"],
    "evaluation": [loss, accuracy],
    "predictions": predictions.ravel().tolist(),
    "loaded": again.ravel().tolist(),
    "parameters": model.count_params(),
    "gradient": np.asarray(grads[0]).ravel().tolist(),
    "operations": np.asarray(keras.ops.logsumexp(keras.ops.einsum("bti,bti->bt", x[:2], x[2:4]), axis=1)).tolist(),
}
print(json.dumps(figures))
