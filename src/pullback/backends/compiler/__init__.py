"""The compiler and its runtime behind one adapter: programs are compiled, cached and run."""
