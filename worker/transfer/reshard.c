// SPDX-License-Identifier: Apache-2.0
#include "worker/transfer/reshard.h"

#include "common/base/le.h"
#include "common/base/mem.h"
#include "common/base/str.h"
#include "common/transfer/transfer_plan.h"
#include "worker/transfer/routes.h"
#include "worker/transfer/transfer_fault.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { HEAR_SLICES = 5, HELLO_HEAD = 8 + WINDOW_PLACE_SIZE };

struct resharding {
    const struct reshard_config *c;
    struct arena *arena;
    struct participant participant;
    bool know_each_other; // they use the connections of an earlier transfer
    struct buf hello;     // the HELLO of this member, with its side
    struct window *window;
    struct window_place here;
    struct window_place *places; // of all members
    struct transfer_side sides[2];
    struct transfer_plan plan;
    struct blocks ends; // the blocks that this rank sends, or the rooms for what it receives
    struct nccl_join nccl;
    struct mover *mover;
};

static uint32_t rank_of(const struct resharding *r)
{
    const struct participant_config *p = &r->c->participant;
    return (uint32_t)(p->index < p->n_receivers ? p->index : p->index - p->n_receivers);
}

static bool is_open(const struct resharding *r)
{
    return r->participant.decided == COMMIT_OPEN;
}

// Stops a rendezvous.
static bool is_over(void *ctx)
{
    struct resharding *r = ctx;
    participant_attend(&r->participant, NULL, 0, 0);
    return !is_open(r);
}

static void fail(struct resharding *r, const struct err *err)
{
    participant_fail(&r->participant, err);
}

// This rank cannot continue, and the center decides. Until then, this rank keeps its memory and its connections:
// without them, the others would think that this rank was lost. What failed here may follow from another failure, which
// the message of the center names. A dying process loses its memory before its connection to the center.
static void await_decision(struct resharding *r, const struct err *err)
{
    for (int i = 0; i < HEAR_SLICES && is_open(r); i++)
        participant_attend(&r->participant, NULL, 0, PARTICIPANT_SLICE_MS);
    if (is_open(r))
        participant_report(&r->participant, err);
    while (is_open(r))
        participant_attend(&r->participant, NULL, 0, PARTICIPANT_SLICE_MS);
}

// Meeting at the center

static int meet(struct resharding *r, struct err *err)
{
    const struct participant_config *p = &r->c->participant;
    const struct reshard_ways *ways = &r->c->ways;
    struct dialog *dialog = &r->participant.dialog;
    int known = r->c->known_by ? idle_connections_use(r->c->idle, r->c->known_by, &r->participant, err) : 0;
    r->know_each_other = known > 0;
    if (known > 0)
        dialog_again(dialog, r->c->id);
    if (known)
        return MIN(known, 0);
    idle_connections_drop(r->c->idle);
    const struct reshard_rendezvous m = {r->c->id, dialog->n, p->limit_ms, NULL, NULL};
    int code = p->index ? ways->join(ways->ctx, &m, 0, p->index, &dialog->links[0], err)
                        : ways->host(ways->ctx, &m, dialog->links, err);
    if (code < 0)
        return code;
    for (int i = 1; i < dialog->n && p->index == 0; i++)
        if (dialog->links[i] < 0) {
            err_set(err, ERR_TIMEOUT, "%s did not arrive within %lld ms", p->names[i], (long long)p->limit_ms);
            fail(r, err);
            return err->code;
        }
    return 0;
}

static int say_hello(struct resharding *r, struct err *err)
{
    const struct participant_config *p = &r->c->participant;
    struct buf *text = &r->hello;
    char head[HELLO_HEAD] = {0};
    buf_append(text, head, sizeof head);
    int code = transfer_side_write(&r->c->side, text, err);
    if (code < 0)
        return code;
    le_put_u64(text->data, str_hash(text->data + HELLO_HEAD, text->len - HELLO_HEAD));
    window_place_write(&r->here, text->data + 8);
    nccl_join_say_gpu(&r->nccl, &r->participant, &r->c->blocks);
    if (p->index) {
        dialog_say(&r->participant.dialog, 0, DIALOG_HELLO, text->data, rank_of(r) ? HELLO_HEAD : text->len);
    } else {
        r->participant.members[0].hello_len = text->len;
        r->participant.members[0].hello = buf_take(text);
        r->participant.n_hello++;
    }
    return 0;
}

