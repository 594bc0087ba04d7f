"""Local Jacobians of parts of programs: how they are made, where they stand in for the parts, and for which parts."""
