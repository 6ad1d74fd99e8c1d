#define TEN(x) x x x x x x x x x x
#define NAME TEN(TEN(TEN(TEN(TEN("./")))))

void copy_too_much(void* to, void* from) {  // cudaMemcpy(to, from, 4096, cudaMemcpyHostToDevice) at a line of the name
    __asm__ volatile(
        ".file 2 \"" NAME NAME "x\"\n.loc 2 20000000 0\n"
        "sub $8, %%rsp\ncall cudaMemcpy@PLT\nadd $8, %%rsp" ::"D"(to), "S"(from), "d"(4096L), "c"(1L)
        : "rax", "r8", "r9", "r10", "r11", "memory");
}
