// SPDX-License-Identifier: Apache-2.0
// The ABI for communicators of methods: who the members are, and how they meet. worker/collective does the rest.
#pragma once

#include "sdk/c/include/cadre/collective.h"
#include "worker/host/host_call.h"
#include "worker/host/meeting.h"

// Makes a communicator of that list, and sets limit_ms and canceled of it: it waits no longer than the call may take.
// Only the back end and the limit of `o` count. `names` of the members are for messages. The errors of meeting_hold()
// and comm_new().
int communicator_join(struct cadre_call *c, const struct meeting_list *who, const char *const *names,
                      const cadre_comm_options *o, cadre_comm **ret, struct err *err);
