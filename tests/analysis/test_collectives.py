"""Collectives are read from the texts of partitioned programs, in each form in which the compiler writes them."""

import pytest

import pullback
from pullback.analysis import Collective, collectives
from pullback.core.errors import ArgumentError

MESH = {"a": 2, "b": 4}


def program(*instructions: str, more: str = "") -> str:
    """The text of a program over eight devices whose main computation has ``instructions``."""
    lines = "\n".join(f"  %v{i} = {text}" for i, text in enumerate(instructions))
    head = "HloModule jit_f, is_scheduled=true, num_partitions=8"
    return f"{head}\n\n{more}\nENTRY %main (p: f32[8]) -> f32[8] {{\n{lines}\n}}\n"


def only(text: str) -> Collective:
    """The single collective of a program over ``MESH``."""
    (found,) = collectives(text, MESH)
    return found


@pytest.mark.parametrize(
    ("groups", "axes"),
    [
        ("{{0,1,2,3},{4,5,6,7}}", ("b",)),
        ("{{0,4},{1,5},{2,6},{3,7}}", ("a",)),
        ("[2,4]<=[8]", ("b",)),
        ("[4,2]<=[2,4]T(1,0)", ("a",)),
        ("{}", ("a", "b")),
        ("mesh['x'=2,'y'=4] {'y'}", ("b",)),
        ("mesh['x'=2,'y'=4] {'x'}", ("a",)),
        ("mesh['x'=4,'y'=2], device_ids=([2,4]T(1,0)) {'y'}", ("a",)),
        ("mesh['x'=4,'y'=2], device_ids=(0,4,1,5,2,6,3,7) {'x'}", ("b",)),
        ("mesh['x'=8] {'x':(1)2}", ("a",)),
        ("mesh['x'=8] {'x':(2)4}", ("b",)),
        ("mesh['x'=2,'y'=4] {'x','y'}", ("a", "b")),
    ],
)
def test_groups_in_all_forms(groups: str, axes: tuple[str, ...]) -> None:
    found = only(program(f"f32[6]{{0}} all-reduce(%p), channel_id=1, replica_groups={groups}, to_apply=%add"))
    assert found.axes == axes
    assert found.devices == {("a",): 2, ("b",): 4, ("a", "b"): 8}[axes]
    assert found.nbytes == 24


@pytest.mark.parametrize(
    ("instruction", "nbytes", "moved"),
    [
        ("bf16[8,3]{1,0} all-reduce(%p), replica_groups=[2,4]<=[8], to_apply=%add", 48, 72),
        ("(f32[2]{0}, pred[8]{0}) all-reduce(%p, %q), replica_groups=[2,4]<=[8], to_apply=%add", 16, 24),
        ("f32[8]{0} all-gather(%p), replica_groups=[2,4]<=[8], dimensions={0}", 8, 24),
        ("f32[2]{0} reduce-scatter(%p), replica_groups=[2,4]<=[8], dimensions={0}, to_apply=%add", 32, 24),
        ("c64[4]{0} all-to-all(%p), replica_groups=[2,4]<=[8], dimensions={0}", 32, 24),
        ("(f32[1]{0}, f32[1]{0}, /*index=2*/f32[1]{0}, f32[1]{0}) all-to-all(%p), replica_groups=[2,4]<=[8]", 16, 12),
        ("s4[8]{0} collective-permute(%p), source_target_pairs={{0,1},{1,2},{2,3}}", 4, 4),
        ("(f32[2]{0}, f32[8]{0}) all-gather-start(%p), replica_groups=[2,4]<=[8], dimensions={0}", 8, 24),
        ("f32[] all-reduce(%p), replica_groups=[2,4]<=[8], to_apply=%add", 4, 6),
        ("f8e4m3fn[12]{0} all-reduce(%p), replica_groups=[2,4]<=[8], to_apply=%add", 12, 18),
    ],
)
def test_bytes_of_all_kinds(instruction: str, nbytes: int, moved: float) -> None:
    found = only(program(instruction))
    assert (found.nbytes, found.moved, found.devices) == (nbytes, moved, 4)