static const struct participant_member *first_of(const struct resharding *r, bool receivers)
{
    return &r->participant.members[receivers ? 0 : r->c->participant.n_receivers];
}

// All ranks of a group must describe the same weights.
static int check_hellos(const struct resharding *r, struct err *err)
{
    const struct participant_config *p = &r->c->participant;
    for (int i = 0; i < r->participant.dialog.n; i++) {
        const struct participant_member *m = &r->participant.members[i], *first = first_of(r, i < p->n_receivers);
        if (m->hello_len < HELLO_HEAD)
            return err_set(err, ERR_PROTO, "%s says nothing about its weights", p->names[i]);
        if (memcmp(m->hello, first->hello, 8) != 0)
            return err_set(
                err, ERR_INVALID,
                "%s says other weights than rank 0: all ranks of a group need the same names, dtypes, shapes "
                "and meshes",
                p->names[i]);
    }
    return 0;
}

static void spread(struct resharding *r)
{
    struct participant *p = &r->participant;
    struct buf all = BUF_INIT((size_t)3 * TRANSFER_SIDE_MAX);
    char len[4];
    for (int receivers = 0; receivers < 2; receivers++) {
        const struct participant_member *s = first_of(r, receivers);
        le_put_u32(len, (uint32_t)(s->hello_len - HELLO_HEAD));
        buf_append(&all, len, sizeof len);
        buf_append(&all, s->hello + HELLO_HEAD, s->hello_len - HELLO_HEAD);
    }
    for (int i = 0; i < p->dialog.n; i++)
        buf_append(&all, p->members[i].hello + 8, WINDOW_PLACE_SIZE);
    for (int i = 1; i < p->dialog.n; i++)
        dialog_say(&p->dialog, i, DIALOG_ALL, all.data, all.len);
    p->all_len = all.len;
    p->all = buf_take(&all);
}

// A plan for other weights would move bytes outside of the blocks of this rank. The center has compared the hashes, so
// the sides differ only if a rank lies.
static int check_own_side(const struct resharding *r, bool receivers, const char *side, size_t len, struct err *err)
{
    const struct participant_config *p = &r->c->participant;
    if (p->index == 0 || receivers != participant_is_receiver(&r->participant) ||
        (len == r->hello.len - HELLO_HEAD && memcmp(side, r->hello.data + HELLO_HEAD, len) == 0))
        return 0;
    return err_set(err, ERR_PROTO, "%s or rank 0 of %s describes its weights differently from this rank", p->names[0],
                   r->c->groups[receivers]);
}

static int read_all(struct resharding *r, struct err *err)
{
    const char *at = r->participant.all;
    size_t left = r->participant.all_len, n = (size_t)r->participant.dialog.n;
    for (int receivers = 0; receivers < 2; receivers++) {
        uint32_t len = left >= 4 ? le_get_u32(at) : 0;
        if (left < 4 || len > left - 4)
            return err_set(err, ERR_PROTO, "the first rank of the receivers says nonsense");
        int code = check_own_side(r, receivers, at + 4, len, err);
        if (code == 0)
            code = transfer_side_read(at + 4, len, r->c->groups[receivers], r->arena, &r->sides[receivers], err);
        if (code < 0)
            return code;
        at += 4 + len;
        left -= 4 + len;
    }
    if (left != n * WINDOW_PLACE_SIZE)
        return err_set(err, ERR_PROTO, "the first rank of the receivers says nonsense");
    r->places = arena_array(r->arena, n, sizeof *r->places);
    for (size_t i = 0; i < n; i++)
        window_place_read(at + i * WINDOW_PLACE_SIZE, &r->places[i]);
    r->sides[1].places = window_places(r->places, n, r->arena);
    r->sides[0].places = r->sides[1].places + r->c->participant.n_receivers;
    return 0;
}

// After that, each member knows both sides and all places.
static int introduce(struct resharding *r, struct err *err)
{
    struct participant *p = &r->participant;
    int code = say_hello(r, err);
    while (code == 0 && is_open(r) && (participant_is_center(p) ? p->n_hello < p->dialog.n : !p->all))
        participant_attend(p, NULL, 0, PARTICIPANT_SLICE_MS);
    if (code == 0 && participant_is_center(p) && is_open(r) && (code = check_hellos(r, err)) == 0)
        spread(r);
    return code == 0 && p->all ? read_all(r, err) : code;
}

