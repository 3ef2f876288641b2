// SPDX-License-Identifier: Apache-2.0
// The C ABI of a Cadre module: a shared object whose classes cadre-worker creates and whose methods a client calls.
//
//   A module exports one function, cadre_module(), which returns a static description: its classes, their constructors
//   and methods. The host checks `abi` first and refuses another number with a clear message. All strings are UTF-8 and
//   NUL-terminated. The header is plain C11 and works from C++.
//
//   Threads: create, methods and destroy of one object run on one thread of the host, the executor, one at a time.
//   Calls of one client run in the order in which it sent them. Another thread talks to the network, so a method may
//   block. A method may start threads of its own, but may call this API only from the executor. Methods in a
//   concurrency group run in parallel, on threads of their group. destroy runs after all methods have returned. A
//   method must restore what it changes of its thread (locale, floating point environment, signal mask) before it
//   returns, because that thread may talk to the network between methods.
//
//   Ownership: memory that the host passes in is valid until the function returns. The host copies what a method
//   returns through this API before the function returns.
#ifndef CADRE_WORKER_H
#define CADRE_WORKER_H

#include "modes.h"

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif

#define CADRE_ABI 3u

typedef enum cadre_result {
    CADRE_OK = 0,
    CADRE_ERROR = 1,            // cadre_fail() has set the message, or no other code fits
    CADRE_INVALID_ARGUMENT = 2, // the client's fault
    CADRE_NOT_FOUND = 3,
    CADRE_OUT_OF_MEMORY = 4,
    CADRE_NO_DEVICE = 5,   // the driver or the GPU is missing
    CADRE_CANCELED = 6,    // the method noticed cadre_call_canceled()
    CADRE_UNAVAILABLE = 7, // another rank was lost, or does not answer
} cadre_result;

// CADRE_ONE_TO_ALL, CADRE_ALL_TO_ALL, ...: how arguments reach the ranks, and how results reach the client. The client
// can choose another mode. cadre/modes.h lists all modes.
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

