// SPDX-License-Identifier: Apache-2.0
// The C ABI of a Cadre module: a shared object whose classes cadre-worker creates and whose methods a client calls.
//
//   A module exports one function, cadre_module(), which returns a static description: its classes, their constructors
//   and methods. The host checks `abi` first and refuses another number with a clear message. All strings are UTF-8 and
//   NUL-terminated. The header is plain C11 and works from C++.
//
//   Threads: create, methods and destroy of one object all run on one thread of the host, the executor, one at a time,
//   in the order in which each caller sent them. While a method runs another thread talks to the network, so it may
//   block; it may start threads of its own, but calls into this API only from the executor. Methods that the class puts
//   into concurrency groups run beside these, on threads of their group; destroy comes when all have returned. What a
//   method changes of its thread (locale, floating point environment, signal mask) it restores before it returns:
//   between methods that thread may talk to the network, too.
//
//   Ownership: what the host hands in lives until the function returns. What a method hands back through this API is
//   copied before the function returns.
#ifndef CADRE_WORKER_H
#define CADRE_WORKER_H

#include "modes.h"

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif

#define CADRE_ABI 2u

typedef enum cadre_result {
    CADRE_OK = 0,
    CADRE_ERROR = 1,            // said by cadre_fail(), or nothing better fits
    CADRE_INVALID_ARGUMENT = 2, // the caller's fault
    CADRE_NOT_FOUND = 3,
    CADRE_OUT_OF_MEMORY = 4,
    CADRE_NO_DEVICE = 5, // driver or GPU missing
    CADRE_CANCELED = 6,  // the method noticed cadre_call_canceled()
} cadre_result;

// CADRE_ONE_TO_ALL, CADRE_ALL_TO_ALL, ...: how arguments reach the ranks, and results the caller, when the caller does
// not say otherwise. cadre/modes.h has them all.
typedef enum cadre_dispatch {
#define CADRE_MODE(name, number, ...) CADRE_##name = (number),
    CADRE_DISPATCH_MODES(CADRE_MODE)
#undef CADRE_MODE
} cadre_dispatch;

// CADRE_EXECUTE_ALL, CADRE_EXECUTE_RANK_ZERO, CADRE_EXECUTE_ANY: which ranks run it.
typedef enum cadre_execute {
#define CADRE_MODE(name, number) CADRE_EXECUTE_##name = (number),
    CADRE_EXECUTE_MODES(CADRE_MODE)
#undef CADRE_MODE
} cadre_execute;

typedef struct cadre_worker cadre_worker; // the process: its rank and its place
typedef struct cadre_call cadre_call;     // one call in progress

// One method of a class. `self` is what create() returned. On anything but CADRE_OK the caller gets an error with the
// message of cadre_fail().
typedef struct cadre_method {
    const char *name;
    cadre_dispatch dispatch;
    cadre_execute execute;
    cadre_result (*run)(void *self, cadre_call *call);
    const char *doc; // one line for people, may be NULL
} cadre_method;

typedef struct cadre_class {
    const char *name;
    // The constructor: `init` is the JSON of spec.worker.init ("{}" if there is none). A failure ends the process, with
    // the message in the group's lastFailure.
    cadre_result (*create)(cadre_worker *worker, const char *init, size_t init_len, void **ret_self);
    void (*destroy)(void *self); // may be NULL
    const cadre_method *methods;
    size_t n_methods;
} cadre_class;

typedef struct cadre_module_info {
    uint32_t abi; // CADRE_ABI
    const char *name;
    const cadre_class *classes;
    size_t n_classes;
} cadre_module_info;

// The only symbol that a module exports.
#define CADRE_EXPORT __attribute__((visibility("default")))
CADRE_EXPORT const cadre_module_info *cadre_module(void);

// ---- the process ------------------------------------------------------------------------------------------------