static int check_worlds(const struct resharding *r, struct err *err)
{
    for (int receivers = 0; receivers < 2; receivers++) {
        uint32_t has = transfer_side_world(&r->sides[receivers]);
        uint32_t ought = (uint32_t)(receivers ? r->c->participant.n_receivers : r->c->participant.n_senders);
        if (has != ought)
            return err_set(err, ERR_INVALID, "the mesh of %s has %u ranks, and the group has %u",
                           r->c->groups[receivers], has, ought);
    }
    return 0;
}

// Returns 1 if the tensors do not match. Each member finds that out by itself.
static int make_plan(struct resharding *r, struct reshard_result *ret, struct err *err)
{
    int code = check_worlds(r, err);
    if (code == 0)
        code = transfer_plan(&r->sides[0], &r->sides[1], r->c->piece_max, r->arena, &r->plan, err);
    if (code == ERR_INVALID && r->plan.n_mismatches) {
        ret->problems = r->plan.mismatches;
        ret->n_problems = r->plan.n_mismatches;
        return 1;
    }
    return code;
}

// Connections

// A sender that stood still may continue and write at any time. From then on, this receiver reads by itself.
static bool was_abandoned(const struct resharding *r)
{
    return participant_is_receiver(&r->participant) && back_buffer_was_abandoned(r->c->back_buffer);
}

static int make_mover(struct resharding *r, struct err *err)
{
    const struct participant_config *p = &r->c->participant;
    bool receives = participant_is_receiver(&r->participant);
    if (receives && back_buffer_lay(r->c->back_buffer, &r->c->blocks, err) < 0)
        return err->code;
    if (receives) {
        struct block *rooms = arena_array(r->arena, r->ends.n, sizeof *rooms);
        for (size_t i = 0; i < r->ends.n; i++) {
            rooms[i] = r->c->blocks.list[i];
            rooms[i].data = back_buffer_at(r->c->back_buffer, i);
        }
        r->ends.list = rooms;
    }
    r->mover = mover_new(&(struct mover_config){.from = &r->sides[0],
                                                .to = &r->sides[1],
                                                .plan = &r->plan,
                                                .rank = rank_of(r),
                                                .sends = !receives,
                                                .shows = r->c->direct && !was_abandoned(r),
                                                .blocks = &r->ends,
                                                .places = r->places + p->n_receivers,
                                                .here = &r->here,
                                                .names = p->names,
                                                .progress = r->c->progress,
                                                .sizes = r->c->sizes});
    return 0;
}

// Prefers a sender on another machine than the center, so that both are not lost together.
static int choose_witness(const struct resharding *r)
{
    const struct participant_config *p = &r->c->participant;
    for (int i = p->n_receivers; i < r->participant.dialog.n; i++)
        if (memcmp(r->places[i].host, r->places[0].host, WINDOW_HOST_SIZE) != 0)
            return i;
    return p->n_receivers;
}

static struct reshard_rendezvous rendezvous(struct resharding *r, int number, int n)
{
    return (struct reshard_rendezvous){r->c->id + 1 + (uint64_t)number, n, participant_left_ms(&r->participant),
                                       is_over, r};
}

// A sender or a relay waits for these receivers, in the order of their ranks.
static int receive_joiners(struct resharding *r, int number, const int *who, int n, struct err *err)
{
    const struct reshard_ways *ways = &r->c->ways;
    const struct reshard_rendezvous m = rendezvous(r, number, n + 1);
    _cleanup_(free_p) int *links = xcalloc((size_t)n + 1, sizeof *links);
    int code = n ? ways->host(ways->ctx, &m, links, err) : 0;
    for (int i = 0; code == 0 && i < n; i++) {
        if (links[i + 1] >= 0)
            (void)mover_connect_to(r->mover, (uint32_t)who[i], links[i + 1], err);
        else
            err_set(err, ERR_TIMEOUT, "%s did not come", r->c->participant.names[who[i]]);
    }
    return err->code;
}

static int receive_receivers(struct resharding *r, struct err *err)
{
    int receivers = r->c->participant.n_receivers, own = (int)rank_of(r), n = 0;
    _cleanup_(free_p) int *who = xcalloc((size_t)receivers, sizeof *who);
    for (int i = 0; i < receivers; i++)
        if (routes_way(&r->participant, i, own) == MOVER_CONNECTS)
            who[n++] = i;
    return receive_joiners(r, 1 + own, who, n, err);
}

