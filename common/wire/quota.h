// SPDX-License-Identifier: Apache-2.0
// Who pays for memory that a peer makes us hold. Every counted byte is charged to a quota and to all of its parents
// (one per session, below one for the whole process), and refunded when it is freed. Quotas are reference-counted,
// because bytes of a session may outlive it, for example in another session's queue. One thread.
#pragma once

#include "common/wire/spare.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct quota;

struct quota *quota_new(size_t max, struct quota *parent); // parent may be NULL; a reference to it is taken
// May hold `weight` times as much as is left in its parent: with 1 half of it alone, a third each of two, so that there
// is always room for one more.
struct quota *quota_new_fair(struct quota *parent, unsigned weight);
struct quota *quota_ref(struct quota *q); // NULL stays NULL
void quota_unref(struct quota *q);        // accepts NULL

// False, and nothing charged anywhere, where this quota or one above it would go over its maximum. NULL = nobody
// counts.
bool quota_charge(struct quota *q, size_t n);
void quota_refund(struct quota *q, size_t n);
size_t quota_used(const struct quota *q); // 0 for NULL
size_t quota_left(const struct quota *q); // what could be charged now; SIZE_MAX for NULL
// Blocks that are kept for the quotas below the topmost one: at most half of its maximum, and 144 MiB. NULL for NULL.
struct spare *quota_spare(struct quota *q);
// From now on, what is not kept is given back in steps (spare.h), by quota_go_on(). A topmost quota.
void quota_in_steps(struct quota *q);
bool quota_is_behind(const struct quota *q); // there is something to give back
void quota_go_on(struct quota *q);
// Whose bodies may be `body` long keeps that much, not only 144 MiB; still at most half of the maximum. A topmost
// quota.
void quota_keep_body(struct quota *q, size_t body);
