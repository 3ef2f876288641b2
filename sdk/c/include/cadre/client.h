// SPDX-License-Identifier: Apache-2.0
// The client library of Cadre: a client connects to the proxy (part of cadre-operator) and calls methods of the workers
// of a group, on all ranks at once or on one. docs/calls.md explains calls. cadre_client(3) has examples.
//
//   One client is one connection. Many calls may be in flight. Each call is answered exactly once, by its result or by
//   an error. The library reopens a lost connection, after a pause with jitter, and then sends the calls that it had
//   not sent. Calls that it had sent fail with CADRE_CLIENT_UNAVAILABLE and may_have_run; it repeats those that set
//   max_retries.
//
//   Threads: only one thread at a time may use a client; different threads may use different clients. The library
//   starts threads only to look up host names, and they run no code of the program. The library works, and calls
//   callbacks, only inside cadre_client_call(), _info(), _wait(), _wait_for(), _get(), _next(), _transfer(),
//   _process() and _close(). A callback may start, cancel, get and forget calls of its client, and use no other
//   function of it. The library raises and handles no signals, and continues to wait after a signal.
//
//   A client that is `threaded` has its own thread: it sends calls and receives answers at any time, also while
//   nobody waits. Several threads may use it: cadre_client_start(), _cancel(), _take(), _give_back(), _wait(),
//   _wait_for(), _watch(), _next(), _forget(), _done(), _connected(), _pending(), _transfer(), _batch_room(),
//   _batch_free(), _shut(); at the end, one of them calls _close(). Its callbacks run on another thread and may use
//   it; `done` may run on any thread.
//
//   fork(): the child may open clients of its own. It must not use clients of its parent, and not close them: this
//   would end the parent's connection. exec closes all descriptors.
//
//   One call at a time: cadre_client_call(). Many: cadre_client_start() and cadre_client_wait(). In your own event
//   loop: watch cadre_client_fd() for reading, wait at most cadre_client_timeout_ms(), then call
//   cadre_client_process().
//
//   JSON is text in UTF-8, without a NUL at its end. The library does not parse results. If there is no memory, it
//   aborts; max_body and max_bytes limit what a peer can send. Plain C11; works from C++.
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
    CADRE_CLIENT_PROTO = 4, // the server is not a proxy of Cadre, or has another version
    CADRE_CLIENT_LIMIT = 5, // too long, or too many at a time
    CADRE_CLIENT_CANCELED = 6,
    CADRE_CLIENT_NOT_FOUND = 7,     // no such group, no such method
    CADRE_CLIENT_EXISTS = 8,        // group.create: the name is taken
    CADRE_CLIENT_CONFLICT = 9,      // the call is for an attempt that is over
    CADRE_CLIENT_GONE = 10,         // the group was deleted
    CADRE_CLIENT_UNAUTHORIZED = 11, // no token, or one that is not valid (any more)
    CADRE_CLIENT_FORBIDDEN = 12,    // the token lacks the right, or the server is not the expected one
    CADRE_CLIENT_THROTTLED = 13,    // the proxy has too much to do; try again
    CADRE_CLIENT_INVALID = 14,      // wrong arguments, of this library or of the method
    CADRE_CLIENT_UNAVAILABLE = 15,  // not connected, not ready, or a worker died
    CADRE_CLIENT_INTERNAL = 16,
    CADRE_CLIENT_FAILED = 100, // an error of the method; also each code that this version does not know, see `name`
} cadre_client_code;

typedef struct cadre_client_error {
    cadre_client_code code;
    int may_have_run;         // 0: certainly no rank has begun to run the call, in any of its tries
    int32_t rank;             // the rank that caused it, -1 = none
    int32_t exit_code;        // of its process, if it died and the agent knows the code; else -1
    int64_t retry_after_ms;   // the pause that the server asks for, 0 = none
    char name[32];            // the code as it was sent: "UNAVAILABLE", "FAILED"
    char pod[256], node[256]; // of the rank, "" = not known
    char message[1024];       // for people: what happened, to which object
    uint64_t idempotent;      // 1: the method declared that it may run again for the same call
    uint64_t reserved[7];     // 0; the size of this struct does not change
} cadre_client_error;

typedef struct cadre_client cadre_client;