// If this sender cannot write, the receiver reads its memory instead.
static void write_to_receivers(struct resharding *r)
{
    const struct participant_config *p = &r->c->participant;
    for (int i = 0; i < p->n_receivers; i++) {
        struct err ignored = ERR_INIT;
        struct window_place place;
        if (routes_way(&r->participant, i, (int)rank_of(r)) != MOVER_IS_WRITTEN)
            continue;
        routes_place(&r->participant, i, &place);
        if (!window_place_is_same(&place, &r->places[i]) || mover_write_to(r->mover, (uint32_t)i, &place, &ignored) < 0)
            participant_wrote(&r->participant, i, MOVER_CANNOT_WRITE);
    }
}

static int join_senders(struct resharding *r, struct err *err)
{
    const struct participant_config *p = &r->c->participant;
    for (int s = 0; s < p->n_senders; s++) {
        int before, link = -1, n = routes_connected(&r->participant, s, p->index, &before);
        if (routes_way(&r->participant, p->index, s) != MOVER_CONNECTS)
            continue;
        const struct reshard_rendezvous m = rendezvous(r, 1 + s, n + 1);
        int code = r->c->ways.join(r->c->ways.ctx, &m, p->n_receivers + s, before + 1, &link, err);
        if (code < 0)
            return code;
        mover_connect_from(r->mover, (uint32_t)s, link);
    }
    return 0;
}

static void use_nccl(struct resharding *r)
{
    const struct participant_config *p = &r->c->participant;
    int own = (int)rank_of(r);
    for (int i = 0; i < p->n_senders && participant_is_receiver(&r->participant); i++)
        if (routes_way(&r->participant, own, i) == MOVER_USES_NCCL)
            mover_use_nccl_from(r->mover, r->nccl.flow, (uint32_t)i, nccl_join_rank(&r->nccl, p->n_receivers + i));
    for (int i = 0; i < p->n_receivers && !participant_is_receiver(&r->participant); i++)
        if (routes_way(&r->participant, i, own) == MOVER_USES_NCCL)
            mover_use_nccl_to(r->mover, r->nccl.flow, (uint32_t)i, nccl_join_rank(&r->nccl, i));
}

static int meet_relay(struct resharding *r, int k, const int *takers, int n, struct err *err)
{
    const struct participant_config *p = &r->c->participant;
    int number = 1 + p->n_senders + k, link = -1, code = 0;
    if (k == p->index)
        return receive_joiners(r, number, takers, n, err);
    for (int i = 0; code == 0 && i < n; i++) {
        const struct reshard_rendezvous m = rendezvous(r, number, n + 1);
        if (takers[i] == p->index && (code = r->c->ways.join(r->c->ways.ctx, &m, k, i + 1, &link, err)) == 0)
            mover_connect_from(r->mover, (uint32_t)(p->n_senders + k), link);
    }
    return code;
}

// All receivers visit the relays in the same order, so that no two receivers wait for each other.
static int meet_relays(struct resharding *r, struct err *err)
{
    const struct transfer_piece *end = r->plan.pieces + r->plan.n, *p;
    uint32_t senders = (uint32_t)r->c->participant.n_senders;
    _cleanup_(free_p) int *takers = xcalloc((size_t)r->c->participant.n_receivers, sizeof *takers);
    int code = 0;
    size_t none;
    p = transfer_plan_sends(&r->plan, senders, 0, &none); // behind the pieces of all senders
    while (code == 0 && is_open(r) && p < end) {
        uint32_t relay = p->from;
        int n = 0;
        for (; p < end && p->from == relay; p++)
            if (!n || takers[n - 1] != (int)p->to)
                takers[n++] = (int)p->to;
        code = meet_relay(r, (int)(relay - senders), takers, n, err);
    }
    return code;
}

