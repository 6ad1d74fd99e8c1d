"""What the operators of attention are made of: the float64 softmax attention, and its likely mistakes."""
