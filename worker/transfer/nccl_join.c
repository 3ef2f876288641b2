// SPDX-License-Identifier: Apache-2.0
#include "worker/transfer/nccl_join.h"

#include "common/base/clock.h"
#include "common/base/le.h"
#include "common/base/mem.h"
#include "common/base/str.h"
#include "worker/transfer/transfer_fault.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { FORMAT = 2, FACT_SIZE = 8 + DEVICE_UUID_SIZE + 24 };
enum { RUNS = 4096, TICK_MS = 1, ALIGNED = 512, LEAVE_MS = 1000, LEAVE_LOOK_US = 200 };

void nccl_join_init(struct nccl_join *j, const struct nccl_join_config *config)
{
    *j = (struct nccl_join){.config = *config};
}

// The last kernel of a sender may end a moment after the receiver has all its bytes.
static bool settles(struct nccl_flow *f)
{
    int64_t until = clock_mono_ms(&clock_system) + LEAVE_MS;
    struct err ignored = ERR_INIT;
    int r;
    while ((r = nccl_flow_step(f, &ignored)) == 0 && clock_mono_ms(&clock_system) < until)
        usleep(LEAVE_LOOK_US);
    return r > 0;
}

static void drop(struct nccl_join *j)
{
    nccl_link_drop(j->config.link, j->config.blocks);
    nccl_flow_free(TAKE_PTR(j->flow));
}

void nccl_join_done(struct nccl_join *j, bool keeps)
{
    if (j->joins || (j->flow && !(keeps && settles(j->flow))))
        drop(j);
    nccl_flow_free(TAKE_PTR(j->flow));
    free(TAKE_PTR(j->join.ranks));
    free(TAKE_PTR(j->refusal));
    j->joins = false;
}

// Facts

static void write_fact(const struct nccl_fact *f, char out[FACT_SIZE])
{
    le_put_u32(out, FORMAT);
    le_put_u32(out + 4, f->version);
    memcpy(out + 8, f->gpu, DEVICE_UUID_SIZE);
    out += 8 + DEVICE_UUID_SIZE;
    le_put_u64(out, f->number);
    le_put_u32(out + 8, f->rank);
    le_put_u32(out + 12, f->n);
    le_put_u64(out + 16, f->process);
}

static void read_fact(const struct participant_member *m, struct nccl_fact *ret)
{
    const char *in = m->gpu;
    if (m->gpu_len != FACT_SIZE || le_get_u32(in) != FORMAT)
        return;
    ret->version = le_get_u32(in + 4);
    memcpy(ret->gpu, in + 8, DEVICE_UUID_SIZE);
    in += 8 + DEVICE_UUID_SIZE;
    ret->number = le_get_u64(in);
    ret->rank = le_get_u32(in + 8);
    ret->n = le_get_u32(in + 12);
    ret->process = le_get_u64(in + 16);
}

void nccl_join_say_gpu(struct nccl_join *j, struct participant *p, const struct blocks *own)
{
    struct nccl_fact fact;
    if (!j->config.link || !nccl_link_fact(j->config.link, own, &fact))
        return;
    j->able = true;
    char *body = xmalloc(FACT_SIZE);
    write_fact(&fact, body);
    if (participant_is_center(p)) {
        p->n_gpu++;
        p->members[0].gpu_len = FACT_SIZE;
        p->members[0].gpu = body;
        return;
    }
    dialog_say(&p->dialog, 0, DIALOG_GPU, body, FACT_SIZE);
    free(body);
}

// The center asks

// The rank with the most pairs must be able to move that many bytes for each of them.
static uint64_t round_of_pair(const struct nccl_join *j, const struct nccl_question *q, const struct nccl_choice *c)
{
    int most = 1;
    for (int i = 0; i < q->n_receivers + q->n_senders; i++)
        most = MAX(most, nccl_choice_pairs(q, c, i));
    uint64_t round = MAX(j->config.round / (uint64_t)most, (uint64_t)1);
    return round > ALIGNED ? round / ALIGNED * ALIGNED : round;
}

static void ask_members(struct nccl_join *j, struct participant *p, const struct nccl_question *q,
                        const struct nccl_choice *c, const struct nccl_id *id)
{
    size_t len = join_message_len(p->dialog.n);
    struct join_message m = {.number = c->number ? c->number : j->config.number,
                             .n = c->size,
                             .sizes = {round_of_pair(j, q, c), j->config.packed, RUNS},
                             .id = *id,
                             .ranks = c->ranks};
    for (int i = 0; i < p->dialog.n; i++) {
        if (c->ranks[i] < 0)
            continue;
        char *text = xmalloc(len);
        m.pairs = (uint32_t)nccl_choice_pairs(q, c, i);
        join_message_write(&m, p->dialog.n, text);
        j->n_asked++;
        p->members[i].by_nccl = true;
        if (i) {
            dialog_say(&p->dialog, i, DIALOG_JOIN, text, len);
            free(text);
        } else {
            p->join = text;
            p->join_len = len;
        }
    }
}

// A rank that has started again is another process.
static uint64_t hash_processes(const struct nccl_fact *facts, const int *ranks, int n)
{
    uint64_t hash = 0;
    for (int i = 0; i < n; i++) {
        const uint64_t one[] = {hash, facts[i].process};
        hash = ranks[i] < 0 ? hash : str_hash((const char *)one, sizeof one);
    }
    return hash;
}

