"""Parts that the attention operators share: softmax attention in float64, and likely mistakes in it."""
