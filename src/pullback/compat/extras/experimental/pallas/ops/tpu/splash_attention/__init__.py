"""``...splash_attention``: Keras imports it, and uses it only on TPUs."""