// One method of a class. `self` is what create() returned. If the result is not CADRE_OK, the client gets an error with
// the message of cadre_fail().
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
// A member of `init`, during create(). If it is missing or null, *ret is `fallback`, and the result is CADRE_OK. If it
// has another type, the result is CADRE_INVALID_ARGUMENT, and the reason is set as by cadre_create_fail(). A string is
// valid until create() returns.
cadre_result cadre_init_double(cadre_worker *w, const char *name, double fallback, double *ret);
cadre_result cadre_init_int64(cadre_worker *w, const char *name, int64_t fallback, int64_t *ret);
cadre_result cadre_init_string(cadre_worker *w, const char *name, const char *fallback, const char **ret);
// The reason why create() fails, for people; printf-like. Returns CADRE_ERROR.
cadre_result cadre_create_fail(cadre_worker *w, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

// These functions tell the proxy about the class, during create() only. If one fails, it writes a reason as
// cadre_create_fail() does, so `return r;` is enough.
//
// The rule of a method with CADRE_SPLIT or a 3D mode: `split` and `collect` as in a call (JSON, docs/protocol.md,
// "Pieces"; either may be NULL): cadre_method_rule(w, "foo", "{\"index\": [0, 1, 0, 1]}", NULL).
cadre_result cadre_method_rule(cadre_worker *w, const char *method, const char *split, const char *collect);
// The method may run again for the same call. If a rank dies, a call with max_retries is then sent again.
cadre_result cadre_method_idempotent(cadre_worker *w, const char *method);
// A mesh of all ranks, row-major: the last dimension varies fastest. It must be the same on every rank. A mesh of this
// name in spec.worker.meshes replaces it.
cadre_result cadre_publish_mesh(cadre_worker *w, const char *name, const char *const *dims, const uint32_t *sizes,
                                size_t n_dims);
// Puts methods into a concurrency group. They run on threads of the group, up to `limit` (1 to 64) at a time, and do
// not wait for other methods. Calls of one client begin in the order in which it sent them. The methods must protect
// the state that they share with other groups and, if the limit is above 1, with each other. A method can be in one
// group. A class can have 16 groups.
cadre_result cadre_concurrency_group(cadre_worker *w, const char *name, unsigned limit, const char *const *methods,
                                     size_t n_methods);

// ---- a call -----------------------------------------------------------------------------------------------------

// The arguments of this rank: JSON (an object of keyword arguments, or an array of positional ones), or a batch with
// tensors (below), a safetensors document.
const char *cadre_args(const cadre_call *c, size_t *ret_len);
// One argument, by position or by name, as the client passed it. CADRE_NOT_FOUND: it is missing.
// CADRE_INVALID_ARGUMENT: it has another type. Both write the message for the client, so `return r;` is enough. The
// client gets INVALID.
cadre_result cadre_arg_double(cadre_call *c, size_t position, const char *name, double *ret);
cadre_result cadre_arg_int64(cadre_call *c, size_t position, const char *name, int64_t *ret);
cadre_result cadre_arg_string(cadre_call *c, size_t position, const char *name, const char **ret); // until return
cadre_result cadre_arg_json(cadre_call *c, size_t position, const char *name, const char **ret, size_t *ret_len);
// Checks that there are no other arguments: names in the order of their positions, at most 64, then NULL:
// `cadre_args_only(c, "x", "y", NULL)`. CADRE_INVALID_ARGUMENT with the message for the client: there are more
// arguments, or one has another name.
cadre_result cadre_args_only(cadre_call *c, ...) __attribute__((sentinel));

// The result. The last call wins. Without a call, the result is null.
cadre_result cadre_return_double(cadre_call *c, double v);
cadre_result cadre_return_int64(cadre_call *c, int64_t v);
cadre_result cadre_return_string(cadre_call *c, const char *s);
cadre_result cadre_return_json(cadre_call *c, const char *json, size_t len); // CADRE_INVALID_ARGUMENT if it is not JSON
// The error that the client sees; printf-like. Returns CADRE_ERROR.
cadre_result cadre_fail(cadre_call *c, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
int cadre_call_canceled(const cadre_call *c); // 1 when the client has gone or the deadline has passed
// The trace of the call, as its client gave it (W3C Trace Context: "00-<trace>-<parent>-<flags>"). Valid until the
// method returns. NULL = none. Since ABI 2.
const char *cadre_call_traceparent(const cadre_call *c);

// ---- calls that a method makes ------------------------------------------------------------------------------------

// A method may call its own group and other groups of its namespace, and wait for the results. The calls go through the
// proxy, like any client's. In a pod, they have the rights of its ServiceAccount. They inherit the deadline of the
// method's call. If that call is canceled or its client goes, waiting ends with CADRE_CANCELED. When the method
// returns, calls whose results it did not get are canceled. A call that would wait for this method to return, such as
// a call to the same rank, is refused, unless a concurrency group gives it another thread.
//
// On CADRE_ERROR, the message for the client is already written, so `return r;` is enough.
typedef struct cadre_request {
    size_t size;        // cadre_request_init() sets it
    const char *method; // required
    const char *group;  // a name; NULL = the worker's own group
    const char *role;   // of a group with roles; NULL = none
    const void *args;   // a JSON list or object, or a batch, a safetensors document; NULL = []
    size_t args_len;
    int64_t rank;            // -1 = the ranks that `execute` selects
    cadre_dispatch dispatch; // 0 = as the method was registered
    cadre_execute execute;   // the same
    int64_t timeout_ms;      // 0 = as long as the method's own client waits; if that has no deadline, an hour
} cadre_request;

static inline void cadre_request_init(cadre_request *r, const char *method)
{
    memset(r, 0, sizeof *r);
    r->size = sizeof *r;
    r->method = method;
    r->rank = -1;
}

// The result, as a client gets it: JSON (without a NUL at its end) or a batch. Valid until the method gets the next
// result, or returns.
cadre_result cadre_group_call(cadre_call *c, const cadre_request *request, const char **ret, size_t *ret_len);
// The same in two steps, to run several calls at a time. Get each result once.
cadre_result cadre_group_start(cadre_call *c, const cadre_request *request, uint64_t *ret_id);
cadre_result cadre_group_get(cadre_call *c, uint64_t id, const char **ret, size_t *ret_len);

// ---- batches ----------------------------------------------------------------------------------------------------

// A batch consists of rows. It has tensors, whose first dimension counts the rows, and columns, JSON lists with one
// value per row. All have the same number of rows. Metadata applies to all rows.
typedef struct cadre_tensor {
    const char *name;
    const char *dtype; // as in safetensors: "F32", "BF16", "I64", ...
    const uint64_t *shape;
    size_t n_dims;    // at least 1
    const void *data; // row-major, little endian; of arguments: aligned to 8 bytes if the sender aligned it
    size_t len;       // bytes
} cadre_tensor;

int cadre_is_batch(const cadre_call *c); // 1: the arguments are a batch with tensors; 0: they are JSON
size_t cadre_rows(const cadre_call *c);  // of the batch
// Tensors by number, in no special order, and by name. CADRE_NOT_FOUND: there is no such tensor; the second function
// then writes the message for the client.
cadre_result cadre_tensor_at(cadre_call *c, size_t i, cadre_tensor *ret);
cadre_result cadre_arg_tensor(cadre_call *c, const char *name, cadre_tensor *ret);
// A column is an argument by name: cadre_arg_json() gets its list for this rank's rows. By number: the name is valid
// until return.
cadre_result cadre_column_at(cadre_call *c, size_t i, const char **ret_name, const char **ret_json, size_t *ret_len);
// Metadata, by name, as JSON.
cadre_result cadre_arg_meta(cadre_call *c, const char *name, const char **ret, size_t *ret_len);

// The result is a batch of everything that these functions get; they copy it. CADRE_INVALID_ARGUMENT: a name was
// returned before, or the parts do not make one batch. If these functions do not notice it, the call fails when the
// method returns.
cadre_result cadre_return_tensor(cadre_call *c, const cadre_tensor *t);
cadre_result cadre_return_column(cadre_call *c, const char *name, const char *json, size_t len);
// Must be equal on all ranks whose results are joined. The exception is "metrics", an object: each of its values
// becomes a list of all ranks' values.
cadre_result cadre_return_meta(cadre_call *c, const char *name, const char *json, size_t len);
// Instead: a batch of exactly these tensors (data and len do not count). The method writes their values to ret_data[i]
// before it returns. They are sent from there without a copy. Bytes that the method does not write have any value.
// `columns`, a JSON object of lists, and `meta`, a JSON object, may be NULL.
cadre_result cadre_return_blank(cadre_call *c, const cadre_tensor *tensors, size_t n, const char *columns,
                                const char *meta, void **ret_data);
// A whole safetensors document instead.
cadre_result cadre_return_batch(cadre_call *c, const void *document, size_t len);

// ---- tensors on the device --------------------------------------------------------------------------------------

// A view is a tensor in the memory of this worker's GPU. In a worker without a GPU it is in memory of the host, and
// `device` is -1, so that a module can work in both. Since ABI 3.
//
// Each call has a stream, which is made when the call first needs the GPU. The host's copies for the call are put on
// it. A method puts its kernels on it, too, or on the legacy default stream: these two wait for each other. When the
// method returns, the host waits for both. The method itself must wait for work that it puts on other streams.
typedef struct cadre_view {
    const char *name; // this and the next three members are as in cadre_tensor, until return
    const char *dtype;
    const uint64_t *shape;
    size_t n_dims;
    void *data;   // on the device; row-major, aligned to its elements
    size_t len;   // bytes
    int device;   // index for cudaSetDevice(); -1 = `data` is in memory of the host
    void *stream; // of the call, a cudaStream_t; NULL if `device` is -1
} cadre_view;

// A tensor of the arguments on the device, by name. If it came by a reference that keeps it on a device, it is there
// already. Otherwise it is copied there once in a call, through pinned memory, and the end of the copy may still be on
// the stream. Methods must not write to it. The errors of cadre_arg_tensor(). CADRE_NO_DEVICE: there is no driver, or
// the GPU is not there. CADRE_OUT_OF_MEMORY: the GPU has no room. CADRE_CANCELED.
cadre_result cadre_arg_view(cadre_call *c, const char *name, cadre_view *ret);
// The result is a batch of exactly these tensors, as with cadre_return_blank(). The method writes their values to
// ret[i].data, with kernels or copies on the stream. It need not wait for them. If the client wants a reference
// (`keep`), they stay on the device until the reference is freed. Otherwise they are copied to the host once. Errors as
// above.
cadre_result cadre_return_views(cadre_call *c, const cadre_tensor *tensors, size_t n, const char *columns,
                                const char *meta, cadre_view *ret);

#ifdef __cplusplus
}
#endif

#endif
