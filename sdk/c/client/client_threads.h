// SPDX-License-Identifier: Apache-2.0
// Lets several threads use one client: a lock, and a thread of the client, which turns the loop while nobody waits, so
// that calls leave and answers arrive at any time. A thread that waits for an answer turns the loop itself, which is
// faster; the client's thread rests meanwhile. The lock is free while the loop sleeps. A client that is not `threaded`
// has no thread and no lock; the functions below then work without one.
#pragma once

#include "sdk/c/client/client_state.h"

struct client_threads;

void client_threads_start(struct cadre_client *c);  // makes the one of this client, and starts its thread
void client_threads_stop(struct client_threads *t); // ends it; with the lock, which is free meanwhile
void client_threads_free(struct client_threads *t); // accepts NULL; nobody is inside any more

void client_enter(struct cadre_client *c);
void client_leave(struct cadre_client *c);
void client_leave_waiting(struct cadre_client *c); // the same after client_pass(): others turn the loop from now on
// One turn, until something is answered, or until `end` of the monotonic clock. False: the time is over.
bool client_pass(struct cadre_client *c, int64_t end);
// Waits likewise, but leaves turning to others.
bool client_watch(struct cadre_client *c, int64_t end);
void client_stir(struct cadre_client *c); // what was begun is dealt with at once, although nobody waits
void client_tell(struct cadre_client *c); // those who wait look again
