"""Matrix instructions of a GPU and of the emulator, compared bit for bit on millions of vectors."""
