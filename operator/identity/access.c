// SPDX-License-Identifier: Apache-2.0
// A question has the hash of its token and namespace as its key. It is asked in reviews, one after the other. Then all
// waiters get the answer. An answer that may be given again is kept; the oldest one makes room for the newest. A
// question is doubtful if its token is unknown, because a peer can invent any number of tokens.
#include "operator/identity/access.h"

#include "common/base/list.h"
#include "common/base/map.h"
#include "common/base/str.h"
#include "operator/identity/jwt.h"
#include "operator/identity/review.h"
#include "operator/kube/inquiry.h"

#include <openssl/evp.h>
#include <stdlib.h>
#include <string.h>

enum {
    ALLOWED_MS = 10 * 1000,
    DENIED_MS = 5 * 1000,
    MAX_QUESTIONS = 1024,
    MAX_DOUBTFUL = 16,
    MAX_WAITERS = 4096,
    REVIEW_TIMEOUT_MS = 10 * 1000,
    NAMESPACE_MAX = 63,
    HASH_SIZE = 32,
};

// The rights are reviewed in this order. Without the first right, the answer is no. Each of the others is the right to
// send code. The right to create WorkerGroups counts as the right to run code, because their pods run any program.
enum { CALLING, CODING, MAKING, RIGHTS };

static const struct right rights[RIGHTS] = {
    [CALLING] = {KIND_WORKERGROUP, "create", "call", "call workers",
                 "bind the chart's ClusterRole that ends in -call to it there"},
    [CODING] = {KIND_WORKERGROUP, "create", "code", "send code to workers",
                "bind the chart's ClusterRole that ends in -code to it there"},
    [MAKING] = {KIND_WORKERGROUP, "create", NULL, "create WorkerGroups",
                "bind the chart's ClusterRole that ends in -edit to it there"},
};

struct access {
    struct loop *loop;
    struct kube_client *client;
    struct access_options options;
    char *audience;
    struct map questions; // by key
    struct list answered; // questions, oldest first
    struct list waiters;  // of all questions
    size_t n_waiters;
    struct list line;                    // doubtful questions that are not asked yet
    size_t n_doubtful, n_doubtful_asked; // doubtful questions without an answer; how many of them are asked
    uint64_t last_id;
};

struct question {
    struct access *access;
    char key[2 * HASH_SIZE + 1];
    char ns[NAMESPACE_MAX + 1];
    struct list link; // in access->answered or access->line
    struct list waiters;
    bool doubtful, asked; // asked: a doubtful question that has left the line
    int64_t expires_ms;   // of the token, Unix time, 0 = no end
    // While the question is asked:
    struct inquiry *inquiry;
    enum kind review; // which of the two reviews
    unsigned right;   // the right in `rights` that a SubjectAccessReview asks about
    char *body;       // of the review; NULL: the question is answered
    bool again;       // the review was sent a second time
    // When the question is answered:
    char *user, *subject; // known after the first review
    bool code;
    struct err err;
    int64_t until_ms; // mono; the answer may be given again until then
    bool telling;     // its waiters are being called
};

struct waiter {
    struct question *question;
    struct list link; // in the question
    struct list all;  // in access
    uint64_t id;
    authority_done_fn done;
    void *ctx;
};

static void make_key(const char *token, const char *ns, char ret[2 * HASH_SIZE + 1])
{
    unsigned char hash[HASH_SIZE];
    EVP_MD_CTX *ctx = EVP_MD_CTX_new();
    // The NUL separates them, so two different pairs of token and namespace never give the same text.
    if (!ctx || !EVP_DigestInit_ex2(ctx, EVP_sha256(), NULL) || !EVP_DigestUpdate(ctx, token, strlen(token) + 1) ||
        !EVP_DigestUpdate(ctx, ns, strlen(ns)) || !EVP_DigestFinal_ex(ctx, hash, NULL))
        abort(); // no memory
    EVP_MD_CTX_free(ctx);
    str_hex(hash, HASH_SIZE, ret);
}

