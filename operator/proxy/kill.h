// SPDX-License-Identifier: Apache-2.0
// The method group.kill: one rank's process ends at once, as if it had crashed, and whatever restarts it does. The
// process gets it as a CALL that it never answers; the end of its connection is the answer. It waits for nothing: not
// for the group, nor behind other calls.
#ifndef CADRE_PROXY_KILL_H
#define CADRE_PROXY_KILL_H

#include "common/wire/record.h"
#include "operator/proxy/head.h"

bool kill_is(const struct head *head);
int kill_check(const struct record_header *h, const struct head *head, struct err *err); // ERR_INVALID

#endif
