"""MuJoCo MJX: 100 steps of an arm with two hinges, a ball that falls and bounces, derivatives both ways, batches.

Of the ball 61 steps are compared, with its first bounce. With the instructions of AVX instead of those of the newest
processors, JAX's own positions are 1e-6 apart after these, and after the second bounce, at step 64, by 3e-3 and more:
each contact enlarges the rounding of float32.
"""

import json

import jax
import jax.numpy as jnp
import mujoco
from mujoco import mjx

ARM = """
<mujoco><option timestep="0.01" integrator="{integrator}"/><worldbody><body pos="0 0 1">
  <joint name="shoulder" type="hinge" axis="0 1 0" damping="0.1"/>
  <geom type="capsule" size="0.02" fromto="0 0 0 0.3 0 0"/>
  <body pos="0.3 0 0"><joint name="elbow" type="hinge" axis="0 1 0" damping="0.05"/>
    <geom type="capsule" size="0.02" fromto="0 0 0 0.3 0 0"/></body>
</body></worldbody><actuator><motor joint="shoulder" gear="0.5"/><motor joint="elbow" gear="0.2"/></actuator></mujoco>
"""
BALL = """
<mujoco><option timestep="0.005" iterations="1" ls_iterations="4"/><worldbody><geom type="plane" size="2 2 0.1"/>
  <body pos="0 0 0.25"><freejoint/><geom type="sphere" size="0.1" mass="0.5"/></body></worldbody></mujoco>
"""


def trajectory(model, data, steps):
    def step(data, _):
        data = mjx.step(model, data)
        return data, data.qpos

    return jax.lax.scan(step, data, None, length=steps)


def made(text):
    model = mjx.put_model(mujoco.MjModel.from_xml_string(text))
    return model, mjx.make_data(model)


arm, rest = made(ARM.format(integrator="Euler"))


@jax.jit
def swing(torques):
    final, positions = trajectory(arm, rest.replace(ctrl=torques), 100)
    return positions[::20], final.qvel


@jax.jit
def height(torques):
    final, _ = trajectory(arm, rest.replace(ctrl=torques), 20)
    return mjx.forward(arm, final).geom_xpos[-1, 2]


torques = jnp.array([0.3, -0.1])
positions, velocity = swing(torques)
tangent = jax.jvp(swing, (torques,), (jnp.array([1.0, 0.5]),))[1]
ball, above = made(BALL)
fall = jax.jit(
    lambda speed: trajectory(ball, above.replace(qvel=above.qvel.at[0].set(speed)), 61)[1][::20, 0:3:2]
)  # y is rounding alone
figures = {
    "positions": positions.tolist(),
    "velocity": velocity.tolist(),
    "forwards": tangent[0][-1].tolist(),
    "backwards": jax.jit(jax.grad(height))(torques).tolist(),
    "batch": jax.vmap(height)(jnp.array([[0.0, 0.0], [0.5, 0.5], [-0.2, 0.1]])).tolist(),
    "ball": fall(0.5).tolist(),
}
print(json.dumps(figures))