// --- questions

static void body_set(struct question *q, char *body)
{
    if (q->body)
        explicit_bzero(q->body, strlen(q->body)); // the first body contains the token
    free(q->body);
    q->body = body;
}

static void question_send(struct question *q);

static void line_move(struct access *a)
{
    while (a->n_doubtful_asked < a->options.max_doubtful && !list_empty(&a->line)) {
        struct question *q = CONTAINER_OF(list_pop(&a->line), struct question, link);
        q->asked = true;
        a->n_doubtful_asked++;
        question_send(q);
    }
}

// Call it if the question is answered or given up.
static void question_leave_line(struct question *q)
{
    struct access *a = q->access;
    if (!q->doubtful || !q->body)
        return;
    a->n_doubtful--;
    if (q->asked)
        a->n_doubtful_asked--;
    else
        list_remove(&q->link);
    line_move(a);
}

static void question_forget(struct question *q)
{
    struct access *a = q->access;
    question_leave_line(q);
    if (map_get(&a->questions, q->key) == q)
        map_del(&a->questions, q->key);
    list_remove(&q->link);
    if (q->telling)
        return; // the function that calls the waiters frees it
    inquiry_drop(q->inquiry);
    body_set(q, NULL);
    free(q->user);
    free(q->subject);
    free(q);
}

static bool question_fresh(const struct question *q)
{
    const struct access *a = q->access;
    bool ended = !q->err.code && q->expires_ms && q->expires_ms <= loop_wall_ms(a->loop);
    return q->until_ms > loop_now_ms(a->loop) && !ended;
}

static void waiter_free(struct access *a, struct waiter *w)
{
    list_remove(&w->link);
    list_remove(&w->all);
    a->n_waiters--;
    free(w);
}

// The callbacks may cancel other waiters, and ask again.
static void question_tell(struct question *q)
{
    struct access *a = q->access;
    q->telling = true;
    while (!list_empty(&q->waiters)) {
        struct waiter *first = CONTAINER_OF(q->waiters.next, struct waiter, link), w = *first;
        waiter_free(a, first);
        w.done(w.ctx, &(struct client_user){q->user, q->subject, q->code}, q->expires_ms, &q->err);
    }
    q->telling = false;
    if (map_get(&a->questions, q->key) != q || !question_fresh(q))
        question_forget(q);
}

static void question_answer(struct question *q, const struct err *err)
{
    struct access *a = q->access;
    question_leave_line(q);
    body_set(q, NULL);
    q->err = *err;
    bool denied = err->code == ERR_UNAUTHORIZED || err->code == ERR_FORBIDDEN;
    if (!err->code)
        q->until_ms = loop_now_ms(a->loop) + a->options.allowed_ms;
    else if (denied)
        q->until_ms = loop_now_ms(a->loop) + a->options.denied_ms;
    else
        map_del(&a->questions, q->key); // the next question goes to the API server again
    if (!err->code || denied)
        list_append(&a->answered, &q->link);
    question_tell(q);
}

// --- asking

static void review_right(struct question *q, unsigned right)
{
    struct arena arena = ARENA_INIT;
    const struct client_user who = {.name = q->user, .subject = q->subject};
    body_set(q, xstrdup(review_of(&who, &rights[right], q->ns, NULL, &arena)));
    q->review = KIND_SUBJECT_ACCESS_REVIEW;
    q->right = right;
    q->again = false;
    question_send(q);
    arena_done(&arena);
}

static void read_token_review(struct question *q, const struct kube_response *response)
{
    struct access *a = q->access;
    struct arena arena = ARENA_INIT;
    struct client_user who;
    struct err err = ERR_INIT;
    if (review_user(response->body, response->len, a->audience, &arena, &who, &err) < 0) {
        question_answer(q, &err);
    } else {
        q->user = xstrdup(who.name);
        q->subject = xstrdup(who.subject);
        review_right(q, CALLING);
    }
    arena_done(&arena);
}