// The witness has a connection to each receiver but the center.
static int meet_witness(struct resharding *r, struct err *err)
{
    const struct participant_config *p = &r->c->participant;
    const struct reshard_ways *ways = &r->c->ways;
    struct dialog *dialog = &r->participant.dialog;
    int witness = routes_witness(&r->participant), code = 0;
    if (p->n_receivers == 1 || witness < p->n_receivers || witness >= dialog->n)
        return 0;
    if (r->know_each_other) { // the same processes have the same witness as in the last transfer
        participant_witness(&r->participant, witness);
        return 0;
    }
    const struct reshard_rendezvous m = rendezvous(r, 0, p->n_receivers);
    if (p->index == witness) {
        _cleanup_(free_p) int *links = xcalloc((size_t)p->n_receivers, sizeof *links);
        code = ways->host(ways->ctx, &m, links, err);
        for (int i = 1; code == 0 && i < p->n_receivers; i++)
            dialog->links[i] = links[i];
    } else if (p->index && p->index < p->n_receivers) {
        code = ways->join(ways->ctx, &m, witness, p->index, &dialog->links[witness], err);
    }
    if (code == 0)
        participant_witness(&r->participant, witness);
    return code;
}

static int connect_all(struct resharding *r, struct err *err)
{
    int code = routes_agree(&r->participant, r->mover, &r->nccl, choose_witness(r), err);
    if (code == 0 && is_open(r) && r->nccl.flow)
        use_nccl(r);
    if (code == 0 && is_open(r))
        code = meet_witness(r, err);
    if (code == 0 && is_open(r))
        code = participant_is_receiver(&r->participant) ? join_senders(r, err) : receive_receivers(r, err);
    if (code == 0 && is_open(r) && participant_is_receiver(&r->participant))
        code = meet_relays(r, err);
    if (code == 0 && is_open(r) && !participant_is_receiver(&r->participant))
        write_to_receivers(r);
    return code;
}

// Moving

static void attend_moving(struct resharding *r, bool idle)
{
    struct pollfd *polled = NULL;
    size_t n = 0;
    int wait_ms = idle ? PARTICIPANT_SLICE_MS : mover_waits(r->mover, &polled, &n);
    participant_attend(&r->participant, polled, n, wait_ms);
    if (r->nccl.flow)
        participant_here(&r->participant);
}

// A receiver with all of its weights stays, because others may get some of them from it.
static int be_ready(struct resharding *r, struct err *err)
{
    int code = mover_end(r->mover, err);
    if (code < 0)
        return code;
    transfer_fault_at(TRANSFER_FAULT_MOVED);
    participant_ready(&r->participant);
    transfer_fault_at(TRANSFER_FAULT_READY);
    return 0;
}

static void hear_of_writes(struct resharding *r)
{
    for (int i = 0; i < r->c->participant.n_senders; i++)
        mover_written(r->mover, (uint32_t)i, r->participant.wrote[i]);
}

static void tell_of_writes(struct resharding *r)
{
    uint32_t receiver;
    uint64_t bytes;
    while (mover_wrote(r->mover, &receiver, &bytes))
        participant_wrote(&r->participant, (int)receiver, bytes);
}

static void receive(struct resharding *r)
{
    struct err err = ERR_INIT;
    int moved = 0;
    bool ready = false;
    transfer_fault_at(TRANSFER_FAULT_BEGUN);
    while (is_open(r)) {
        attend_moving(r, false);
        hear_of_writes(r);
        if (is_open(r))
            moved = mover_step(r->mover, &err);
        participant_waits_for(&r->participant, mover_waits_for(r->mover));
        transfer_fault_at(TRANSFER_FAULT_MOVING);
        if (moved > 0 && !ready && is_open(r)) {
            moved = be_ready(r, &err);
            ready = true;
        }
        if (moved < 0)
            await_decision(r, &err);
    }
}

// The witness may hear the decision while it still waits for receivers to connect. They may ask it all the same.
static bool has_part(const struct resharding *r)
{
    bool is_witness = r->participant.witness == r->c->participant.index;
    return is_open(r) || (is_witness && r->participant.decided == COMMIT_TAKE);
}

// A sender stays until the decision. The witness stays until no receiver can ask it any more.
static bool is_needed(const struct resharding *r)
{
    return is_open(r) || (participant_may_be_asked(&r->participant) && participant_is_patient(&r->participant));
}

static void serve(struct resharding *r)
{
    struct err err = ERR_INIT;
    int moved = 0;
    transfer_fault_at(TRANSFER_FAULT_BEGUN);
    while (is_needed(r)) {
        attend_moving(r, moved != 0 || !is_open(r));
        if (is_open(r) && moved == 0)
            moved = mover_step(r->mover, &err);
        if (moved < 0)
            await_decision(r, &err);
        else
            tell_of_writes(r);
        transfer_fault_at(TRANSFER_FAULT_MOVING);
        if (r->participant.decided == COMMIT_KEEP)
            nccl_join_done(&r->nccl, false);
        if (!is_open(r)) // no receiver reads any more, and some may wait until this sender cannot write
            window_end(TAKE_PTR(r->window));
    }
}

