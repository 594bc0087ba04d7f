"""The interpreters: how each transformation processes an operation, and a program."""
