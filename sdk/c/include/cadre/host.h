// SPDX-License-Identifier: Apache-2.0
// A worker host inside of a program that runs its methods itself: libcadre.so. The program describes its classes, pulls
// calls from lanes with threads of its own, and finishes them from any thread. `python3 -m cadre.worker` is such a
// program. Modules in C need none of this: cadre-worker loads them (cadre/worker.h).
//
//   cadre_host_start()                    the loop begins on a thread of its own, and the proxies are dialed
//   cadre_host_next(lane)   -> a call     lane 0: all methods without a concurrency group; then one lane for each group
//   cadre_host_room() / cadre_host_return() / cadre_host_fail(), then cadre_host_finish(call)
//   cadre_host_next()       -> CADRE_HOST_STOP, on every lane, after SIGTERM, when all calls are finished
//   cadre_host_end()        -> the exit code
//
//   Threads: one thread, always the same, pulls lane 0. Any number of threads may pull another lane, and each of them
//   may hold any number of calls. Calls of a lane come in the order in which each client sent them. The thread of lane
//   0 turns the loop while it waits and while methods are brief. When it stays away for more than a few milliseconds,
//   the loop's own thread turns it. The connections therefore stay alive, whatever the program's threads do.
//
//   Signals: the host handles SIGTERM. fork(): the child has none of the host's connections, and the host does not
//   handle SIGTERM there. The child must not call these functions.
#ifndef CADRE_HOST_H
#define CADRE_HOST_H

#include "worker.h"

