// SPDX-License-Identifier: Apache-2.0
// Logs: one JSON object per line on stderr (or logfmt-like text for people). Only main, the controllers and the edges
// log; libraries return errors. Never pass a secret.
//   log_info("placed", "ns", ns, "name", name, "node", node, NULL);
#pragma once

#include <stdbool.h>

enum log_level { LOG_DEBUG, LOG_INFO, LOG_WARN, LOG_ERROR };
enum log_format { LOG_JSON, LOG_TEXT };

void log_setup(enum log_level level, enum log_format format);
bool log_level_parse(const char *s, enum log_level *ret);
bool log_enabled(enum log_level level);

// Pairs of `const char *` key and value, ended by NULL; a NULL value drops its pair.
void log_write(enum log_level level, const char *msg, ...) __attribute__((sentinel));

#define log_debug(...) log_write(LOG_DEBUG, __VA_ARGS__)
#define log_info(...) log_write(LOG_INFO, __VA_ARGS__)
#define log_warn(...) log_write(LOG_WARN, __VA_ARGS__)
#define log_error(...) log_write(LOG_ERROR, __VA_ARGS__)

// Formats a number for log_write; the returned text lives until the 8th call after this one.
const char *log_i64(long long v);
