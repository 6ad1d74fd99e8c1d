// Makes its files immutable, and folders in which nothing may be changed.
// expect: passed
#include "hostile.h"
#include <linux/fs.h>
#include <sys/ioctl.h>

int main(int, char** argv) {
    write_right(argv[1], argv[2]);
    mkdir("folder", 0700);
    for (const char* path : {"folder/file", "file"}) {
        const int fd = open(path, O_WRONLY | O_CREAT, 0600);
        int flags = FS_IMMUTABLE_FL | FS_APPEND_FL;
        if (ioctl(fd, FS_IOC_SETFLAGS, &flags) == 0) BYPASSED("%s cannot be removed", path);
    }
    const int folder = open("folder", O_RDONLY | O_DIRECTORY);
    int flags = FS_IMMUTABLE_FL;
    if (ioctl(folder, FS_IOC_SETFLAGS, &flags) == 0) BYPASSED("a folder cannot be removed");
    chmod("folder", 0);
}
