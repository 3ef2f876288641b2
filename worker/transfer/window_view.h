// SPDX-License-Identifier: Apache-2.0
// The window of another process in the same machine and container, as this one sees it.
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

// ERR_UNAVAILABLE: it is elsewhere, shows another number of blocks, or this process may not read its memory. `here`:
// the place of this process. Close it in any case.
int window_view_open(struct window_view *v, const struct window_place *where, const struct window_place *here,
                     size_t blocks, struct err *err);
void window_view_close(struct window_view *v);
// The process lives, and shows its window: its blocks have not changed until now, and nobody else has its number.
bool window_view_is_there(const struct window_view *v);
// It may still read or write what it was shown. False: it has taken its window back, or all its threads have ended. A
// process that dies may have no memory any more while one of its threads is still in a call of the kernel.
bool window_view_may_act(const struct window_view *v);