SUM = "f32[4]{0} all-reduce(%p), replica_groups=[2,4]<=[8], to_apply=%add"
BODY = f"%body (p: f32[4]) -> f32[4] {{\n  ROOT %x = {SUM}\n}}\n\n%condition (p: f32[4]) -> pred[] {{\n}}\n"


def test_loops_multiply() -> None:
    loop = "f32[4]{0} while(%p), condition=%condition, body=%body"
    known = loop + ', backend_config={"known_trip_count":{"n":"5"}}'
    assert only(program(known, more=BODY)).times == 5
    assert only(program(loop, more=BODY)).times is None
    nested = f"%outer (p: f32[4]) -> f32[4] {{\n  %x = {known}\n}}\n"
    twice = 'f32[4]{0} while(%p), condition=%condition, body=%outer, backend_config={"known_trip_count":{"n":"3"}}'
    assert only(program(twice, more=BODY + nested)).times == 15


def test_the_branch_that_moves_most_counts() -> None:
    large = SUM.replace("f32[4]", "f32[400]")
    branches = f"%one (p: f32[4]) -> f32[4] {{\n  %x = {SUM}\n}}\n%two (p: f32[4]) -> f32[4] {{\n  %x = {large}\n}}\n"
    for text in ("branch_computations={%one, %two}", "true_computation=%two, false_computation=%one"):
        assert only(program(f"f32[4]{{0}} conditional(%i, %p, %p), {text}", more=branches)).nbytes == 1600


def test_called_computations_count_once_a_call() -> None:
    called = "f32[4]{0} call(%p), to_apply=%body"
    assert len(collectives(program(called, called, more=BODY), MESH)) == 2


def test_lines() -> None:
    tables = (
        'FileNames\n1 "/a/model.py"\n\nFunctionNames\n1 "f"\n\nFileLocations\n'
        "7 {file_name_id=1 function_name_id=1 line=31 end_line=31}\n\n"
        "StackFrames\n2 {file_location_id=7 parent_frame_id=2}\n"
    )
    assert only(program(SUM + ', metadata={op_name="f" stack_frame_id=2}', more=tables)).line == "/a/model.py:31"
    assert only(program(SUM + ', metadata={op_name="f" source_file="b.py" source_line=4}')).line == "b.py:4"
    assert only(program(SUM)).line == ""


def test_one_device_exchanges_nothing() -> None:
    alone = "f32[4]{0} all-reduce(%p), replica_groups={{0},{1},{2},{3},{4},{5},{6},{7}}, to_apply=%add"
    assert collectives(program(alone), MESH) == ()


def test_what_runs_beside_the_program_counts_once() -> None:
    wrapped = f"%wrapped (q: f32[4]) -> f32[4] {{\n  %s = {SUM}\n}}\n"
    text = program(
        "((f32[4]), f32[4]) async-start(%p), calls=%wrapped", "((f32[4]), f32[4]) async-update(%v0), calls=%wrapped",
        "f32[4] async-done(%v1), calls=%wrapped", more=wrapped,
    )  # fmt: skip
    assert only(text).times == 1


def test_errors() -> None:
    with pytest.raises(ArgumentError, match=r"text must be the text of a compiled program, .* got Compiled"):
        collectives(pullback.jit(lambda x: x + 1).lower(1.0).compile(), MESH)  # type: ignore[arg-type]
    for wrong in (None, 8, {"a": 0}, {"a": "8"}):
        with pytest.raises(ArgumentError, match="mesh must be a mesh, or the sizes of a mesh by their names, such as"):
            collectives(program(SUM), wrong)
    with pytest.raises(
        ArgumentError, match=r"expected the text of a compiled program.*got text that begins with 'hello'"
    ):
        collectives("hello", MESH)
    with pytest.raises(ArgumentError, match=r"runs on 8 devices, but the mesh .* has 6"):
        collectives(program(SUM), {"a": 6})
    with pytest.raises(ArgumentError, match=r"expected groups of equally many devices, got .*\{\{0,1\},\{2\}\}"):
        collectives(program("f32[4]{0} all-reduce(%p), replica_groups={{0,1},{2}}, to_apply=%add"), MESH)
    text = pullback.jit(lambda x: x + 1).lower(1.0).as_text()
    with pytest.raises(ArgumentError, match="as_text"):
        collectives(text, MESH)
