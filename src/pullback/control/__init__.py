"""Structured control flow: branches and loops as operations that hold programs."""

from pullback.control import reverse as reverse  # registers the transposition rules of loops
