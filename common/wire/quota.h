// SPDX-License-Identifier: Apache-2.0
// Limits for the memory that peers make this process hold. Every counted byte is charged to a quota and to all of its
// parents (one per session, below one for the whole process), and refunded when it is freed. Quotas are
// reference-counted, because bytes of a session may outlive it, for example in another session's queue. One thread.
#pragma once

#include "common/wire/block_cache.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct quota;

struct quota *quota_new(size_t max, struct quota *parent); // parent may be NULL; a reference to it is taken
// May hold `weight` times the bytes that are left in its parent. With weight 1, one such quota can hold half of the
// parent, and two of them a third each. So there is always room for one more.
struct quota *quota_new_fair(struct quota *parent, unsigned weight);
struct quota *quota_ref(struct quota *q); // NULL stays NULL
void quota_unref(struct quota *q);        // accepts NULL

// False if this quota or one above it would exceed its maximum; then nothing is charged. NULL = not counted.
bool quota_charge(struct quota *q, size_t n);
void quota_refund(struct quota *q, size_t n);
// Charges bytes again that were refunded just before, also if the quota has no room for new ones.
void quota_take_back(struct quota *q, size_t n);
size_t quota_used(const struct quota *q); // 0 for NULL
size_t quota_left(const struct quota *q); // how much can be charged now; SIZE_MAX for NULL
// Blocks that are kept for the quotas below the topmost one: at most half of its maximum, and 144 MiB. NULL for NULL.
struct block_cache *quota_block_cache(struct quota *q);
// From now on, blocks that are too many to keep are given back in steps (block_cache.h), by quota_go_on(). Only for a
// topmost quota.
void quota_in_steps(struct quota *q);
bool quota_is_behind(const struct quota *q); // there is something to give back
void quota_go_on(struct quota *q);
// For owners whose bodies may have `body` bytes: keeps that much instead of 144 MiB, but at most half of the maximum.
// Only for a topmost quota.
void quota_keep_body(struct quota *q, size_t body);
