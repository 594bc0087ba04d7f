"""Devices, meshes of them, and the arrays that are on them."""
