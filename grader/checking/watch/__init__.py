"""Watch: why is this value wrong, and in which line? A run of the program is recorded as a graph of values
(recording.py). Each value is recognised as a step of a right computation, from its operands on (labels.py): its index,
the terms that are summed so far, the factor by which it is off. Where right operands give a value that no right
computation has, there the mistake is (reading.py). Nothing is known of names, styles or tilings.
"""
