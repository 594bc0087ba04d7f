"""Inspection of functions while they run, including transformed and compiled ones."""

from pullback.core.faces import face as _face

_face(
    globals(),
    {
        "pullback.display.shown": "show",
        "pullback.transforms.programs.breakpoints": "breakpoint=debug_breakpoint",
        "pullback.transforms.programs.callbacks": "callback=debug_callback log=debug_log print=debug_print",
        "pullback.transforms.programs.sharding_views": (
            "inspect_array_sharding visualize_array_sharding visualize_sharding"
        ),
    },
)
