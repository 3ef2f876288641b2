// SPDX-License-Identifier: Apache-2.0
#include "common/base/small.h"

#include "common/base/mem.h"
#include "common/base/reuse.h"

#include <assert.h>
#include <malloc.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>

static _Thread_local struct reuse kept;
static _Thread_local bool known; // that this thread has some, to be freed with it

static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_key_t key; // its value is the thread's `kept`
static bool has_key;

static void thread_ends(void *mine)
{
    known = false; // what its other ends give back brings it here again
    reuse_done(mine);
}

static void make_key(void)
{
    has_key = pthread_key_create(&key, thread_ends) == 0;
}

// Where this is in a library that is unloaded, threads must not call what is not there any more.
__attribute__((destructor)) static void drop_key(void)
{
    if (has_key)
        pthread_key_delete(key);
    has_key = false;
    thread_ends(&kept); // of this thread; what others keep is lost
}

static void know_thread(void)
{
    pthread_once(&once, make_key);
    known = has_key && pthread_setspecific(key, &kept) == 0;
}

void *small_new(size_t size)
{
    return size <= SMALL_SIZE ? reuse_take(&kept, SMALL_SIZE) : xmalloc(size);
}

void small_free(void *block, size_t size)
{
    assert(!block || size > SMALL_SIZE || malloc_usable_size(block) >= SMALL_SIZE); // small_new() made it
    if (size <= SMALL_SIZE && !known)
        know_thread();
    if (size <= SMALL_SIZE && known)
        reuse_give(&kept, block);
    else
        free(block);
}
