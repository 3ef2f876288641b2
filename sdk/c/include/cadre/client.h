// SPDX-License-Identifier: Apache-2.0
// The client library of Cadre: a client connects to the proxy (part of cadre-operator) and calls methods of the
// workers of a group, on all ranks at once or on one. docs/calls.md tells what calls mean, cadre_client(3) has
// examples.
//
//   One client is one connection. Many calls may be in flight; each is answered exactly once, by its result or an
//   error. A lost connection is opened again, after a pause with jitter. Calls that had not been sent are sent then.
//   Calls that had been fail with CADRE_CLIENT_UNAVAILABLE and may_have_run; those that ask for it (max_retries) are
//   sent again.
//
//   Threads: a client belongs to one thread at a time; different clients may be used by different threads. The library
//   starts none, but for looking up host names, in which none of the caller's code runs. Work happens, and callbacks
//   are called, only inside cadre_client_call(), _info(), _wait(), _wait_for(), _get(), _next(), _process() and
//   _close(). A callback may start, cancel, get and forget calls of the same client, and nothing else of it. No signal
//   is raised or handled, and waiting goes on after one.
//
//   A client that is `threaded` has a thread of its own: calls go out and answers come in at any time, also while
//   nobody waits, and several threads may use it: cadre_client_start(), _cancel(), _take(), _give_back(), _wait(),
//   _wait_for(), _watch(), _next(), _forget(), _done(), _connected(), _pending(), _batch_room(), _batch_free(),
//   _shut(), and at the end one of them _close(). Its callbacks come on a thread of their own and may use it,
//   too; `done` comes on any thread.
//
//   fork(): the child may open clients of its own. Those of its parent it must not touch: even to close one there ends
//   the parent's connection. All descriptors are closed by exec.
//
//   Blocking: cadre_client_call(). Many at a time: cadre_client_start() and cadre_client_wait(). In the event loop of
//   your own: watch cadre_client_fd() for reading, wait at most cadre_client_timeout_ms(), then cadre_client_process().
//
//   JSON is text in UTF-8 that needs no NUL behind it. The library never parses results. When there is no memory the
//   library aborts; what a peer sends is bounded by max_body and max_bytes. Plain C11; works from C++.
#ifndef CADRE_CLIENT_H
#define CADRE_CLIENT_H

#include "modes.h"

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif

#define CADRE_CLIENT_API __attribute__((visibility("default")))

typedef enum cadre_client_code {
    CADRE_CLIENT_OK = 0,
    CADRE_CLIENT_IO = 2,
    CADRE_CLIENT_TIMEOUT = 3,
    CADRE_CLIENT_PROTO = 4, // the server is not a proxy of Cadre, or one of another version
    CADRE_CLIENT_LIMIT = 5, // too long, or too many at a time
    CADRE_CLIENT_CANCELED = 6,
    CADRE_CLIENT_NOT_FOUND = 7,     // no such group, no such method
    CADRE_CLIENT_EXISTS = 8,        // group.create: the name is taken
    CADRE_CLIENT_CONFLICT = 9,      // the attempt that the call was for is over
    CADRE_CLIENT_GONE = 10,         // the group was deleted
    CADRE_CLIENT_UNAUTHORIZED = 11, // no token, or not a valid one (any more)
    CADRE_CLIENT_FORBIDDEN = 12,    // the token is not allowed to, or the server is not who it should be
    CADRE_CLIENT_THROTTLED = 13,    // the proxy has too much to do; try again
    CADRE_CLIENT_INVALID = 14,      // wrong arguments, of this library or of the method
    CADRE_CLIENT_UNAVAILABLE = 15,  // not connected, not ready, or a worker died
    CADRE_CLIENT_INTERNAL = 16,
    CADRE_CLIENT_FAILED = 100, // the method said so; also every code that this version does not know, see `name`
} cadre_client_code;

