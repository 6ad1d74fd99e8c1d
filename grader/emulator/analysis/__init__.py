"""Analyses that the translator needs before it writes code: control flow, data flow, and which values lanes share."""
