// SPDX-License-Identifier: Apache-2.0
// A multi handle of libcurl (a set of connections with their transfers), driven by the loop. Private to operator/kube:
// only http.c uses it.
#pragma once

#include "common/base/loop.h"

#include <curl/curl.h>

struct http_pool {
    struct loop *loop;
    CURLM *multi;
    struct loop_timer *timer;
    int active;   // transfers
    bool in_curl; // libcurl is calling back: nothing here may be called
    // A transfer has ended; it is to be removed. From the loop, outside of libcurl.
    void (*done)(struct http_pool *p, CURL *easy, CURLcode code);
    // libcurl cannot go on with this handle: remove all transfers, then http_pool_drop().
    void (*broken)(struct http_pool *p);
    void *ctx;
};

void http_pool_init(struct http_pool *p, struct loop *loop);
void http_pool_done(struct http_pool *p); // no transfer may be left
void http_pool_drop(struct http_pool *p); // closes the connections and starts again; no transfer may be left
void http_pool_add(struct http_pool *p, CURL *easy);
void http_pool_remove(struct http_pool *p, CURL *easy);