typedef struct cadre_client_error {
    cadre_client_code code;
    int may_have_run;         // 0: certainly no rank has begun to run the call, in any of its tries
    int32_t rank;             // that is to blame, -1 = none
    int32_t exit_code;        // of its process, where that has died and the agent knows; else -1
    int64_t retry_after_ms;   // what the server asks for, 0 = nothing
    char name[32];            // the code as it was sent: "UNAVAILABLE", "FAILED"
    char pod[256], node[256]; // of the rank, "" = not known
    char message[1024];       // for people: what happened, to which object
    uint64_t idempotent;      // 1: the method declared that it may run again for the same call
    uint64_t reserved[7];     // 0; the size of this struct does not change
} cadre_client_error;

typedef struct cadre_client cadre_client;

// What ranks of the client's group have printed.
typedef struct cadre_client_output {
    const char *group; // "namespace/name"
    const char *ranks; // "3"; "0-3,7" of ranks that have printed the same at the same time
    const char *text;  // one line, without its end; NULL: nothing but that some were dropped
    uint64_t dropped;  // lines before this one that came too fast
} cadre_client_output;

typedef struct cadre_client_options {
    size_t size; // cadre_client_options_init() sets it
    // Where the proxy is: "wss://host:port", "ws://host:port", "unix:/path". Every attempt to connect looks the name up
    // again, and tries all of its addresses.
    const char *address;
    const char *path_prefix; // in front of the proxy's own paths, such as a reverse proxy's; NULL = none
    const char *ns;          // the namespace whose groups are called, required
    const char *group;       // for calls that name none; NULL = none
    // A token, or a file with one, which is read again for each attempt to connect; neither: none is sent.
    const char *token, *token_file;
    int token_in_hello; // 1: the token travels in the first record, for servers in between that take the header away
    // Whom to trust (wss): PEM text, or a file; neither: the system's certificates.
    const char *ca_pem, *ca_file;
    const char *server_name; // in the certificate; NULL = the host of the address
    // Times are 7 days at most.
    int64_t connect_timeout_ms; // for one attempt, at most; the first ones have 2 s; 0 = 10 s
    int64_t unreachable_ms;     // so long a call without a timeout waits for a connection; 0 = 60 s
    uint32_t max_calls;         // not answered, or whose answer is kept, at a time; 0 = 10,000; at most 65,535
    size_t max_body;  // bytes of the arguments or of the result of a call; 0 = 64 MiB. Up to so much memory of earlier
                      // results is kept for the next ones, 144 MiB at the least; the kernel may take it back
    size_t max_bytes; // of arguments that wait and of results that are coming in or kept, with the last
                      // cadre_client_call(); 0 = 512 MiB
    // Tells about the connection, for logs: 1 and NULL, 0 and why. May be NULL.
    void (*on_connection)(void *ctx, int connected, const cadre_client_error *why);
    void *ctx;
    // Every line that ranks of `group` print while the client is connected, equal ones of several ranks as one, within
    // half a second. NULL: none is sent. Called inside of whatever waits.
    void (*on_output)(void *ctx, const cadre_client_output *line);
    // 1: whatever waits sleeps at once. Otherwise it looks for answers for up to 100 us before, as long as they come
    // that fast and there is more than one CPU: small calls one at a time are faster, and take more CPU time.
    int no_spin;
    // 1: it has a thread of its own, and several may use it (see above). max_calls are those that are not answered; up
    // to 65,535 answers are kept besides.
    int threaded;
} cadre_client_options;

// CADRE_CLIENT_ONE_TO_ALL, CADRE_CLIENT_ALL_TO_ALL, ...: how arguments reach the ranks. cadre/modes.h has them all.
enum {
    CADRE_CLIENT_DISPATCH_DEFAULT = 0, // as the method was registered
#define CADRE_MODE(name, number, ...) CADRE_CLIENT_##name = (number),
    CADRE_DISPATCH_MODES(CADRE_MODE)
#undef CADRE_MODE
};

// CADRE_CLIENT_EXECUTE_ALL, CADRE_CLIENT_EXECUTE_RANK_ZERO, CADRE_CLIENT_EXECUTE_ANY: which ranks run it.
enum {
    CADRE_CLIENT_EXECUTE_DEFAULT = 0, // as the method was registered
#define CADRE_MODE(name, number) CADRE_CLIENT_EXECUTE_##name = (number),
    CADRE_EXECUTE_MODES(CADRE_MODE)
#undef CADRE_MODE
};

