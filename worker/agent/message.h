// SPDX-License-Identifier: Apache-2.0
// Messages of an agent: records of cadre.v1 with their JSON bodies (docs/protocol.md, "Agents").
#pragma once

#include "common/base/json_writer.h"
#include "common/wire/record.h"
#include "worker/agent/agent.h"

struct probe;
struct pod_archives;

// Each function starts `w`, and writes one JSON document into it. The caller ends it with writer_done().

// Writes what the agent knows about its groups, archives and GPUs. `gpus` may be NULL.
void message_hello(const struct agent *a, const struct probe *gpus, struct json_writer *w);
// NULL: there is nothing new about the GPUs, or the archives.
void message_heartbeat(const struct probe *gpus, const struct pod_archives *archives, struct json_writer *w);
enum record_type message_report(const struct agent_report *r, struct json_writer *w);
// c: NULL if the command could not be read.
void message_refused(enum record_type command, const struct command *c, const struct err *err, struct json_writer *w);

// The interval in a WELCOME, kept within bounds. Returns the default if WELCOME has none.
int64_t message_heartbeat_ms(const char *welcome, size_t len);
