"""Operations on small and large arrays, one at a time: Pullback against JAX and PyTorch, eager and compiled."""
