"""``jax._src.effects``: sets of classes of effects, to which Oryx adds its own."""

from pullback.compat.extras.experimental.hijax import EffectTypeSet as EffectTypeSet
from pullback.compat.extras.experimental.hijax import control_flow_allowed_effects as control_flow_allowed_effects
from pullback.core.inspection import Effect as Effect

lowerable_effects, ordered_effects, remat_allowed_effects = EffectTypeSet(), EffectTypeSet(), EffectTypeSet()
"""The effects that compiled programs, programs in order, and ``checkpoint`` allow in JAX; here all are allowed."""
