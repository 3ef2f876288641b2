// SPDX-License-Identifier: Apache-2.0
// A name server of the test's own, for programs that are linked with --wrap=loop_resolve_new and
// --wrap=loop_resolve_cancel: every name has the same addresses. One lookup at a time for each loop.
#pragma once

#include "common/base/loop_resolve.h"

enum fake_names_state { FAKE_NAMES_ANSWER, FAKE_NAMES_FAIL, FAKE_NAMES_HANG };

struct fake_names {
    enum fake_names_state state;
    const char *addresses; // with a blank between them
    int lookups, canceled;
};

extern struct fake_names fake_names; // of the test's thread
