// SPDX-License-Identifier: Apache-2.0
// A proxy for tests of the client library, on a thread of its own because the library's functions may block. Its answer
// depends on the method:
//
//   echo      the arguments                    mute    nothing, until it is canceled
//   big       a string of as many bytes        fail    an error with all that an error may have
//   method    the name of the method           hang_up no answer, the connection ends
//   goodbye   null, behind a GOODBYE           forget  null, and then the session is not allowed any more
//   busy      THROTTLED three times of four    raise   an error of the method
//   later     an error: again in 15 s          hang_up_once  as hang_up the first time, then its name
#pragma once

#include "common/base/buf.h"
#include "common/base/list.h"
#include "common/base/loop.h"
#include "common/ws/ws_server.h"

#include <pthread.h>

struct sdk_proxy {
    char dir[64];
    char url[128];       // of the last start
    const char *welcome; // body; set before the start
    unsigned n_ignored;  // likewise: so many HELLOs get no WELCOME
    const char *listen;  // likewise: "127.0.0.2:0"; NULL = its Unix socket, with TLS 127.0.0.1
    // private
    unsigned n_busy, n_hung_up;
    struct loop *loop;
    struct ws_server *server;
    struct list peers;
    struct loop_wakeup *stop;
    pthread_t thread;
    bool runs;
    pthread_mutex_t lock;
    struct buf trace; // a line for each upgrade ("upgrade PATH AUTHORIZATION") and record ("[QUIET ]CALL
                      // rank/dispatch/execute BODY")
};

void sdk_proxy_init(struct sdk_proxy *p);
void sdk_proxy_done(struct sdk_proxy *p);
void sdk_proxy_start(struct sdk_proxy *p, const char *cert_pem, const char *key_pem); // NULL: no TLS
void sdk_proxy_stop(struct sdk_proxy *p);                                             // everybody is cut off
size_t sdk_proxy_saw(struct sdk_proxy *p, const char *text);                          // how often, so far