static void read_access_review(struct question *q, const struct kube_response *response)
{
    struct err err = ERR_INIT;
    int r = review_access(response->body, response->len, q->user, &rights[q->right], q->ns, NULL, &err);
    bool decided = q->right == CALLING ? r < 0 : r == 0 || r != ERR_FORBIDDEN || q->right == MAKING;
    q->code = q->right != CALLING && r == 0;
    if (!decided) {
        review_right(q, q->right + 1);
        return;
    }
    if (q->right != CALLING && r == ERR_FORBIDDEN) // the user may call workers, but not send code
        err = (struct err)ERR_INIT;
    question_answer(q, &err);
}

// If the API server refuses the operator, this is not the fault of the client.
static void review_failed(struct question *q, const struct err *why)
{
    struct err err = ERR_INIT;
    if (!q->again && err_is_retryable(why->code)) {
        q->again = true;
        question_send(q);
        return;
    }
    err_set(&err, ERR_UNAVAILABLE,
            "the operator cannot ask the API server now whether you may call workers here: %.500s%s", why->msg,
            why->code == ERR_FORBIDDEN ? " (the operator's ClusterRole lacks it: see the chart's rbac)" : "");
    question_answer(q, &err);
}

static void on_review(void *ctx, const struct kube_response *response, const struct err *err)
{
    struct question *q = ctx;
    q->inquiry = NULL;
    if (err->code)
        review_failed(q, err);
    else if (q->review == KIND_TOKEN_REVIEW)
        read_token_review(q, response);
    else
        read_access_review(q, response);
}

static void question_send(struct question *q)
{
    struct kube_request r = {.verb = VERB_CREATE, .kind = q->review, .body = q->body};
    q->inquiry = inquiry_send(q->access->client, &r, REVIEW_TIMEOUT_MS, on_review, q);
}

static struct question *question_new(struct access *a, const char *key, const char *token, const char *ns,
                                     bool doubtful)
{
    struct arena arena = ARENA_INIT;
    struct question *q = xcalloc(1, sizeof *q);
    q->access = a;
    q->doubtful = doubtful;
    memcpy(q->key, key, sizeof q->key);
    memcpy(q->ns, ns, strlen(ns));
    list_init(&q->link);
    list_init(&q->waiters);
    q->expires_ms = jwt_expires_ms(token);
    q->review = KIND_TOKEN_REVIEW;
    q->body = xstrdup(review_token(token, a->audience, &arena));
    arena_done(&arena);
    map_set(&a->questions, q->key, q);
    if (doubtful) {
        a->n_doubtful++;
        list_append(&a->line, &q->link);
        line_move(a);
    } else {
        question_send(q);
    }
    return q;
}

// Removes the oldest answer to make room. If there is no answer, all questions are still open.
static bool make_room(struct access *a, bool doubtful)
{
    if (doubtful && a->n_doubtful >= MAX(a->options.max_questions / 2, (size_t)1))
        return false;
    if (a->questions.used < a->options.max_questions)
        return true;
    if (list_empty(&a->answered))
        return false;
    question_forget(CONTAINER_OF(a->answered.next, struct question, link));
    return true;
}

static uint64_t waiter_add(struct question *q, authority_done_fn done, void *ctx)
{
    struct access *a = q->access;
    struct waiter *w = xcalloc(1, sizeof *w);
    w->question = q;
    w->id = ++a->last_id;
    w->done = done;
    w->ctx = ctx;
    list_append(&q->waiters, &w->link);
    list_append(&a->waiters, &w->all);
    a->n_waiters++;
    return w->id;
}

static uint64_t refuse(authority_done_fn done, void *ctx, const struct err *err)
{
    done(ctx, NULL, 0, err);
    return 0;
}

static bool token_possible(const char *token)
{
    size_t n = strnlen(token, JWT_LEN_MAX + 1);
    return n > 0 && n <= JWT_LEN_MAX;
}

