"""``...splash_attention_mask``: Keras imports it, and uses it only on TPUs."""
