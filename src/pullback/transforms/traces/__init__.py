"""The interpreters: what each transformation makes of an operation, and of a program."""
