"""Two small libraries that show how to write others: ``stax`` for layers, and ``optimizers``."""
