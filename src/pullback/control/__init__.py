"""Structured control flow: branches and loops as operations that hold programs."""
