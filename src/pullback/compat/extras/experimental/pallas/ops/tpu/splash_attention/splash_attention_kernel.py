"""``...splash_attention_kernel``: Keras imports it, and uses it only on TPUs."""
