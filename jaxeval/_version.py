"""The version, apart from the package so that building it imports nothing."""

__version__ = "0.1.0"
