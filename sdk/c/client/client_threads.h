// SPDX-License-Identifier: Apache-2.0
// Lets several threads use one client, with a lock and a thread of the client. The client's thread turns the loop while
// nobody waits, so calls leave and answers arrive at any time. A thread that waits for an answer turns the loop itself,
// which is faster. The client's thread rests meanwhile. The lock is free while the loop sleeps. A client that is not
// `threaded` has no thread and no lock; the functions below then work without them.
#pragma once

#include "sdk/c/client/client_state.h"

struct client_threads;

void client_threads_start(struct cadre_client *c);  // creates the threads of this client, and starts its thread
void client_threads_stop(struct client_threads *t); // ends the thread; call it with the lock, which is free meanwhile
void client_threads_free(struct client_threads *t); // accepts NULL; no thread is inside any more

void client_enter(struct cadre_client *c);
void client_leave(struct cadre_client *c);
void client_leave_waiting(struct cadre_client *c); // the same after client_pass(): others now turn the loop
int64_t client_end_of(int64_t timeout_ms);         // on the monotonic clock; INT64_MAX = never, for a negative timeout
// One turn, until something is answered, or until `end` of the monotonic clock. False: the time is over.
bool client_pass(struct cadre_client *c, int64_t end);
// Waits in the same way, but leaves the turns to other threads. Only for a client with threads.
bool client_watch(struct cadre_client *c, int64_t end);
void client_stir(struct cadre_client *c); // new work starts at once, even if nobody waits
// Whether another caller turns the loop. It may sleep, and does not know of a call that the caller has just started.
bool client_is_turned(const struct cadre_client *c);
void client_tell(struct cadre_client *c); // threads that wait look again