static int move(struct resharding *r, struct reshard_result *ret, struct err *err)
{
    int code = 0;
    if (!participant_is_receiver(&r->participant)) {
        serve(r);
        return 0;
    }
    receive(r);
    transfer_fault_at(TRANSFER_FAULT_DECIDED);
    if (r->participant.decided == COMMIT_TAKE) {
        participant_over(&r->participant);
        code = back_buffer_swap(r->c->back_buffer, &r->c->blocks, &ret->copied, err);
    }
    transfer_fault_at(TRANSFER_FAULT_TAKEN);
    ret->bytes = mover_bytes(r->mover);
    return code < 0 ? err_wrap(err, "the new weights were decided for, and cannot be written") : 0;
}

static int prepare(struct resharding *r, struct reshard_result *ret, struct err *err)
{
    int code = meet(r, err);
    if (code < 0)
        return code;
    transfer_fault_at(TRANSFER_FAULT_MET);
    code = introduce(r, err);
    if (code == 0 && r->participant.all) // also after the center has left because the tensors do not match
        code = make_plan(r, ret, err);
    if (code == 0 && is_open(r))
        code = make_mover(r, err);
    if (code == 0 && is_open(r) && (code = connect_all(r, err)) < 0)
        await_decision(r, err);
    if (code < 0 && !is_open(r)) { // the rendezvous has only stopped because of the decision
        *err = ERR_INIT;
        return 0;
    }
    if (code < 0)
        fail(r, err);
    return code;
}

// Work of the program on its GPU must be done before other ranks read the weights.
static int settle(const struct reshard_config *c, struct err *err)
{
    const struct gpu_copier *gpu = c->blocks.gpu;
    int code = gpu ? copier_join(gpu->copier, c->stream, err) : 0;
    return code < 0 ? code : blocks_settle(&c->blocks, err);
}

static void init_nccl(struct resharding *r)
{
    const struct mover_sizes *sizes = r->c->sizes ? r->c->sizes : &mover_sizes;
    const struct nccl_join_config config = {.link = r->c->nccl,
                                            .blocks = &r->ends,
                                            .round = sizes->round,
                                            .packed = sizes->packed,
                                            .number = r->c->id,
                                            .limit_ms = r->c->nccl_limit_ms};
    nccl_join_init(&r->nccl, &config);
}

static void end_nccl(struct resharding *r, struct reshard_result *ret)
{
    ret->refusal = r->nccl.refusal ? arena_strdup(r->arena, r->nccl.refusal) : NULL;
    nccl_join_done(&r->nccl, r->participant.decided == COMMIT_TAKE);
}

int reshard(const struct reshard_config *config, struct arena *a, struct reshard_result *ret, struct err *err)
{
    struct resharding r = {.c = config,
                           .arena = a,
                           .here = config->place,
                           .hello = BUF_INIT(HELLO_HEAD + TRANSFER_SIDE_MAX),
                           .ends = config->blocks};
    *ret = (struct reshard_result){.copied = 0};
    participant_init(&r.participant, &config->participant); // its time begins now
    if (settle(config, err) < 0) {
        participant_done(&r.participant);
        return err->code;
    }
    bool receives = participant_is_receiver(&r.participant);
    init_nccl(&r);
    if (config->direct && !receives)
        window_show(r.window = window_new(&config->blocks), &r.here);
    int code = prepare(&r, ret, err);
    if (code == 0 && has_part(&r))
        code = move(&r, ret, err);
    window_end(r.window); // before this rank changes its weights
    end_nccl(&r, ret);
    bool left = !r.mover || mover_leave(r.mover);
    mover_free(r.mover);
    if (receives)
        back_buffer_rest(config->back_buffer, &config->blocks);
    if (!left)
        back_buffer_abandon(config->back_buffer);
    if (code == 0)
        code = participant_outcome(&r.participant, err);
    else if (code < 0 && r.participant.code) // the reason that all members have heard
        code = err_set(err, r.participant.code, "%s", r.participant.reason);
    if (code == 0)
        idle_connections_keep(config->idle, config->id, &r.participant);
    participant_done(&r.participant);
    buf_done(&r.hello);
    return code > 0 ? 0 : code;
}
