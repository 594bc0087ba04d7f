"""``...splash_attention``: Keras imports it, and uses it on TPUs alone."""