typedef struct cadre_client_json { // need not be NUL-terminated
    const char *text;
    size_t len;
} cadre_client_json;

typedef struct cadre_client_answer {
    uint64_t id;
    // The result: a list in the order of ranks if all of them ran it, else the one rank's result, or the batches of
    // ranks joined. JSON, or what cadre_client_content() says. Valid until the callback returns. text NULL: the call
    // failed.
    cadre_client_json result;
    int64_t rank;                    // whose result it is; -1 = it is a list of all ranks
    const cadre_client_error *error; // NULL: it did not
} cadre_client_answer;

typedef struct cadre_client_request {
    size_t size;            // cadre_client_request_init() sets it
    const char *method;     // 1 to 63 characters
    const char *group;      // "name" or "namespace/name"; NULL = the client's
    cadre_client_json args; // a JSON list (by position) or object (by name); text NULL = []
    // Instead of args: arguments of each rank, one an element, in the order of ranks: a list, an object, or any other
    // value for a single argument. Implies CADRE_CLIENT_ALL_TO_ALL. A wrong number, also 0, is refused by the proxy,
    // and no rank runs it. Each may be a safetensors document instead of JSON. NULL: args.
    const cadre_client_json *per_rank;
    size_t n_per_rank;
    int64_t rank;              // -1 = those that `execute` says; else only this one, with the arguments as they are
    int dispatch, execute;     // the enums above
    int64_t timeout_ms;        // from now, 7 days at most; 0 = none
    int64_t attempt;           // of the group that the call is for; another one is refused; 0 = any
    int refuse_when_not_ready; // 1: rather an error than to wait until the group is ready
    // Called exactly once, never inside cadre_client_start(). NULL: nobody wants to know. cadre_client_call() takes no
    // notice of it.
    void (*done)(void *ctx, const cadre_client_answer *answer);
    void *ctx;
    // Instead of args: a batch, a safetensors document (cadre_client_batch_write()); or a list of bodies, those of each
    // rank (docs/protocol.md), with CADRE_CLIENT_ALL_TO_ALL.
    const void *batch;
    size_t batch_len;
    // JSON for CADRE_CLIENT_SPLIT and the 3D modes (docs/protocol.md, "Pieces"); NULL = as the method was registered.
    const char *split, *collect;
    int pad; // 1: a batch that cannot be cut evenly is filled up with its last row; it is taken off the result again
    // How often the call may be sent again where it failed, within its timeout and after a pause, which is at least
    // what the server asks for. 0: never, so that it runs at most once. Sent again is what certainly has not run
    // (CADRE_CLIENT_UNAVAILABLE and _THROTTLED), and what the next two allow; the last error is the call's.
    uint32_t max_retries;
    const char *retry_on; // names of errors, whether or not it ran: "NO_DEVICE,ValueError"; FAILED = all of methods;
                          // NULL = none
    int idempotent; // 1: also CADRE_CLIENT_UNAVAILABLE where it may have run: a worker or the connection was lost.
                    // Where a worker died, the method may have declared it
    int no_result;  // 1: ranks need not send theirs; the result is null once all have run it. So it is without `done`,
                    // too
    int keep; // 1: the client keeps the answer for cadre_client_get(), also where there is `done`; not of blocking
              // calls
    const char *role; // of a group with roles (spec.worker.roles): which of its objects is called; NULL = it has none
    const char *via;  // of calls that a worker's method makes (JSON, docs/protocol.md): who waits for it; NULL = nobody
    const char *traceparent; // W3C Trace Context: the trace that the call is part of, for the method; NULL = none
    // 1: results stay on the workers, and the answer is a reference to them, JSON that may be passed as an argument of
    // other calls (docs/calls.md, "References"). They are freed when this client is closed, unless `pin` is 1.
    int by_reference, pin;
    // 1: args or batch, where they are long, are not copied: they stay as they are until the call is answered, which is
    // also when it fails or is canceled, or this client is closed. A blocking call never copies them, except into
    // memory that it shares with the proxy; cadre_client_batch_new() makes a batch there at once.
    int lend;
    int positional; // 1: a list of args that is dealt out has a list for each argument, and not one for each rank
    int lazy;       // 1: of a client that is `threaded`; the thread that starts it waits for it next, and so sends it
} cadre_client_request;

