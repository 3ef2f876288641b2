// SPDX-License-Identifier: Apache-2.0
#include "worker/host/lifeline.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/stat.h>
#include <unistd.h>

// As a child of fork() can read it whatever other threads were doing. A number may be something else meanwhile: no
// other socket has the inode.
enum { FDS_MAX = 1 << 16 };
static struct {
    pthread_once_t once;
    _Atomic(uint64_t) inodes[FDS_MAX]; // 0 = none
} lifelines = {.once = PTHREAD_ONCE_INIT};

static uint64_t inode_of(int fd)
{
    struct stat s;
    return fstat(fd, &s) == 0 && S_ISSOCK(s.st_mode) ? s.st_ino : 0;
}

// The numbers stay in use: the child has copies of what would close them.
static void cut_in_child(void)
{
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    for (int fd = 0; fd < FDS_MAX; fd++) {
        uint64_t inode = atomic_load_explicit(&lifelines.inodes[fd], memory_order_relaxed);
        if (!inode || inode != inode_of(fd))
            continue;
        if (dup3(null, fd, O_CLOEXEC) < 0)
            close(fd);
    }
    close(null);
}

static void install(void)
{
    pthread_atfork(NULL, NULL, cut_in_child);
}

void lifeline_add(int fd)
{
    pthread_once(&lifelines.once, install);
    if (fd < FDS_MAX)
        atomic_store(&lifelines.inodes[fd], inode_of(fd));
}
