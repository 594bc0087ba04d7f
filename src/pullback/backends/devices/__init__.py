"""Devices, meshes of devices, shardings, and arrays on devices."""
