// SPDX-License-Identifier: Apache-2.0
#include "operator/proxy/kill.h"

bool kill_is(const struct head *head)
{
    return head_method_is(head, "group.kill"); // no method of a class has a dot in its name
}

int kill_check(const struct record_header *h, const struct head *head, struct err *err)
{
    if (head->role)
        return err_set(err, ERR_INVALID,
                       "group.kill: the roles of a process live and die together; leave out the role to end a rank");
    if (h->rank == RECORD_GROUP)
        return err_set(err, ERR_INVALID, "group.kill: which rank? It ends one process");
    if (h->dispatch || h->execute || head->split || head->collect || head->pad)
        return err_set(err, ERR_INVALID, "group.kill takes a rank, and none of dispatch, execute, split, collect, pad");
    return 0;
}