static inline void cadre_client_options_init(cadre_client_options *o)
{
    memset(o, 0, sizeof *o);
    o->size = sizeof *o;
}

static inline void cadre_client_request_init(cadre_client_request *r, const char *method)
{
    memset(r, 0, sizeof *r);
    r->size = sizeof *r;
    r->method = method;
    r->rank = -1;
}

// Everywhere below: `error` may be NULL, and is written only where the result is not CADRE_CLIENT_OK. What is passed in
// is copied, but what `lend` says.

// Does not wait: connecting begins with the first turn. CADRE_CLIENT_INVALID: the options make no sense;
// CADRE_CLIENT_IO, CADRE_CLIENT_UNAUTHORIZED: ca_file or token_file cannot be read, or is empty.
CADRE_CLIENT_API cadre_client_code cadre_client_open(const cadre_client_options *options, cadre_client **ret,
                                                     cadre_client_error *error);
// Calls that are not answered end with CADRE_CLIENT_CANCELED. Says goodbye to the proxy, for which it takes up to a
// second. Accepts NULL. Not in a callback.
CADRE_CLIENT_API void cadre_client_close(cadre_client *c);

// The first half of it, for a client that is `threaded`: all waiting ends. Answers can be taken, and nothing is begun.
// Accepts NULL.
CADRE_CLIENT_API void cadre_client_shut(cadre_client *c);

// Sends a call, or queues it until it can be sent. CADRE_CLIENT_INVALID, CADRE_CLIENT_LIMIT: it was not accepted, and
// `done` is not called. ret_id (may be NULL) is never 0.
CADRE_CLIENT_API cadre_client_code cadre_client_start(cadre_client *c, const cadre_client_request *request,
                                                      uint64_t *ret_id, cadre_client_error *error);
// The call ends with CADRE_CLIENT_CANCELED, or with its result where that was faster; ranks that run it may go on.
// CADRE_CLIENT_NOT_FOUND: it has been answered already.
CADRE_CLIENT_API cadre_client_code cadre_client_cancel(cadre_client *c, uint64_t id);

// A call, and waits for its end. Others go on meanwhile. The result is valid until the next cadre_client_call() or
// cadre_client_info() of this client; ret may be NULL.
CADRE_CLIENT_API cadre_client_code cadre_client_call(cadre_client *c, const cadre_client_request *request,
                                                     cadre_client_json *ret, cadre_client_error *error);
// What the proxy knows of a group (NULL = the client's) and its methods: a JSON object, docs/calls.md.
CADRE_CLIENT_API cadre_client_code cadre_client_info(cadre_client *c, const char *group, int64_t timeout_ms,
                                                     cadre_client_json *ret, cadre_client_error *error);

// Ends the process of a rank as if it had crashed; the group's restartPolicy says what follows. Its calls that are not
// answered fail with CADRE_CLIENT_UNAVAILABLE. Returns once it is gone. CADRE_CLIENT_UNAVAILABLE: it was not connected.
CADRE_CLIENT_API cadre_client_code cadre_client_kill(cadre_client *c, const char *group, int64_t rank,
                                                     int64_t timeout_ms, cadre_client_error *error);

// References: {"$ref": "..."}, what stays on the workers. All of these wait.

// Puts JSON or a batch there. `to` (may be NULL) says where and how, as a call's. Its method, arguments, role,
// keep, by_reference and no_result do not count; by default the least busy worker of the client's group. *ret is the
// reference, valid until the next cadre_client_call() of this client. CADRE_CLIENT_LIMIT: the worker has no room.
CADRE_CLIENT_API cadre_client_code cadre_client_object_put(cadre_client *c, const cadre_client_request *to,
                                                           cadre_client_json value, cadre_client_json *ret,
                                                           cadre_client_error *error);
