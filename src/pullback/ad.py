"""Options for the results of ``vjp``, by cotangent, under the names of ``jax.ad``."""

from pullback.core.faces import face
from pullback.transforms.autodiff.gradient_refs import DidntWant as DidntWant
from pullback.transforms.autodiff.gradient_refs import DontWant as DontWant
from pullback.transforms.autodiff.gradient_refs import GradRef as GradRef
from pullback.transforms.autodiff.gradient_refs import GradValue as GradValue

__all__ = ["DidntWant", "DontWant", "GradRef", "GradValue"]
face(globals())
