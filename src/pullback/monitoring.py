"""Listeners for events, durations and numbers that are recorded while programs are traced and compiled.

See :mod:`pullback.core.monitoring` for the records that Pullback makes.
"""

from pullback.core.faces import face as _face

_face(
    globals(),
    {
        "pullback.core.monitoring": (
            "clear_event_listeners record_event record_event_duration_secs record_event_time_span record_scalar "
            "register_event_duration_secs_listener register_event_listener register_event_time_span_listener "
            "register_scalar_listener unregister_event_duration_listener unregister_event_listener "
            "unregister_event_time_span_listener unregister_scalar_listener"
        ),
    },
)
