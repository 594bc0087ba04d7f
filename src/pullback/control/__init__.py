"""Structured control flow: branches and loops as operations that hold programs."""

from pullback.control import reverse as reverse  # which registers the transpose rules of loops
