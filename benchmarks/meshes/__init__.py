"""What training programs over large meshes exchange, and how long they take to trace, lower and divide."""
