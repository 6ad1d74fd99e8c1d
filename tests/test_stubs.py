"""The grader's stand-ins for the CUDA samples' helper headers do what the samples rely on."""

from pathlib import Path

from tests.support.command_line import grader

PROGRAM = r"""
#include <helper_cuda.h>
#include <helper_functions.h>
#define EXPECT(what) if (!(what)) { printf("line %d: %s\n", __LINE__, #what); failures++; }
int failures = 0;

void arguments() {
    const char *words[] = {"x", "-n=5", "--Scale=0.5", "name=value", "--file=a=b.txt", "-q"};
    char *text = nullptr;
    long number = 7;
    EXPECT(checkCmdLineFlag(6, words, "q") && !checkCmdLineFlag(6, words, "name") && !checkCmdLineFlag(6, words, "x"));
    EXPECT(getCmdLineArgumentInt(6, words, "n") == 5 && getCmdLineArgumentFloat(6, words, "scale") == 0.5f);
    EXPECT(getCmdLineArgumentString(6, words, "file", &text) && !strcmp(text, "a=b.txt"));
    EXPECT(!getCmdLineArgumentString(6, words, "nothing", &text) && text == nullptr);
    EXPECT(getCmdLineArgumentValue(6, words, "n", &number) && number == 5);
    EXPECT(stringRemoveDelimiter('-', "--n") == 2);
}

void comparisons() {
    const float reference[] = {1, 2, 3, 4}, near[] = {1, 2.01f, 3, 4}, nan[] = {1, 2, NAN, 4};
    EXPECT(compareData(reference, near, 4, 0.02f, 0.0f) && !compareData(reference, near, 4, 0.001f, 0.0f));
    EXPECT(compareData(reference, near, 4, 0.001f, 0.5f) && !compareData(reference, near, 4, 0.001f, 0.25f));
    EXPECT(!compareData(reference, nan, 4, 1e30f, 0.0f) && !sdkCompareL2fe(reference, nan, 4, 0.1f));
    EXPECT(sdkCompareL2fe(reference, near, 4, 0.01f) && !sdkCompareL2fe(reference, near, 4, 0.001f));
}

void images(const char *program) {
    unsigned char grey[6] = {0, 51, 102, 153, 204, 255}, colours[8] = {1, 2, 3, 9, 4, 5, 6, 9}, *read = nullptr;
    float *fraction = nullptr;
    unsigned int width = 0, height = 0, count = 0;
    EXPECT(sdkSavePGM("grey.pgm", grey, 3, 2) && sdkLoadPGM("grey.pgm", &fraction, &width, &height));
    EXPECT(width == 3 && height == 2 && fabsf(fraction[1] - 0.2f) < 1e-6f);
    EXPECT(sdkSavePGM("again.pgm", fraction, 3, 2) && sdkComparePGM("grey.pgm", "again.pgm", 1, 0, false));
    EXPECT(sdkSavePPM4ub("c.ppm", colours, 2, 1) && sdkLoadPPM4("c.ppm", &read, &width, &height));
    EXPECT(width == 2 && read[2] == 3 && read[3] == 0 && read[4] == 4);
    EXPECT(sdkComparePPM("c.ppm", "c.ppm", 0, 0, false) && !sdkComparePPM("c.ppm", "grey.pgm", 9, 0, false));
    EXPECT(!sdkLoadPPM4("grey.pgm", &read, &width, &height) && !sdkLoadPGM("nothing.pgm", &read, &width, &height));
    char *found = sdkFindFilePath("numbers.txt", program);
    EXPECT(found && sdkReadFile(found, &fraction, &count, false) && count == 3 && fraction[2] == 2.5f);
    EXPECT(sdkWriteFile("out.txt", fraction, 3, 0.0f, false) && sdkFindFilePath("nothing", program) == nullptr);
    sdkDumpBin(fraction, 12, "a.bin");
    EXPECT(sdkCompareBin2BinFloat("a.bin", "a.bin", 3, 0.0f, 0.0f, nullptr));
}

int main(int argc, char **argv) {
    const int device = findCudaDevice(argc, (const char **)argv);
    EXPECT(device == gpuGetMaxGflopsDeviceId() && checkCudaCapabilities(5, 0) && !checkCudaCapabilities(99, 0));
    EXPECT(_ConvertSMVer2Cores(8, 0) == 64 && !strcmp(_ConvertSMVer2ArchName(9, 0), "Hopper") && ftoi(-1.6f) == -2);
    arguments();
    comparisons();
    images(argv[0]);
    StopWatchInterface *timer = nullptr;
    EXPECT(sdkCreateTimer(&timer) && sdkStartTimer(&timer) && sdkStopTimer(&timer) && sdkGetTimerValue(&timer) >= 0);
    EXPECT(sdkGetAverageTimerValue(&timer) == sdkGetTimerValue(&timer) && sdkDeleteTimer(&timer) && !timer);
    EXPECT(MAX(1, 2) == 2 && MIN(1, 2) == 1 && EXIT_WAIVED == 2);
    cudaFree((void *)64);
    printLastCudaError("a stray free");
    fflush(stdout);
    if (!failures) getLastCudaError("nothing left");
    if (!failures) checkCudaErrors(cudaMemcpy(nullptr, nullptr, 4, cudaMemcpyHostToDevice));
    return 99;
}
"""


def test_arguments_images_files_timers_and_checks_work(tmp_path: Path) -> None:
    (tmp_path / "project" / "data").mkdir(parents=True)
    (tmp_path / "project" / "data" / "numbers.txt").write_text("1 2\n2.5")
    (tmp_path / "project" / "helpers.cu").write_text(PROGRAM)
    (tmp_path / "elsewhere").mkdir()
    said = grader("run", "../project/helpers.cu", "--engine", "emulator", cwd=tmp_path / "elsewhere")
    assert said.out == "", said.out
    assert said.code == 1, said.err
    assert "project" not in said.err and "helpers.cu:57: a stray free: cudaErrorInvalidValue" in said.err
    assert "helpers.cu:60: cudaMemcpy(nullptr, nullptr, 4, cudaMemcpyHostToDevice) failed: 1" in said.err