int cadre_rank(const cadre_worker *w);       // RANK
int cadre_world_size(const cadre_worker *w); // WORLD_SIZE
int cadre_local_rank(const cadre_worker *w);
int cadre_device(const cadre_worker *w); // index for cudaSetDevice(), -1 if this worker has no GPU
// A member of `init`, during create(). One that is missing or null is `fallback`, which is CADRE_OK;
// CADRE_INVALID_ARGUMENT if it is of another type, with the reason written as by cadre_create_fail(). A string lives
// until create() returns.
cadre_result cadre_init_double(cadre_worker *w, const char *name, double fallback, double *ret);
cadre_result cadre_init_int64(cadre_worker *w, const char *name, int64_t fallback, int64_t *ret);
cadre_result cadre_init_string(cadre_worker *w, const char *name, const char *fallback, const char **ret);
// The reason why create() fails, for people; printf-like. Returns CADRE_ERROR.
cadre_result cadre_create_fail(cadre_worker *w, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

// What the class tells the proxy of itself, during create() only. A reason why it cannot is written as by
// cadre_create_fail(), so `return r;` is enough.
//
// Of a method of CADRE_SPLIT or one of the 3D modes: `split` and `collect` as callers may say them, too (JSON,
// docs/protocol.md, "Pieces"; either may be NULL): cadre_method_rule(w, "foo", "{\"index\": [0, 1, 0, 1]}", NULL).
cadre_result cadre_method_rule(cadre_worker *w, const char *method, const char *split, const char *collect);
// The method may run again for the same call: a caller that asks for max_retries gets it sent again where a rank died.
cadre_result cadre_method_idempotent(cadre_worker *w, const char *method);
// A mesh of all ranks, row-major, the last dimension fastest; the same on every rank. One of this name in
// spec.worker.meshes goes before it.
cadre_result cadre_publish_mesh(cadre_worker *w, const char *name, const char *const *dims, const uint32_t *sizes,
                                size_t n_dims);
// These methods do not wait for those of other groups and of none: they run on threads of their own, up to `limit` (1
// to 64) of the group at a time, and begin in the order in which each caller sent them. What methods share across
// groups, and with a limit over 1 within one, they guard themselves. A method is in one group at most; 16 groups at
// most.
cadre_result cadre_concurrency_group(cadre_worker *w, const char *name, unsigned limit, const char *const *methods,
                                     size_t n_methods);

// ---- a call -----------------------------------------------------------------------------------------------------

// The arguments of this rank as JSON: an object of keyword arguments, or an array of positional ones; or a batch with
// tensors (below), a safetensors document.
const char *cadre_args(const cadre_call *c, size_t *ret_len);
// One argument, by position or by name, whichever way the caller gave it. CADRE_NOT_FOUND if it is missing,
// CADRE_INVALID_ARGUMENT if it is of another type; both write the message for the caller, so `return r;` is enough, and
// the caller gets INVALID.
cadre_result cadre_arg_double(cadre_call *c, size_t position, const char *name, double *ret);
cadre_result cadre_arg_int64(cadre_call *c, size_t position, const char *name, int64_t *ret);
cadre_result cadre_arg_string(cadre_call *c, size_t position, const char *name, const char **ret); // until return
cadre_result cadre_arg_json(cadre_call *c, size_t position, const char *name, const char **ret, size_t *ret_len);
// That there are no others: names in the order of their positions, closed by NULL, at most 64. CADRE_INVALID_ARGUMENT
// with the message for the caller where there are more, or one of another name: `cadre_args_only(c, "x", "y", NULL)`.
cadre_result cadre_args_only(cadre_call *c, ...) __attribute__((sentinel));

// The result; the last one wins, none means null.
cadre_result cadre_return_double(cadre_call *c, double v);
cadre_result cadre_return_int64(cadre_call *c, int64_t v);
cadre_result cadre_return_string(cadre_call *c, const char *s);
cadre_result cadre_return_json(cadre_call *c, const char *json, size_t len); // CADRE_INVALID_ARGUMENT if it is no JSON
// The error that the caller sees; printf-like. Returns CADRE_ERROR.
cadre_result cadre_fail(cadre_call *c, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
int cadre_call_canceled(const cadre_call *c); // 1 once the caller has gone or the deadline has passed
// The trace that the call is part of, as its caller gave it (W3C Trace Context: "00-<trace>-<parent>-<flags>"), until
// return; NULL = none. Since ABI 2.
const char *cadre_call_traceparent(const cadre_call *c);

// ---- calls that a method makes ------------------------------------------------------------------------------------

// A method may call groups, its own and others of its namespace, and wait for the results: through the proxy, as any
// client does, in a pod with the rights of its ServiceAccount. None waits longer than the method's own caller: the
// deadline of the method's call is theirs, too, and where that call is canceled or its caller goes, waiting ends with
// CADRE_CANCELED. What was started and not got when the method returns is canceled. A call that would have to wait for
// this method to return, such as one to the same rank, is refused, unless a concurrency group gives it another thread.
//
// On CADRE_ERROR the message for the caller is written, so `return r;` is enough.
typedef struct cadre_request {
    size_t size;        // cadre_request_init() sets it
    const char *method; // required
    const char *group;  // a name; NULL = the own
    const char *role;   // of a group with roles; NULL = none
    const void *args;   // a JSON list or object, or a batch, a safetensors document; NULL = []
    size_t args_len;
    int64_t rank;            // -1 = those that `execute` says
    cadre_dispatch dispatch; // 0 = as the method was registered
    cadre_execute execute;   // the same
    int64_t timeout_ms;      // 0 = as long as the method's own caller waits, an hour where that has no deadline
} cadre_request;

static inline void cadre_request_init(cadre_request *r, const char *method)
{
    memset(r, 0, sizeof *r);
    r->size = sizeof *r;
    r->method = method;
    r->rank = -1;
}

// The result, as a client gets it: JSON (no NUL behind it) or a batch, valid until the next one of this call is
// got, or until return.
cadre_result cadre_group_call(cadre_call *c, const cadre_request *request, const char **ret, size_t *ret_len);
// The same in two steps, so that several may be under way. Each is got once.
cadre_result cadre_group_start(cadre_call *c, const cadre_request *request, uint64_t *ret_id);
cadre_result cadre_group_get(cadre_call *c, uint64_t id, const char **ret, size_t *ret_len);

// ---- batches ----------------------------------------------------------------------------------------------------

// A batch is rows: tensors whose first dimension is the row, and columns, JSON lists with one value a row, for what is
// no tensor. All have the same number of rows. Metadata goes with all rows.
typedef struct cadre_tensor {
    const char *name;
    const char *dtype; // as safetensors has it: "F32", "BF16", "I64", ...
    const uint64_t *shape;
    size_t n_dims;    // at least 1
    const void *data; // row-major, little endian; of arguments aligned to 8 bytes at least where the sender aligned it
    size_t len;       // bytes
} cadre_tensor;

int cadre_is_batch(const cadre_call *c); // 1: the arguments are a batch with tensors; 0: they are JSON
size_t cadre_rows(const cadre_call *c);  // of the batch
// Tensors by number, in no special order, and by name. CADRE_NOT_FOUND; the latter writes the message for the caller.
cadre_result cadre_tensor_at(cadre_call *c, size_t i, cadre_tensor *ret);
cadre_result cadre_arg_tensor(cadre_call *c, const char *name, cadre_tensor *ret);
// A column is an argument by name: cadre_arg_json() gets its list, of this rank's rows. By number, names until return:
cadre_result cadre_column_at(cadre_call *c, size_t i, const char **ret_name, const char **ret_json, size_t *ret_len);
// Metadata, by name, as JSON.
cadre_result cadre_arg_meta(cadre_call *c, const char *name, const char **ret, size_t *ret_len);

// The result is a batch of what was returned by any of these; all is copied. A name that was returned before is
// CADRE_INVALID_ARGUMENT, as is what does not fit together, at the latest when the method has returned.
cadre_result cadre_return_tensor(cadre_call *c, const cadre_tensor *t);
cadre_result cadre_return_column(cadre_call *c, const char *name, const char *json, size_t len);
// Must be the same on all ranks whose results are joined, but for "metrics": an object. Each of its values becomes a
// list of all ranks' values.
cadre_result cadre_return_meta(cadre_call *c, const char *name, const char *json, size_t len);
// Instead: a batch of exactly these tensors (data and len do not count). The method writes their values itself
// to ret_data[i], where they are sent from, until it returns; nobody copies them. What it does not write may be
// anything. `columns`, a JSON object of lists, and `meta`, a JSON object, may be NULL.
cadre_result cadre_return_blank(cadre_call *c, const cadre_tensor *tensors, size_t n, const char *columns,
                                const char *meta, void **ret_data);
// A whole safetensors document instead.
cadre_result cadre_return_batch(cadre_call *c, const void *document, size_t len);

#ifdef __cplusplus
}
#endif

#endif
