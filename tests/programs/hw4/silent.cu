// Ends well and leaves no output.
int main() { return 0; }
