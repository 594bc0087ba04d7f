"""Random programs of the whole catalogue, which are compared with what they have to be equal to.

``python -m tests.fuzz --minutes 10 --seed 0`` draws programs (``draw``), evaluates each in several ways that have to
agree (``laws``), reduces what fails to a smallest program (``reduce``), and prints that as a test (``show``). A program
is data (``program``): a list of instructions, each of which is the text of an expression. What these texts say besides
the public API is in ``words``. Program ``i`` of a seed is the same in every run.
"""
