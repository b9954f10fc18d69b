"""Simulated data whose truth is known: for examples, demonstrations, tests and benchmarks."""
