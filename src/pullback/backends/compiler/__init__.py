"""The compiler and its runtime behind one adapter: programs compiled, kept, and run."""
