// SPDX-License-Identifier: Apache-2.0
// A multi handle of libcurl (a set of connections with their transfers), which the loop drives. Only http.c uses it.
#pragma once

#include "common/base/loop.h"

#include <curl/curl.h>

struct http_pool {
    struct loop *loop;
    CURLM *multi;
    struct loop_timer *timer;
    int active;   // transfers
    bool in_curl; // libcurl is running a callback: do not call functions of this file
    // A transfer has ended. The callback removes it. It runs from the loop, outside of libcurl.
    void (*done)(struct http_pool *p, CURL *easy, CURLcode code);
    // libcurl cannot continue with this handle. The callback removes all transfers, then calls http_pool_drop().
    void (*broken)(struct http_pool *p);
    void *ctx;
};

void http_pool_init(struct http_pool *p, struct loop *loop);
void http_pool_done(struct http_pool *p); // remove all transfers before
void http_pool_drop(struct http_pool *p); // closes the connections and starts again; remove all transfers before
void http_pool_add(struct http_pool *p, CURL *easy);
void http_pool_remove(struct http_pool *p, CURL *easy);
