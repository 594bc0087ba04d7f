"""s2fft: transforms on the sphere in three samplings, there and back, a gradient, and on the rotation group."""

import json

import jax

jax.config.update("jax_enable_x64", True)

import jax.numpy as jnp  # noqa: E402
import numpy as np  # noqa: E402
import s2fft  # noqa: E402

L = 8
random = np.random.default_rng(0)
coefficients = s2fft.utils.signal_generator.generate_flm(random, L, reality=True)
spinning = s2fft.utils.signal_generator.generate_flm(random, L, spin=2)


def there_and_back(coefficients, **options):
    image = s2fft.inverse(coefficients, L, method="jax", **options)
    return image, s2fft.forward(image, L, method="jax", **options)


image, back = there_and_back(coefficients, reality=True)
spun, spun_back = there_and_back(spinning, spin=2, sampling="dh")
healpix = s2fft.inverse(coefficients, L, sampling="healpix", nside=4, method="jax", reality=True)
assert np.allclose(back, coefficients)
assert np.allclose(spun_back, spinning)


def difference(coefficients):
    return jnp.sum(jnp.abs(s2fft.inverse(coefficients, L, method="jax") - 1.0) ** 2)


slope = jax.grad(difference)(jnp.asarray(coefficients))
turned = s2fft.utils.rotation.rotate_flms(jnp.asarray(coefficients), L, (0.3, 0.7, -0.2))
wigner = s2fft.utils.signal_generator.generate_flmn(random, 4, 2)
on_rotations = s2fft.wigner.inverse(wigner, 4, 2, method="jax")
figures = {
    "image": image[2].real.tolist(),
    "spin": [spun[3, :4].real.tolist(), spun[3, :4].imag.tolist()],
    "HEALPix": healpix[:6].real.tolist(),
    "gradient": [slope[3].real.tolist(), slope[3].imag.tolist()],
    "turned": turned[2].real.tolist(),
    "rotations": on_rotations[1, 2, :4].real.tolist(),
}
print(json.dumps(figures))