#ifdef __cplusplus
extern "C" {
#endif

// Methods that the program runs: their `run` is NULL. `create` and `destroy` are ignored, because objects are made
// before the host starts.
typedef struct cadre_host_lane {
    const char *name; // of the concurrency group
    unsigned limit;   // calls of it that the program runs at a time, 1 to 64
    const char *const *methods;
    size_t n_methods;
} cadre_host_lane;

typedef struct cadre_host_rule { // like cadre_method_rule() and cadre_method_idempotent()
    const char *method, *split, *collect;
    int idempotent;
} cadre_host_rule;

typedef struct cadre_host_class {
    const char *name;
    const cadre_method *methods;
    size_t n_methods;
    const cadre_host_lane *lanes;
    size_t n_lanes;
    const cadre_host_rule *rules;
    size_t n_rules;
} cadre_host_class;

typedef enum cadre_host_code {
    CADRE_HOST_CODE_NONE = 0,  // nobody may
    CADRE_HOST_CODE_RIGHT = 1, // clients that may create workergroups/code; the proxy reports this for each call
    CADRE_HOST_CODE_ALL = 2,   // all clients
} cadre_host_code;

typedef struct cadre_host_options {
    size_t size;        // of this struct
    const char *module; // its name for people
    const cadre_host_class *classes;
    size_t n_classes;
    const char *class_name; // of `classes`; NULL = there is one
    const char *roles;      // instead of class_name: JSON, [{"name": "actor", "class": "Actor"}, ...]; NULL = none
    const char *ticket;     // CADRE_TICKET, which the program takes out of its environment; NULL = none
    const char *connect;    // URLs with commas between them, like CADRE_CONNECT; NULL = CADRE_CONNECT
    int stack_signal; // the program writes the stacks of its threads on this signal, for methods that are late; 0 =
                      // none
    int dump_signal, dump_fd; // for worker.stack, on the thread that calls cadre_host_start(). The program installs a
                              // handler afterwards. It writes the stacks of all threads to the file, and then raises
                              // the signal for the handler that was there before. 0 = none
    int debug_fd; // a SOCK_SEQPACKET socket to the program's debugger, for worker.debug. It carries the lines that
                  // somebody types to the debugger, and the debugger's output back. -1 = no debugger
    int wake_fd;  // when it is readable, lane 0 reads it empty and returns CADRE_HOST_NONE. -1 = none
    const char *awaits; // the SHA-256 of the archive of code that the program needs before it can begin. The host then
                        // serves only the bootstrap group, NAME.code, until SIGTERM. NULL = none
    cadre_host_code code; // which clients' arguments may be opened even if this runs the sender's code, as with
                          // pickles. These clients may debug, too
} cadre_host_options;

typedef enum cadre_host_next_result {
    CADRE_HOST_CALL = 0,
    CADRE_HOST_NONE = 1, // woken up, or there is no call and `wait` is 0
    CADRE_HOST_STOP = 2,
} cadre_host_next_result;

typedef struct cadre_host_call {
    cadre_call *call;
    uint32_t role;    // number of the role, 0 without roles
    uint32_t method;  // number in its class
    const char *args; // like cadre_args(), until the call is finished
    size_t args_len;
    int code;          // its client may send code (cadre_host_code)
    size_t values_len; // bytes on the worker's GPU after `args`; `args` is then only the head of a batch; 0 = none
    void *own;         // not NULL: the program may write to `args`, and they stay after the call, until
                       // cadre_host_let_go_args(). NULL = they end with the call
} cadre_host_call;

typedef struct cadre_host_part {
    const void *data;
    size_t len;
    int on_device;
} cadre_host_part;

// Strings and tables are borrowed until cadre_host_end(). The environment is the one of cadre-worker. Call it once in a
// process, on the thread that pulls lane 0. Returns 0, or the exit code with the reason on stderr.
CADRE_EXPORT int cadre_host_start(const cadre_host_options *options);
// The lanes of concurrency groups are numbered from 1: first the groups of the first role in their order, then the
// groups of the next role.
CADRE_EXPORT int cadre_host_next(unsigned lane, int wait, cadre_host_call *ret);
// An eventfd of the lane, for a loop of the program. It is readable when a call or the end has come. -1 = see errno.
CADRE_EXPORT int cadre_host_lane_fd(unsigned lane);

// Allocates room for the result, JSON or a safetensors document. The program writes the result there, and it is sent
// from there. NULL: too long. cadre_host_return() copies a result instead.
CADRE_EXPORT void *cadre_host_room(cadre_call *call, size_t len);
CADRE_EXPORT int cadre_host_return(cadre_call *call, const void *body, size_t len); // 0, or -1: too long
// The same from parts that follow each other, the head of a safetensors document first. They are copied from the host,
// and from the GPU after the work on that stream (a cudaStream_t). A kept result stays on the GPU if one of its parts
// is there. Returns NULL, or why it failed; valid until the call is finished.
CADRE_EXPORT const char *cadre_host_return_parts(cadre_call *call, const cadre_host_part *parts, size_t n,
                                                 void *stream);
// Instead of a result: an error with that name, such as "ValueError"; NULL = FAILED. `ran`: the method has begun.
// `cause`: a JSON object of up to 48 KiB, which the client gets as it is; NULL = none.
CADRE_EXPORT void cadre_host_fail(cadre_call *call, const char *name, const char *message, const char *cause, int ran);
// Instead of a result: a function that answers calls of modules, such as cadre_weights_move(), has answered the call,
// with this result.
CADRE_EXPORT void cadre_host_answered(cadre_call *call, cadre_result result);
CADRE_EXPORT void cadre_host_finish(cadre_call *call); // once for each call; then the call does not exist any more
CADRE_EXPORT int cadre_host_canceled(const cadre_call *call);
// The values of the arguments on the GPU, if they are there, in memory that the program gets. It may write to them, and
// they stay after the call, until it calls cadre_host_let_go(), on any thread. Returns NULL, or why it failed; valid
// until the call is finished.
CADRE_EXPORT const char *cadre_host_hold(cadre_call *call, void **ret_values, void **ret_held);
CADRE_EXPORT void cadre_host_let_go(void *held);
// Call it once for each `own`, on any thread. If the arguments are let go before their call is finished, they cost
// nothing. Otherwise they cost as much as a copy when it is finished.
CADRE_EXPORT void cadre_host_let_go_args(void *own);
// Copies from the GPU to the host, after the work on that stream. It ends early if the call is canceled. The call must
// not be finished before. Without a call (NULL), it waits 20 s at most. Returns NULL, or why it failed; valid until the
// thread calls it again.
CADRE_EXPORT const char *cadre_host_download(const cadre_call *call, void *to, const void *from, size_t len,
                                             void *stream);

// For calls that a method makes as a client of the same proxy. Writes the text for `via` of cadre_client_request, so
// that a call that would wait for itself is refused. Returns how long such a call may take, in ms. 0: the deadline of
// the method's own call has passed. -1: the method may not call, because too many methods wait for it, or because the
// text is longer than `size`.
CADRE_EXPORT int64_t cadre_host_calls(cadre_call *call, char *via, size_t size);

// With `awaits`: gets the next piece of that archive from a pod of the namespace that has it. `out` has room for 512
// KiB. Returns the number of bytes; 0: no pod has the archive; -1: no answer came. On any thread that pulls no lane.
CADRE_EXPORT int64_t cadre_host_fetch(int64_t offset, void *out, size_t size, int timeout_ms);

// For programs whose ranks wait for each other by their own means. On one thread at a time that pulls no lane. First
// the ranks meet: this function waits up to limit_ms until all of these ranks have called it with the same list.
// Returns NULL, or why they did not meet. "": this host ends, or the host of another rank has ended. After a loss, they
// may meet again when the lost rank has a new process.
CADRE_EXPORT const char *cadre_host_meet(const int *ranks, int n, int64_t limit_ms);
// After that: waits until one of these ranks is lost. Returns its message, such as "rank 3 was lost: ...", or NULL if
// the host ends.
CADRE_EXPORT const char *cadre_host_watch(void);

// After CADRE_HOST_STOP on lane 0. Waits until no thread is in cadre_host_next().
CADRE_EXPORT int cadre_host_end(void);

#ifdef __cplusplus
}
#endif

#endif