// What the call would have given without by_reference. CADRE_CLIENT_NOT_FOUND: it was freed; CADRE_CLIENT_GONE: the
// process that had it is gone.
CADRE_CLIENT_API cadre_client_code cadre_client_object_get(cadre_client *c, cadre_client_json reference,
                                                           int64_t timeout_ms, cadre_client_json *ret,
                                                           cadre_client_error *error);
// It is not freed with this client any more.
CADRE_CLIENT_API cadre_client_code cadre_client_object_pin(cadre_client *c, cadre_client_json reference,
                                                           int64_t timeout_ms, cadre_client_error *error);
CADRE_CLIENT_API cadre_client_code cadre_client_object_free(cadre_client *c, cadre_client_json reference,
                                                            int64_t timeout_ms, cadre_client_error *error);

// Waits until at least one call has been answered, at most so long (negative = without end), and returns how many have
// been; 0 at once where none is open.
CADRE_CLIENT_API size_t cadre_client_wait(cadre_client *c, int64_t timeout_ms);

// Futures: calls with `keep`, whose answers stay here until they are taken. None of these waits in a callback.

// The answer to one, for which it waits: as cadre_client_call() has it. It is kept no longer; the result is valid until
// the next cadre_client_get() of this client. CADRE_CLIENT_INVALID: it was taken or forgotten, or not to be kept.
CADRE_CLIENT_API cadre_client_code cadre_client_get(cadre_client *c, uint64_t id, cadre_client_json *ret,
                                                    cadre_client_error *error);
// The same, waiting at most so long (negative = without end). The result is the caller's until it is given back,
// before cadre_client_close(). *ret_memory NULL and CADRE_CLIENT_OK: the time is over, the call goes on. With an error,
// *ret_memory NULL or *ret is the body of the ERROR (docs/protocol.md), which is to be given back, too.
CADRE_CLIENT_API cadre_client_code cadre_client_take(cadre_client *c, uint64_t id, int64_t timeout_ms,
                                                     cadre_client_json *ret, void **ret_memory,
                                                     cadre_client_error *error);
CADRE_CLIENT_API void cadre_client_give_back(cadre_client *c, void *memory); // accepts NULL
// Waits, at most so long (negative = without end), until num_returns of these calls (with or without `keep`) have been
// answered. Then the first *ret_ready of `ids`, num_returns at most, are such, the others are the rest, which may have
// been answered, too; both in the order in which they were given. Less than num_returns: the time was over.
// CADRE_CLIENT_INVALID: an id twice, or of no call of this client; num_returns is 0, or more than n.
CADRE_CLIENT_API cadre_client_code cadre_client_wait_for(cadre_client *c, uint64_t *ids, size_t n, size_t num_returns,
                                                         int64_t timeout_ms, size_t *ret_ready,
                                                         cadre_client_error *error);
// The one that finished first of those whose answers are kept and that this function has not returned; waits for it as
// above. 0: the time is over, or no such call is open. Of a client that is `threaded` only those that are watched;
// waits until there is one.
CADRE_CLIENT_API uint64_t cadre_client_next(cadre_client *c, int64_t timeout_ms);
// Of a client that is `threaded`: cadre_client_next() returns this call when it is answered. 0: it is not a call whose
// answer is, or will be, kept.
CADRE_CLIENT_API int cadre_client_watch(cadre_client *c, uint64_t id);
CADRE_CLIENT_API void cadre_client_forget(cadre_client *c, uint64_t id); // its answer is not kept (any longer)
// 1: the call is answered, as far as the library has read; 0: it is open. Nothing is read or sent.
CADRE_CLIENT_API int cadre_client_done(const cadre_client *c, uint64_t id);

// For an event loop. After any other function of this client ask for the timeout again; 0 = process at once, negative =
// there is nothing to wait for but the descriptor. The descriptor is an epoll instance and stays the client's.
CADRE_CLIENT_API int cadre_client_fd(const cadre_client *c);
CADRE_CLIENT_API int cadre_client_timeout_ms(cadre_client *c);
CADRE_CLIENT_API size_t cadre_client_process(cadre_client *c); // does not wait; returns how many were answered

