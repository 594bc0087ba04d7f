"""Rich display: arrays, programs, trees, shardings and compiled functions as HTML for notebooks, and as text.

``hooks`` connects the classes with this room at ``import pullback``; everything else is imported when something is
first displayed.
"""
