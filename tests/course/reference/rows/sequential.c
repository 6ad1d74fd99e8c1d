/* The baseline of the assignment rows: what tests read of it is that it is there. */
int main(void) { return 0; }