// Answers without the API server, if possible.
static int check(const struct access *a, const char *token, bool *ret_doubtful, struct err *err)
{
    struct err why = ERR_INIT;
    int r = a->options.check ? a->options.check(a->options.ctx, token, &why) : ERR_NOT_FOUND;
    *ret_doubtful = r == ERR_NOT_FOUND;
    if (r == ERR_UNAUTHORIZED)
        return err_set(err, r, "%.600s: make one with `kubectl create token NAME --audience=%s`", why.msg, a->audience);
    return 0;
}

uint64_t access_ask(struct access *a, const char *token, const char *ns, authority_done_fn done, void *ctx)
{
    struct err err = ERR_INIT;
    bool doubtful = false;
    char key[2 * HASH_SIZE + 1];
    if (!token_possible(token)) {
        err_set(&err, ERR_UNAUTHORIZED,
                "a token can have 1 to %d bytes: make one with `kubectl create token NAME "
                "--audience=%s`",
                JWT_LEN_MAX, a->audience);
        return refuse(done, ctx, &err);
    }
    if (strnlen(ns, NAMESPACE_MAX + 1) > NAMESPACE_MAX || !*ns) {
        err_set(&err, ERR_FORBIDDEN, "\"%.64s\" cannot be a namespace", ns);
        return refuse(done, ctx, &err);
    }
    make_key(token, ns, key);
    struct question *q = map_get(&a->questions, key);
    if (q && !q->body && question_fresh(q)) {
        done(ctx, &(struct client_user){q->user, q->subject, q->code}, q->expires_ms, &q->err);
        return 0;
    }
    if (q && !q->body) {
        question_forget(q);
        q = NULL;
    }
    if (!q && check(a, token, &doubtful, &err) < 0)
        return refuse(done, ctx, &err);
    if (a->n_waiters >= a->options.max_waiters || (!q && !make_room(a, doubtful))) {
        err_set(&err, ERR_THROTTLED, "too many sessions are being authenticated: try again");
        return refuse(done, ctx, &err);
    }
    return waiter_add(q ? q : question_new(a, key, token, ns, doubtful), done, ctx);
}

void access_cancel(struct access *a, uint64_t id)
{
    LIST_FOREACH(l, &a->waiters) {
        struct waiter *w = CONTAINER_OF(l, struct waiter, all);
        struct question *q = w->question;
        if (w->id != id)
            continue;
        waiter_free(a, w);
        if (q->body && list_empty(&q->waiters)) // nobody waits any more
            question_forget(q);
        return;
    }
}

// --- life

struct access *access_new(struct loop *loop, struct kube_client *client, const struct access_options *options)
{
    struct access *a = xcalloc(1, sizeof *a);
    a->loop = loop;
    a->client = client;
    a->options = *options;
    a->audience = xstrdup(options->audience);
    if (!a->options.allowed_ms)
        a->options.allowed_ms = ALLOWED_MS;
    if (!a->options.denied_ms)
        a->options.denied_ms = DENIED_MS;
    if (!a->options.max_questions)
        a->options.max_questions = MAX_QUESTIONS;
    if (!a->options.max_doubtful)
        a->options.max_doubtful = MAX_DOUBTFUL;
    if (!a->options.max_waiters)
        a->options.max_waiters = MAX_WAITERS;
    list_init(&a->answered);
    list_init(&a->waiters);
    list_init(&a->line);
    return a;
}

void access_free(struct access *a)
{
    if (!a)
        return;
    while (!list_empty(&a->waiters))
        waiter_free(a, CONTAINER_OF(a->waiters.next, struct waiter, all));
    const char *key;
    void *q;
    a->options.max_doubtful = 0; // no question leaves the line any more
    for (size_t i = 0; map_next(&a->questions, &i, &key, &q); i = 0)
        question_forget(q);
    map_done(&a->questions);
    free(a->audience);
    free(a);
}