static char *name_versions(const struct participant *p, const struct nccl_question *q, const struct nccl_choice *c)
{
    char one[NCCL_VERSION_TEXT], other[NCCL_VERSION_TEXT];
    nccl_version_text((int)q->facts[c->from].version, one);
    nccl_version_text((int)q->facts[c->differs].version, other);
    return xasprintf("%s has %s, and %s has %s: they need the same version in their images", p->config.names[c->from],
                     one, p->config.names[c->differs], other);
}

bool nccl_join_ask(struct nccl_join *j, struct participant *p, const bool *connects)
{
    struct err err = ERR_INIT;
    struct nccl_id id = {""};
    struct nccl_choice choice;
    _cleanup_(free_p) struct nccl_fact *facts = xcalloc((size_t)p->dialog.n, sizeof *facts);
    const struct nccl_question q = {p->config.n_receivers, p->config.n_senders, facts, connects};
    for (int i = 0; i < p->dialog.n; i++)
        read_fact(&p->members[i], &facts[i]);
    _cleanup_(free_p) int *ranks = xcalloc((size_t)p->dialog.n, sizeof *ranks);
    nccl_choose(&q, ranks, &choice);
    if (choice.differs >= 0)
        j->refusal = name_versions(p, &q, &choice);
    j->processes = hash_processes(facts, ranks, p->dialog.n);
    if (!choice.n || nccl_refusal_holds(&j->config.link->refusal, j->processes, clock_mono_ms(&clock_system)))
        return false;
    if (!choice.number && nccl_link_unique_id(&id, &err) < 0) {
        j->refusal = xstrdup(err.msg);
        return false;
    }
    ask_members(j, p, &q, &choice, &id);
    return true;
}

// Joining

static int begin(struct nccl_join *j, const struct participant *p, struct err *err)
{
    int own = p->config.index;
    struct join_message *m = &j->join;
    struct nccl_link *l = j->config.link;
    j->asked = j->joins = true;
    j->until_ms = clock_mono_ms(&clock_system) + MIN(j->config.limit_ms, MAX(participant_left_ms(p) / 3, (int64_t)1));
    m->ranks = xcalloc((size_t)p->dialog.n, sizeof *m->ranks);
    if (!join_message_read(m, p->join, p->join_len, p->dialog.n, own, j->config.round) ||
        (m->number == l->number && (m->ranks[own] != l->rank || m->n != l->n)))
        return err_set(err, ERR_PROTO, "the first rank of the receivers says nonsense");
    if (m->number == l->number)
        return 0;
    return nccl_link_begin(l, m->number, m->ranks[own], m->n, &m->id, err);
}

// Returns 1 if the member has joined, 0 if it has not yet.
static int go_on(struct nccl_join *j, const struct participant *p, struct err *err)
{
    int r = nccl_link_poll(j->config.link, "making a communicator", err);
    if (r == 0 && clock_mono_ms(&clock_system) > j->until_ms)
        return err_set(err, ERR_TIMEOUT, "nccl: making a communicator: it waited too long");
    if (r > 0)
        r = nccl_flow_new(j->config.link, j->config.blocks, !participant_is_receiver(p), j->join.pairs, &j->join.sizes,
                          &j->flow, err);
    return r < 0 ? r : j->flow != NULL;
}

void nccl_join_step(struct nccl_join *j, struct participant *p)
{
    struct err err = ERR_INIT;
    int r = 0;
    if (!p->join || !j->able || (j->asked && !j->joins))
        return;
    if (!j->asked)
        r = begin(j, p, &err);
    transfer_fault_at(TRANSFER_FAULT_JOINING);
    if (r == 0)
        r = go_on(j, p, &err);
    if (r == 0)
        return;
    j->joins = false;
    if (r < 0)
        drop(j);
    participant_joined(p, &err);
}

int nccl_join_wait_ms(const struct nccl_join *j)
{
    return j->joins ? TICK_MS : PARTICIPANT_SLICE_MS;
}

bool nccl_join_is_answered(const struct nccl_join *j, const struct participant *p)
{
    return p->not_joined || p->n_joined == j->n_asked;
}

bool nccl_join_allows(const struct nccl_join *j, const struct participant *p, int member, int other)
{
    return j->n_asked && !p->not_joined && p->members[member].by_nccl && p->members[other].by_nccl;
}

uint32_t nccl_join_pairs(const struct nccl_join *j)
{
    return j->flow ? j->join.pairs : 0;
}

int nccl_join_rank(const struct nccl_join *j, int member)
{
    return j->join.ranks[member];
}

void nccl_join_end(struct nccl_join *j, struct participant *p, bool uses)
{
    for (int i = 0; p->not_joined && i < p->dialog.n; i++)
        p->members[i].by_nccl = false;
    if (p->not_joined) {
        j->refusal = xstrdup(p->not_joined);
        nccl_refusal_add(&j->config.link->refusal, j->processes, clock_mono_ms(&clock_system));
    } else if (j->n_asked) {
        nccl_refusal_end(&j->config.link->refusal, j->processes);
    }
    if (uses || !j->asked)
        return;
    drop(j);
    j->joins = false;
}
