"""Operations that move elements: shapes, slices, gathers, scatters, sorting."""
