"""Operations that hold programs, callbacks, placement and transfer of arrays."""
