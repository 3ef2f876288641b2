// SPDX-License-Identifier: Apache-2.0
// The window of another process on the same machine and in the same container, as this process sees it.
#pragma once

#include "common/base/err.h"
#include "worker/transfer/window.h"

#include <stdbool.h>
#include <sys/types.h>

struct window_view {
    pid_t pid;
    size_t n;
    struct window_block *blocks; // what it shows
    // private
    int process; // a pidfd, -1 = none
    uint64_t window, word[2];
};

// ERR_UNAVAILABLE: the other process is elsewhere, shows another number of blocks, or does not let this process read
// its memory. `here`: the place of this process. Close the view also after an error.
int window_view_open(struct window_view *v, const struct window_place *where, const struct window_place *here,
                     size_t blocks, struct err *err);
void window_view_close(struct window_view *v);
// True if the other process lives and shows its window. Its blocks have not changed until now then, and no other
// process has its pid.
bool window_view_is_there(const struct window_view *v);
// True if the other process may still read or write the memory that it was shown. False: it has removed its window, or
// all its threads have ended. A dying process may have lost its memory while one of its threads is still in a system
// call.
bool window_view_may_act(const struct window_view *v);
