"""Structured control flow: branches and loops as operations that hold programs."""

from pullback.control import reverse as reverse  # which gives loops their transpose rule
from pullback.control import scan_policies as scan_policies  # which lets policies of checkpoint reach into scans
