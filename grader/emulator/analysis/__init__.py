"""What the translator must know before it writes code: control flow, data flow, and which values lanes share."""
