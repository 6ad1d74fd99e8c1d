"""Analyses that the translator needs before it writes code: control flow, data flow, and which values are the same in
all lanes."""
