// Does not compile: the first line of main lacks its semicolon.
int main() {
    int answer = 42
    return answer;
}