// A line that ranks of the client's group have printed.
typedef struct cadre_client_output {
    const char *group; // "namespace/name"
    const char *ranks; // "3", or "0-3,7" if several ranks printed it at the same time
    const char *text;  // one line, without its end; NULL: no line, only `dropped`
    uint64_t dropped;  // lines before this one that were printed too fast
} cadre_client_output;

typedef struct cadre_client_options {
    size_t size; // cadre_client_options_init() sets it
    // Address of the proxy: "wss://host:port", "ws://host:port", "unix:/path". Each attempt to connect looks up the
    // name again and tries all of its addresses.
    const char *address;
    const char *path_prefix; // prefix of the proxy's paths, for example of a reverse proxy; NULL = none
    const char *ns;          // namespace of the groups to call, required
    const char *group;       // group of calls that name none; NULL = none
    // A token, or a file with a token. The library reads the file again for each attempt to connect. Neither: it sends
    // none.
    const char *token, *token_file;
    int token_in_hello; // 1: the token is in the first record, for servers in between that remove the header
    // Certificates to trust (wss): PEM text, or a file; neither: the system's certificates.
    const char *ca_pem, *ca_file;
    const char *server_name; // in the certificate; NULL = the host of the address
    // Times are 7 days at most.
    int64_t connect_timeout_ms; // limit for one attempt; the first ones have 2 s; 0 = 10 s
    int64_t unreachable_ms;     // how long a call without a timeout waits for a connection; 0 = 60 s
    uint32_t max_calls;         // calls without an answer, plus kept answers; 0 = 10,000; at most 65,535, minus the
                                // room for 16 urgent calls
    size_t max_body;  // bytes of a call's arguments, and of its result; 0 = 64 MiB. The library keeps memory of earlier
                      // results for later ones: up to max_body, or up to 144 MiB if that is more. The kernel may take
                      // it back
    size_t max_bytes; // of waiting arguments, of unfinished and kept results, and of the last cadre_client_call(); 0 =
                      // 512 MiB
    // Reports the state of the connection, for logs: 1 and NULL, or 0 and the reason. May be NULL.
    void (*on_connection)(void *ctx, int connected, const cadre_client_error *why);
    void *ctx;
    // Gets every line that ranks of `group` print while the client is connected, within half a second. Equal lines of
    // several ranks are one. NULL: the proxy sends no lines. Called inside the function that waits.
    void (*on_output)(void *ctx, const cadre_client_output *line);
    // 1: functions that wait sleep at once. 0: they first look for answers for up to 100 us, as long as answers come
    // that fast and there is more than one CPU. Small calls one at a time are then faster, but use more CPU time.
    int no_spin;
    // 1: the client has its own thread, and several threads may use it (see above). max_calls then limits calls without
    // an answer only; the client has room for 65,535 calls and kept answers together.
    int threaded;
} cadre_client_options;

// CADRE_CLIENT_ONE_TO_ALL, CADRE_CLIENT_ALL_TO_ALL, ...: how arguments reach the ranks. cadre/modes.h lists them.
enum {
    CADRE_CLIENT_DISPATCH_DEFAULT = 0, // as the method declares
#define CADRE_MODE(name, number, ...) CADRE_CLIENT_##name = (number),
    CADRE_DISPATCH_MODES(CADRE_MODE)
#undef CADRE_MODE
};

// CADRE_CLIENT_EXECUTE_ALL, CADRE_CLIENT_EXECUTE_RANK_ZERO, CADRE_CLIENT_EXECUTE_ANY: which ranks run it.
enum {
    CADRE_CLIENT_EXECUTE_DEFAULT = 0, // as the method declares
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
    // The result: a list in the order of ranks if all of them ran the call, the result of the rank that ran it, or the
    // joined batches. JSON, or as cadre_client_content_of() says. Valid until the callback returns. text NULL: the call
    // failed.
    cadre_client_json result;
    int64_t rank;                    // the rank that returned it; -1 = a list of all ranks
    const cadre_client_error *error; // NULL: it succeeded
} cadre_client_answer;

