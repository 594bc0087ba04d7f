"""``pullback bench``: the times of Pullback on this machine, beside those of the libraries that are installed here."""
