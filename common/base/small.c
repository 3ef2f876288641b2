// SPDX-License-Identifier: Apache-2.0
#include "common/base/small.h"

#include "common/base/free_list.h"
#include "common/base/mem.h"

#include <assert.h>
#include <malloc.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>

static _Thread_local struct free_list kept;
static _Thread_local bool known; // the key has the thread's `kept`, so it is freed when the thread ends

static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_key_t key; // its value is the thread's `kept`
static bool has_key;

static void thread_ends(void *mine)
{
    known = false; // if another destructor of this thread gives a block back, the key calls this function again
    free_list_done(mine);
}

static void make_key(void)
{
    has_key = pthread_key_create(&key, thread_ends) == 0;
}

// If a library with this code is unloaded, threads must not call this code when they end.
__attribute__((destructor)) static void drop_key(void)
{
    if (has_key)
        pthread_key_delete(key);
    has_key = false;
    thread_ends(&kept); // for this thread; blocks that other threads keep are lost
}

static void know_thread(void)
{
    pthread_once(&once, make_key);
    known = has_key && pthread_setspecific(key, &kept) == 0;
}

void *small_new(size_t size)
{
    return size <= SMALL_SIZE ? free_list_take(&kept, SMALL_SIZE) : xmalloc(size);
}

void small_free(void *block, size_t size)
{
    assert(!block || size > SMALL_SIZE || malloc_usable_size(block) >= SMALL_SIZE); // a block from small_new()
    if (size <= SMALL_SIZE && !known)
        know_thread();
    if (size <= SMALL_SIZE && known)
        free_list_give(&kept, block);
    else
        free(block);
}
