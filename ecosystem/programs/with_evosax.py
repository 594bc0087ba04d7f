"""Evosax: CMA-ES, OpenAI's strategy, a swarm and differential evolution, in loops that are scanned, on BBOB functions.

CMA-ES: to 1e-3, because the strategy amplifies the last digits of its eigenvectors at each of 40 generations.
"""

import json

import jax
import jax.numpy as jnp
import optax
from evosax import algorithms, problems

key = jax.random.key(0)
rosenbrock = problems.BBOBProblem("rosenbrock", num_dims=4, x_opt=jnp.full(4, 0.5), f_opt=0.0, sample_rotations=False)
start = {"a": jnp.zeros(2), "b": jnp.ones((1, 2))}


def cost(solutions):
    flat = jnp.concatenate([solutions["a"], solutions["b"][:, 0]], axis=1)
    return jnp.sum((flat - jnp.array([1.0, -1.0, 0.5, 2.0])) ** 2, axis=1)


def search(algorithm, generations, population=None):
    params = algorithm.default_params

    def generation(state, key):
        ask, tell = jax.random.split(key)
        solutions, state = algorithm.ask(ask, state, params)
        state, metrics = algorithm.tell(tell, solutions, cost(solutions), state, params)
        return state, metrics["best_fitness"]

    @jax.jit
    def run(key):
        first, rest = jax.random.split(key)
        if population is None:
            state = algorithm.init(first, start, params)
        else:
            state = algorithm.init(first, population, cost(population), params)
        return jax.lax.scan(generation, state, jax.random.split(rest, generations))

    state, best = run(key)
    return best, state


population = {"a": jax.random.normal(key, (16, 2)), "b": jax.random.normal(key, (16, 1, 2))}
cma, _ = search(algorithms.CMA_ES(population_size=12, solution=start), 40)
openai, after = search(algorithms.Open_ES(population_size=32, solution=start, optimizer=optax.adam(0.05)), 60)
swarm, _ = search(algorithms.PSO(population_size=16, solution=start), 40, population)
differential, _ = search(algorithms.DifferentialEvolution(population_size=16, solution=start), 40, population)
state = rosenbrock.init(key)
points = jax.vmap(rosenbrock.sample)(jax.random.split(key, 3))
fitness, _, _ = rosenbrock.eval(key, points, state)
figures = {
    "CMA-ES": jnp.log(cma[::8]).tolist(),
    "OpenAI": openai[::10].tolist(),
    "mean": after.mean.tolist(),
    "swarm": swarm[::8].tolist(),
    "differential evolution": differential[::8].tolist(),
    "points": points.tolist(),
    "Rosenbrock": fitness.tolist(),
}
print(json.dumps(figures))