CADRE_CLIENT_API int cadre_client_connected(const cadre_client *c);          // 1: the proxy has welcomed it
CADRE_CLIENT_API size_t cadre_client_pending(const cadre_client *c);         // calls that are not answered
CADRE_CLIENT_API const char *cadre_client_code_name(cadre_client_code code); // "NOT_FOUND"
CADRE_CLIENT_API const char *cadre_client_version(void);
// Of a number from 1: "ONE_TO_ALL", "ALL"; NULL where there is no such mode, as behind the last one.
CADRE_CLIENT_API const char *cadre_client_dispatch_name(int dispatch);
CADRE_CLIENT_API const char *cadre_client_execute_name(int execute);

// Walks over a list, such as the results of all ranks: 1 = *item is the next element, 0 = there is no more, -1 = it is
// no valid list. `list` becomes what is left of it. What is inside the elements is not checked.
CADRE_CLIENT_API int cadre_client_list_next(cadre_client_json *list, cadre_client_json *item);

// Batches

// What a result, or an element of one, is.
typedef enum cadre_client_content {
    CADRE_CLIENT_CONTENT_JSON = 0,
    CADRE_CLIENT_CONTENT_BATCH = 1, // a safetensors document, as any of its readers opens it
    CADRE_CLIENT_CONTENT_LIST = 2,  // a list of several of both, for cadre_client_list_next()
} cadre_client_content;
CADRE_CLIENT_API cadre_client_content cadre_client_content_of(cadre_client_json result);

enum { CADRE_CLIENT_DIMS_MAX = 8 };

typedef struct cadre_client_tensor {
    const char *name;
    const char *dtype; // as safetensors has it: "F32", "BF16", "I64", ...
    uint64_t shape[CADRE_CLIENT_DIMS_MAX];
    size_t n_dims;    // at least 1: the first dimension is the row
    const void *data; // row-major, little endian
    size_t len;       // bytes
} cadre_client_tensor;

// A batch of these, all with the same number of rows, to be freed by free(). `columns`: a JSON object of lists, one
// value a row, for what is not a tensor; `meta`: a JSON object that every rank gets whole; NULL = none.
CADRE_CLIENT_API cadre_client_code cadre_client_batch_write(const cadre_client_tensor *tensors, size_t n,
                                                            const char *columns, const char *meta, void **ret,
                                                            size_t *ret_len, cadre_client_error *error);
// The same, made where it is sent from: in the memory that the client shares with a proxy on its host, as soon as it is
// connected and has room there, else in its own. Values of a tensor whose data is NULL are the caller's to write: for
// each tensor data, which may be written then, and len say afterwards where they belong. A call with `lend`, or a
// blocking one, sends all of such a batch from where it is. It may be filled again and sent again as soon as the call
// has succeeded; after one that has not, ranks may still read it: free it, and make another. Calls to which it was
// given may go on after cadre_client_batch_free(), which accepts NULL; cadre_client_close() frees all.
CADRE_CLIENT_API cadre_client_code cadre_client_batch_new(cadre_client *c, cadre_client_tensor *tensors, size_t n,
                                                          const char *columns, const char *meta, void **ret,
                                                          size_t *ret_len, cadre_client_error *error);
// The same memory for a document of `len` bytes that the caller writes.
CADRE_CLIENT_API cadre_client_code cadre_client_batch_room(cadre_client *c, size_t len, void **ret,
                                                           cadre_client_error *error);
CADRE_CLIENT_API void cadre_client_batch_free(cadre_client *c, void *batch);
// Finds a tensor of a batch. The data points into it, at any address: copy values out before you use them as such.
// CADRE_CLIENT_NOT_FOUND; CADRE_CLIENT_INVALID: this is not a batch.
CADRE_CLIENT_API cadre_client_code cadre_client_batch_tensor(cadre_client_json batch, const char *name,
                                                             cadre_client_tensor *ret, cadre_client_error *error);

#ifdef __cplusplus
}
#endif

#endif