typedef struct cadre_client_request {
    size_t size;            // cadre_client_request_init() sets it
    const char *method;     // 1 to 63 characters
    const char *group;      // "name" or "namespace/name"; NULL = the client's
    cadre_client_json args; // a JSON list (by position) or object (by name); text NULL = []
    // Instead of args: the arguments of each rank, in the order of ranks: a list, an object, or any other value as the
    // only argument. Implies CADRE_CLIENT_ALL_TO_ALL. The proxy refuses a wrong number, also 0, and no rank runs the
    // call. An element may be a safetensors document instead of JSON. NULL: args.
    const cadre_client_json *per_rank;
    size_t n_per_rank;
    int64_t rank;              // -1 = the ranks that `execute` selects; else only this one, with the arguments
                               // unchanged
    int dispatch, execute;     // the enums above
    int64_t timeout_ms;        // from now, 7 days at most; 0 = none
    int64_t attempt;           // attempt of the group that the call is for; a later attempt refuses it; 0 = any
    int refuse_when_not_ready; // 1: fail at once if the group is not ready, instead of waiting
    // Called exactly once, never inside cadre_client_start(). NULL: no callback. cadre_client_call() ignores it.
    void (*done)(void *ctx, const cadre_client_answer *answer);
    void *ctx;
    // Instead of args: a batch, a safetensors document (cadre_client_batch_write()); or a list of bodies with the batch
    // of each rank (docs/protocol.md), with CADRE_CLIENT_ALL_TO_ALL.
    const void *batch;
    size_t batch_len;
    // JSON for CADRE_CLIENT_SPLIT and the 3D modes (docs/protocol.md, "Pieces"); NULL = as the method declares.
    const char *split, *collect;
    int pad; // 1: fill up a batch that cannot be split evenly with its last row, and remove these rows from the result
    // How often the library may repeat a failed call, within its timeout. It pauses before each try, at least as long
    // as the server asks for. 0: never, so the call runs at most once. It repeats calls that certainly have not run
    // (CADRE_CLIENT_UNAVAILABLE and _THROTTLED), and calls that the next two members allow. If all tries fail, the call
    // has the last error.
    uint32_t max_retries;
    const char *retry_on; // names of errors, whether or not the call ran: "NO_DEVICE,ValueError"; FAILED = all errors
                          // of methods; NULL = none
    int idempotent; // 1: also CADRE_CLIENT_UNAVAILABLE if the call may have run: a worker or the connection was lost.
                    // If a worker died, the method itself may have declared this
    int no_result;  // 1: ranks send no results; the result is null when all ranks have run the call. A call with
                    // neither `done` nor `keep` gets no results, either
    int keep; // 1: the client keeps the answer for cadre_client_get(), also if there is `done`; not for blocking calls
    const char *role; // in a group with roles (spec.worker.roles): the object to call; NULL = no roles
    const char *via;  // of a call that a worker's method makes: the methods that wait for it (JSON, docs/protocol.md);
                      // NULL = none
    const char *traceparent; // W3C Trace Context: the trace of the call, for the method; NULL = none
    // 1: results stay on the workers, and the answer is a reference to them: JSON that may be an argument of other
    // calls (docs/calls.md, "References"). They are freed when this client is closed, unless `pin` is 1.
    int by_reference, pin;
    // 1: the library does not copy long args or batches. Do not change them until the call is answered, fails or is
    // canceled, or this client is closed. A blocking call never copies them, except into memory that it shares with the
    // proxy; cadre_client_batch_new() makes a batch in that memory.
    int lend;
    int positional; // 1: if args is a list that is split, it has one list per argument, not one per rank
    int lazy;       // 1, for a `threaded` client: the thread that starts the call waits for it next, and sends it then
    // 1: the call goes before all others that are not sent yet, and no limit of calls or bytes in this library holds it
    // back. The proxy has its own limit of calls, which does not count group.renew, but all other methods. max_calls
    // and cadre_client_pending() do not count urgent calls. For short requests to the operator that must not be late,
    // such as group.renew. CADRE_CLIENT_LIMIT: 16 of them have no answer yet, or its args have more than 16 KiB.
    int urgent;
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

// For all functions below: `error` may be NULL, and is written only if the result is not CADRE_CLIENT_OK. The library
// copies what it gets, except with `lend`.

// Does not wait: connecting begins with the first turn. CADRE_CLIENT_INVALID: the options contradict each other;
// CADRE_CLIENT_IO, CADRE_CLIENT_UNAUTHORIZED: ca_file or token_file cannot be read, or is empty.
CADRE_CLIENT_API cadre_client_code cadre_client_open(const cadre_client_options *options, cadre_client **ret,
                                                     cadre_client_error *error);
// Calls without an answer end with CADRE_CLIENT_CANCELED. Says goodbye to the proxy, which takes up to a second.
// Accepts NULL. Not in a callback.
CADRE_CLIENT_API void cadre_client_close(cadre_client *c);

// For a `threaded` client, before cadre_client_close(): ends all waits. Answers can still be taken, and nothing new
// begins. Accepts NULL. Not in `done`.
CADRE_CLIENT_API void cadre_client_shut(cadre_client *c);

// Sends a call, or queues it until it can be sent. CADRE_CLIENT_INVALID, CADRE_CLIENT_LIMIT: it was not accepted, and
// `done` is not called. ret_id (may be NULL) is never 0.
CADRE_CLIENT_API cadre_client_code cadre_client_start(cadre_client *c, const cadre_client_request *request,
                                                      uint64_t *ret_id, cadre_client_error *error);
// The call ends with CADRE_CLIENT_CANCELED, or with its result if that was faster; ranks may continue to run it.
// CADRE_CLIENT_NOT_FOUND: it is already answered.
CADRE_CLIENT_API cadre_client_code cadre_client_cancel(cadre_client *c, uint64_t id);

// Calls, and waits for the answer. Other calls continue meanwhile. The result is valid until the next
// cadre_client_call() or cadre_client_info() of this client; ret may be NULL.
CADRE_CLIENT_API cadre_client_code cadre_client_call(cadre_client *c, const cadre_client_request *request,
                                                     cadre_client_json *ret, cadre_client_error *error);
// The proxy's information about a group (NULL = the client's) and its methods: a JSON object, docs/calls.md.
CADRE_CLIENT_API cadre_client_code cadre_client_info(cadre_client *c, const char *group, int64_t timeout_ms,
                                                     cadre_client_json *ret, cadre_client_error *error);

// Ends the process of a rank as if it had crashed; the group's restartPolicy decides what follows. Its open calls fail
// with CADRE_CLIENT_UNAVAILABLE. Returns when the process is gone. CADRE_CLIENT_UNAVAILABLE: it was not connected.
CADRE_CLIENT_API cadre_client_code cadre_client_kill(cadre_client *c, const char *group, int64_t rank,
                                                     int64_t timeout_ms, cadre_client_error *error);

// References: {"$ref": "..."}, JSON for objects that stay on the workers. All of these functions wait.

// Stores JSON or a batch on workers. `to` (may be NULL) says where and how, like the request of a call; its method,
// args, role, keep, by_reference and no_result have no effect. Default: the least busy worker of the client's group.
// *ret is the reference, valid until the next cadre_client_call() of this client. CADRE_CLIENT_LIMIT: the worker has no
// memory left for objects.
CADRE_CLIENT_API cadre_client_code cadre_client_object_put(cadre_client *c, const cadre_client_request *to,
                                                           cadre_client_json value, cadre_client_json *ret,
                                                           cadre_client_error *error);
// Returns what the call would have returned without by_reference. CADRE_CLIENT_NOT_FOUND: it was freed;
// CADRE_CLIENT_GONE: the process that kept it is gone.
CADRE_CLIENT_API cadre_client_code cadre_client_object_get(cadre_client *c, cadre_client_json reference,
                                                           int64_t timeout_ms, cadre_client_json *ret,
                                                           cadre_client_error *error);
// Keeps the object when this client is closed.
CADRE_CLIENT_API cadre_client_code cadre_client_object_pin(cadre_client *c, cadre_client_json reference,
                                                           int64_t timeout_ms, cadre_client_error *error);
CADRE_CLIENT_API cadre_client_code cadre_client_object_free(cadre_client *c, cadre_client_json reference,
                                                            int64_t timeout_ms, cadre_client_error *error);

// Waits until at least one call is answered, for at most timeout_ms (negative = without end), and returns how many are;
// 0 at once if no call is open.
CADRE_CLIENT_API size_t cadre_client_wait(cadre_client *c, int64_t timeout_ms);

// Futures: calls with `keep`. The client keeps their answers until you take them. In a callback, none of these
// functions waits.

// Waits for the answer to a call, and returns it like cadre_client_call(). The client no longer keeps it; the result is
// valid until the next cadre_client_get() of this client. CADRE_CLIENT_INVALID: it was taken or forgotten, or not kept.
CADRE_CLIENT_API cadre_client_code cadre_client_get(cadre_client *c, uint64_t id, cadre_client_json *ret,
                                                    cadre_client_error *error);
// The same, but waits at most timeout_ms (negative = without end). The result belongs to you until you give it back,
// before cadre_client_close(). *ret_memory NULL and CADRE_CLIENT_OK: the time is over, the call continues. With an
// error, *ret_memory is NULL, or *ret is the body of the ERROR (docs/protocol.md), which you must give back, too.
CADRE_CLIENT_API cadre_client_code cadre_client_take(cadre_client *c, uint64_t id, int64_t timeout_ms,
                                                     cadre_client_json *ret, void **ret_memory,
                                                     cadre_client_error *error);
CADRE_CLIENT_API void cadre_client_give_back(cadre_client *c, void *memory); // accepts NULL
// Waits at most timeout_ms (negative = without end) until num_returns of these calls (with or without `keep`) are
// answered. Then the first *ret_ready of `ids`, at most num_returns, are answered calls. The others follow; some of
// them may be answered, too. Both parts keep their order. *ret_ready below num_returns: the time is over.
// CADRE_CLIENT_INVALID: an id occurs twice or is not of this client; num_returns is 0, or more than n.
CADRE_CLIENT_API cadre_client_code cadre_client_wait_for(cadre_client *c, uint64_t *ids, size_t n, size_t num_returns,
                                                         int64_t timeout_ms, size_t *ret_ready,
                                                         cadre_client_error *error);
// Returns the call that finished first, among calls whose answers are kept and that this function has not returned yet;
// waits as above. 0: the time is over, or no such call is open. A `threaded` client returns only watched calls, also
// those whose answers another thread has taken meanwhile, and waits until there is one.
CADRE_CLIENT_API uint64_t cadre_client_next(cadre_client *c, int64_t timeout_ms);
// For a `threaded` client: cadre_client_next() returns this call when it is answered. 0: the client does not keep the
// answer of this call.
CADRE_CLIENT_API int cadre_client_watch(cadre_client *c, uint64_t id);
CADRE_CLIENT_API void cadre_client_forget(cadre_client *c, uint64_t id); // drops its answer, now or when it comes
// 1: the call is answered, as far as the library has read; 0: it is open. Reads and sends nothing.
CADRE_CLIENT_API int cadre_client_done(const cadre_client *c, uint64_t id);

// Moves weights from one group to another, from rank to rank (cadre/transfer.h).

typedef struct cadre_client_transfer_options {
    size_t size;                           // cadre_client_transfer_options_init() sets it
    const char *source, *target;           // groups of the client's namespace
    const char *source_role, *target_role; // for groups with roles; NULL = none
    const char *const *names;              // only these tensors; n_names 0 = all of both groups
    size_t n_names;
    int64_t timeout_ms;         // for the whole transfer; 0 = 10 minutes
    const char *via;            // as in cadre_client_request
    int (*canceled)(void *ctx); // asked several times a second, while it waits; 1: it gives up. May be NULL
    void *ctx;
} cadre_client_transfer_options;

static inline void cadre_client_transfer_options_init(cadre_client_transfer_options *o)
{
    memset(o, 0, sizeof *o);
    o->size = sizeof *o;
}

typedef struct cadre_client_transferred {
    uint64_t bytes;   // the sum over all receivers
    char version[17]; // of the weights that the receivers have now
    char *problems;   // with CADRE_CLIENT_INVALID: everything that does not match; nothing was moved. The caller frees
                      // it with free(). NULL = nothing
    // The bytes that went from memory to memory or from GPU to GPU within a pod, and those that went by NCCL. The
    // others used connections.
    uint64_t direct, nccl;
    uint64_t reserved[6];
} cadre_client_transferred;

// Waits until all ranks of the target have taken the new weights, or all have kept the old ones and the error says why.
// If ranks may differ, for example because one died at the very end, the message says so: transfer again. Do not call
// it in a callback.
CADRE_CLIENT_API cadre_client_code cadre_client_transfer(cadre_client *c, const cadre_client_transfer_options *options,
                                                         cadre_client_transferred *ret, cadre_client_error *error);

// For an event loop. After any other function of this client, ask for the timeout again; 0 = process at once, negative
// = wait for the descriptor only. The descriptor is an epoll instance and belongs to the client.
CADRE_CLIENT_API int cadre_client_fd(const cadre_client *c);
CADRE_CLIENT_API int cadre_client_timeout_ms(cadre_client *c);
CADRE_CLIENT_API size_t cadre_client_process(cadre_client *c); // does not wait; returns how many were answered

CADRE_CLIENT_API int cadre_client_connected(const cadre_client *c);  // 1: the proxy has sent WELCOME
CADRE_CLIENT_API size_t cadre_client_pending(const cadre_client *c); // calls without an answer that are not urgent
CADRE_CLIENT_API const char *cadre_client_code_name(cadre_client_code code); // "NOT_FOUND"
CADRE_CLIENT_API const char *cadre_client_version(void);
// The name of a mode, by its number from 1: "ONE_TO_ALL", "ALL"; NULL if there is no such mode.
CADRE_CLIENT_API const char *cadre_client_dispatch_name(int dispatch);
CADRE_CLIENT_API const char *cadre_client_execute_name(int execute);
// The row of a dispatch mode in the table of cadre/modes.h, from `rule` on: "each ROWS NOTHING JOINED". For bindings to
// other languages. NULL if there is no such mode.
CADRE_CLIENT_API const char *cadre_client_dispatch_row(int dispatch);

// Iterates over a list, such as the results of all ranks: 1 = *item is the next element, 0 = the end, -1 = not a valid
// list. `list` becomes the rest. Does not check the contents of elements.
CADRE_CLIENT_API int cadre_client_list_next(cadre_client_json *list, cadre_client_json *item);

// Batches

// The type of a result, or of an element of one.
typedef enum cadre_client_content {
    CADRE_CLIENT_CONTENT_JSON = 0,
    CADRE_CLIENT_CONTENT_BATCH = 1, // a safetensors document, for any safetensors reader
    CADRE_CLIENT_CONTENT_LIST = 2,  // a list of both, for cadre_client_list_next()
} cadre_client_content;
CADRE_CLIENT_API cadre_client_content cadre_client_content_of(cadre_client_json result);

enum { CADRE_CLIENT_DIMS_MAX = 8 };

typedef struct cadre_client_tensor {
    const char *name;
    const char *dtype; // as in safetensors: "F32", "BF16", "I64", ...
    uint64_t shape[CADRE_CLIENT_DIMS_MAX];
    size_t n_dims;    // at least 1: the first dimension is the row
    const void *data; // row-major, little endian
    size_t len;       // bytes
} cadre_client_tensor;

// Makes a batch of tensors with the same number of rows; free it with free(). `columns`: a JSON object of lists with
// one value per row, for values that are not tensors; `meta`: a JSON object that every rank gets as a whole; NULL =
// none.
CADRE_CLIENT_API cadre_client_code cadre_client_batch_write(const cadre_client_tensor *tensors, size_t n,
                                                            const char *columns, const char *meta, void **ret,
                                                            size_t *ret_len, cadre_client_error *error);
// The same, in the memory that it is sent from: memory shared with a proxy on this host, if the client is connected and
// there is room, else memory of the client. If the data of a tensor is NULL, you write its values afterwards: data and
// len then say where. A blocking call, or a call with `lend`, does not copy such a batch. You can fill and send it
// again when the call has succeeded. After a failure, ranks may still read it: free it, and make another one. Calls may
// continue after cadre_client_batch_free(), which accepts NULL; cadre_client_close() frees all.
CADRE_CLIENT_API cadre_client_code cadre_client_batch_new(cadre_client *c, cadre_client_tensor *tensors, size_t n,
                                                          const char *columns, const char *meta, void **ret,
                                                          size_t *ret_len, cadre_client_error *error);
// The same memory, for a document of `len` bytes that you write yourself.
CADRE_CLIENT_API cadre_client_code cadre_client_batch_room(cadre_client *c, size_t len, void **ret,
                                                           cadre_client_error *error);
CADRE_CLIENT_API void cadre_client_batch_free(cadre_client *c, void *batch);
// Finds a tensor of a batch. The data points into the batch, at any address: copy the values before you use them.
// CADRE_CLIENT_NOT_FOUND; CADRE_CLIENT_INVALID: this is not a batch.
CADRE_CLIENT_API cadre_client_code cadre_client_batch_tensor(cadre_client_json batch, const char *name,
                                                             cadre_client_tensor *ret, cadre_client_error *error);

#ifdef __cplusplus
}
#endif

#endif
