// SPDX-License-Identifier: Apache-2.0
#include "worker/host/rank_sockets.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/stat.h>
#include <unistd.h>

// A child of fork() can read this array, whatever other threads were doing. A descriptor may have become something
// else: then its inode differs.
enum { FDS_MAX = 1 << 16 };
static struct {
    pthread_once_t once;
    _Atomic(uint64_t) inodes[FDS_MAX]; // 0 = none
} sockets = {.once = PTHREAD_ONCE_INIT};

static uint64_t inode_of(int fd)
{
    struct stat s;
    return fstat(fd, &s) == 0 && S_ISSOCK(s.st_mode) ? s.st_ino : 0;
}

// The descriptors stay in use, because the child has copies of the objects that would close them.
static void drop_in_child(void)
{
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    for (int fd = 0; fd < FDS_MAX; fd++) {
        uint64_t inode = atomic_load_explicit(&sockets.inodes[fd], memory_order_relaxed);
        if (!inode || inode != inode_of(fd))
            continue;
        if (dup3(null, fd, O_CLOEXEC) < 0)
            close(fd);
    }
    close(null);
}

static void install(void)
{
    pthread_atfork(NULL, NULL, drop_in_child);
}

void rank_sockets_add(int fd)
{
    pthread_once(&sockets.once, install);
    if (fd < FDS_MAX)
        atomic_store(&sockets.inodes[fd], inode_of(fd));
}
